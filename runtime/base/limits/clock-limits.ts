/**
 * Ceilings of the clock; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const clockLimits = {
  clockCheckMs: limit(1000, 'ms', 'How soon a clock that was set is trusted', 'the next check'),
  clockJumpMs: limit(
    2000,
    'ms',
    'Drift and its correction stay below this',
    'a jump: logged, and the clock is in doubt',
  ),
  clockConfirmMs: limit(
    600_000,
    'ms',
    'A clock that was set by mistake is set back within this time',
    'a jump is accepted',
  ),
  clockFloorSlackMs: limit(
    60_000,
    'ms',
    'A fast clock is set back by at most this much',
    'a clock further below the floor is wrong',
  ),
  clockAheadMsMax: limit(
    10 * 366 * 86_400_000,
    'ms',
    'No gateway is switched off for this long',
    'a clock this far above the floor is wrong',
  ),
  clockGapMs: limit(86_400_000, 'ms', 'A night without power', 'a longer pause delays removal by age'),
  clockRemovalMs: limit(
    3_600_000,
    'ms',
    'Gives an operator time to notice a wrong clock',
    'history too old by an unconfirmed clock is removed',
  ),
  unsettledRowsMax: limit(
    200_000,
    'log rows',
    'More than a day of a quiet site; corrected in a minute',
    'their times remain as stamped',
  ),
  unsettledRowsPerGroup: limit(5000, 'log rows', 'Bounds deciding time and one commit', 'the next group'),
} as const satisfies Record<string, Limit>
