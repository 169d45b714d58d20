/** Work that runs once at a time, and whose next run is shared. */
import { expect, it } from 'vitest'
import { createSharedRuns } from './shared-runs.ts'

/** Work whose runs the test ends. */
function open() {
  const runs: PromiseWithResolvers<void>[] = []
  const shared = createSharedRuns(() => {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    return run.promise
  })
  return { runs, shared }
}

it('begins at once, and shares the next run among the calls during a run', async () => {
  const { runs, shared } = open()
  const first = shared.now()
  const [second, third] = [shared.now(), shared.now()]
  expect([runs.length, third === second, shared.last() === second]).toEqual([1, true, true])
  runs[0]!.resolve()
  await first
  await expect.poll(() => runs.length).toBe(2)
  runs[1]!.resolve()
  await second
  expect([runs.length, shared.running(), shared.last()]).toEqual([2, undefined, undefined])
})

it('runs again after a run that failed, whose error only its own calls get', async () => {
  const { runs, shared } = open()
  const first = shared.now()
  const second = shared.now()
  runs[0]!.reject(new TypeError('full'))
  await expect(first).rejects.toThrow('full')
  await expect.poll(() => runs.length).toBe(2)
  runs[1]!.resolve()
  await expect(second).resolves.toBeUndefined()
})
