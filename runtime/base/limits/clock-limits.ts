/**
 * The ceilings of the clock; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const clockLimits = {
  clockCheckMs: limit(1000, 'ms', 'How soon a clock that was set is believed', 'the next look'),
  clockJumpMs: limit(2000, 'ms', 'What drifts and is corrected stays below', 'a jump: an event, and doubt'),
  clockConfirmMs: limit(
    600_000,
    'ms',
    'Who set the clock by mistake has set it back by then',
    'a jump is believed',
  ),
  clockFloorSlackMs: limit(
    60_000,
    'ms',
    'A clock that ran fast is set back by so much at most',
    'below the floor the clock is wrong',
  ),
  clockAheadMsMax: limit(
    10 * 366 * 86_400_000,
    'ms',
    'No gateway rests so long',
    'a clock so far above its floor is wrong',
  ),
  clockGapMs: limit(86_400_000, 'ms', 'A night without power', 'a longer rest delays removal by age'),
  clockRemovalMs: limit(
    3_600_000,
    'ms',
    'Somebody may see that the clock is wrong',
    'what is too old by an unconfirmed clock goes',
  ),
  unsettledRowsMax: limit(
    200_000,
    'log rows',
    'A day and more of a quiet site; they are put right in a minute',
    'their times stand as they are',
  ),
  unsettledRowsPerGroup: limit(5000, 'log rows', 'Bounds deciding and one commit', 'the next group'),
} as const satisfies Record<string, Limit>
