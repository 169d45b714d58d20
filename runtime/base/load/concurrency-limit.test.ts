/** The limit bounds running and queued work, and drops the work of disconnected clients. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency-limit.ts'

const idle = new AbortController().signal
const [atOnce, waitingMax] = [3, 5]
const begin = (): ConcurrencyLimit => createConcurrencyLimit({ atOnce, waitingMax, what: 'works' })

/** Starts work that ends when the test calls its function in `begun`. */
function works(admission: ConcurrencyLimit, count: number) {
  const begun: (() => void)[] = []
  const all = Array.from({ length: count }, () =>
    admission.run(idle, () => new Promise<void>((resolve) => begun.push(resolve))),
  )
  return { begun, all }
}

it('runs as many at once as allowed, and starts the next when one ends', async () => {
  const admission = begin()
  const { begun, all } = works(admission, atOnce + 2)
  await nextTurn()
  expect(begun).toHaveLength(atOnce)
  begun[0]!()
  await nextTurn()
  expect(begun).toHaveLength(atOnce + 1)
  begun[1]!()
  await nextTurn()
  expect(begun).toHaveLength(atOnce + 2)
  for (const end of begun) end()
  await Promise.all(all)
  await expect(admission.run(idle, async () => 7)).resolves.toBe(7)
})

it('rejects work when the queue is full; a disconnected client leaves the queue', async () => {
  const admission = begin()
  const { begun, all } = works(admission, atOnce)
  const disconnected = new AbortController()
  const waiting = Array.from({ length: waitingMax }, () =>
    admission.run(disconnected.signal, async () => begun.push(() => undefined)),
  )
  await expect(admission.run(idle, async () => 1)).rejects.toMatchObject({ code: 'http.busy' })
  disconnected.abort()
  const ends = await Promise.allSettled(waiting)
  expect(ends.every(({ status }) => status === 'rejected')).toBe(true)
  const late = admission.run(idle, async () => 2)
  for (const end of begun) end()
  await Promise.all(all)
  expect(await late).toBe(2)
  expect(begun).toHaveLength(atOnce)
})
