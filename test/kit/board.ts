/**
 * A board without battery, whose clock stands in 1970 until it is set, and the clock of a gateway on it, which is another one
 * after each start. Time passes with that of the machine of the test, and by hand.
 */
import { systemClock } from '#base/time/clock.ts'
import { createTimekeeper } from '#base/time/timekeeper.ts'
import type { SettableClock } from './broker.ts'

/** No right clock says less, ms. */
export const floor = Date.UTC(2026, 0, 1)

export function createBoard() {
  const machine = {
    wrongBy: -systemClock.now() + 1000,
    passed: 0,
    boot: 'b1',
    setAt: undefined as number | undefined,
  }
  const monotonic = (): number => systemClock.monotonic() + machine.passed
  const now = (): number => systemClock.now() + machine.passed + machine.wrongBy
  const start = (): SettableClock & { check(): void } => {
    const keeper = createTimekeeper(
      {
        system: { now, monotonic },
        boot: machine.boot,
        bootedMs: 0,
        floor,
        evidence: () => ({ setAt: machine.setAt, isAwaited: false }),
      },
      { believe: 'plausible' },
    )
    return {
      ...keeper,
      pass(ms) {
        machine.passed += ms
      },
      jump(ms) {
        machine.wrongBy += ms
      },
    }
  }
  return { machine, start }
}
