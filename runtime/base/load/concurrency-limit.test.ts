/** So many works at once, so many that wait, and none for those who went away. */
import { setImmediate as breathe } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency-limit.ts'

const idle = new AbortController().signal
const [atOnce, waitingMax] = [3, 5]
const begin = (): ConcurrencyLimit => createConcurrencyLimit({ atOnce, waitingMax, what: 'works' })

/** Work that ends when it is told to. */
function works(admission: ConcurrencyLimit, count: number) {
  const begun: (() => void)[] = []
  const all = Array.from({ length: count }, () =>
    admission.run(idle, () => new Promise<void>((resolve) => begun.push(resolve))),
  )
  return { begun, all }
}

it('begins so many at once, and hands turns on', async () => {
  const admission = begin()
  const { begun, all } = works(admission, atOnce + 2)
  await breathe()
  expect(begun).toHaveLength(atOnce)
  begun[0]!()
  await breathe()
  expect(begun).toHaveLength(atOnce + 1)
  begun[1]!()
  await breathe()
  expect(begun).toHaveLength(atOnce + 2)
  for (const end of begun) end()
  await Promise.all(all)
  await expect(admission.run(idle, async () => 7)).resolves.toBe(7)
})

it('refuses when too many wait; one that goes away leaves its place', async () => {
  const admission = begin()
  const { begun, all } = works(admission, atOnce)
  const gone = new AbortController()
  const waiting = Array.from({ length: waitingMax }, () =>
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
  expect(begun).toHaveLength(atOnce)
})
