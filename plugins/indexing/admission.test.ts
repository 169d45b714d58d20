/**
 * Queries of the index have turns: so many at once, so many that wait, and none for those who went away.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits.ts'
import { createAdmission } from './admission.ts'
import { breathe } from './turns.ts'

const idle = new AbortController().signal

/** Work that ends when it is told to. */
function works(admission: ReturnType<typeof createAdmission>, count: number) {
  const begun: (() => void)[] = []
  const all = Array.from({ length: count }, () =>
    admission.run(idle, () => new Promise<void>((resolve) => begun.push(resolve))),
  )
  return { begun, all }
}

it('begins so many at once, and hands turns on', async () => {
  const admission = createAdmission()
  const most = limits.indexQueriesMax.value
  const { begun, all } = works(admission, most + 2)
  await breathe()
  expect(begun).toHaveLength(most)
  begun[0]!()
  await breathe()
  expect(begun).toHaveLength(most + 1)
  begun[1]!()
  await breathe()
  expect(begun).toHaveLength(most + 2)
  for (const end of begun) end()
  await Promise.all(all)
  await expect(admission.run(idle, async () => 7)).resolves.toBe(7)
})

it('refuses when too many wait; one that goes away leaves its place', async () => {
  const admission = createAdmission()
  const { begun, all } = works(admission, limits.indexQueriesMax.value)
  const gone = new AbortController()
  const waiting = Array.from({ length: limits.indexQueriesWaiting.value }, () =>
    admission.run(gone.signal, async () => begun.push(() => undefined)),
  )
  await expect(admission.run(idle, async () => 1)).rejects.toMatchObject({ code: 'http.busy' })
  gone.abort()
  const ends = await Promise.allSettled(waiting)
  expect(ends.every(({ status }) => status === 'rejected')).toBe(true)
  const late = admission.run(idle, async () => 2)
  for (const end of begun) end()
  await Promise.all(all)
  expect(await late).toBe(2)
  expect(begun).toHaveLength(limits.indexQueriesMax.value)
})
