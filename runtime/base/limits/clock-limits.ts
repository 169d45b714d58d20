/**
 * Ceilings of the clock; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const clockLimits = {
  /** How soon a clock that was set is trusted. Beyond it: the next check. */
  clockCheckMs: limit(1000, 'ms'),
  /** Drift and its correction stay below this. Beyond it: a jump: logged, and the clock is in doubt. */
  clockJumpMs: limit(2000, 'ms'),
  /** A clock that was set by mistake is set back within this time. Beyond it: a jump is accepted. */
  clockConfirmMs: limit(600_000, 'ms'),
  /** A fast clock is set back by at most this much. Beyond it: a clock further below the floor is wrong. */
  clockFloorSlackMs: limit(60_000, 'ms'),
  /** No gateway is switched off for this long. Beyond it: a clock this far above the floor is wrong. */
  clockAheadMsMax: limit(10 * 366 * 86_400_000, 'ms'),
  /** A night without power. Beyond it: a longer pause delays removal by age. */
  clockGapMs: limit(86_400_000, 'ms'),
  /**
   * Gives an operator time to notice a wrong clock. Beyond it: history too old by an unconfirmed clock is
   * removed.
   */
  clockRemovalMs: limit(3_600_000, 'ms'),
  /**
   * More than a day of a quiet site; corrected in seconds, on a small board in a minute. Beyond it: their
   * times remain as stamped.
   */
  unsettledRowsMax: limit(200_000, 'log rows'),
  /** At most, if they take less than `groupDecideMs`. Beyond it: the next group. */
  unsettledRowsPerGroup: limit(5000, 'log rows'),
} as const satisfies Record<string, Limit>
