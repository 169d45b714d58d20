/**
 * Runs before each test file. Files share a process: ceilings that one file lowers are restored for the next. A condition
 * that holds at once on a quiet machine may take many seconds on a busy one, so `vi.waitFor` waits as long as `expect.poll`.
 */
import { afterAll, vi } from 'vitest'
import { restoreLimits } from './ceilings.ts'
// Every random case has a fixed seed, also where a test does not ask for the number of runs.
import './runs.ts'

afterAll(restoreLimits)

const { waitFor } = vi
type WaitFor = typeof waitFor
if (waitFor.name !== 'waitForPatiently') {
  vi.waitFor = function waitForPatiently(condition, options) {
    const given = typeof options === 'number' ? { timeout: options } : options
    return waitFor(condition, { timeout: 100_000, ...given })
  } as WaitFor
}
