/**
 * Range: values outside the limits that metadata state. Two of the last three samples outside are a definite
 * fault; one alone is an anomaly. Without limits the rule never matches.
 */
import type { Match } from './finding.ts'
import type { Observed } from './observed.ts'

export interface RangeState {
  /** Which of the last three samples were outside: one bit each, the newest lowest. */
  outside: number
  /** Time of the oldest of these that was outside. */
  begin: number
}

export const createRangeState = (): RangeState => ({ outside: 0, begin: 0 })

export function takeRange(
  state: RangeState,
  { time, value }: Observed,
  { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: { min?: number; max?: number },
): Match | undefined {
  const isOutside = value < min || value > max
  if (isOutside && state.outside === 0) state.begin = time
  state.outside = ((state.outside << 1) | Number(isOutside)) & 0b111
  if (!isOutside) return undefined
  const kind = (state.outside & 0b110) === 0 ? 'anomaly' : 'definite'
  return { class: 'range', kind, begin: state.begin, likelihood: 0 }
}
