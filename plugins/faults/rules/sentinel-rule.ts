/**
 * Sentinel: a known error code in place of a value. A code counts if it is far from everything seen:
 * outside the range of earlier values by at least the width of that range, or as no number at all.
 */
import type { Match } from './finding.ts'
import type { Observed } from './observed.ts'

/** Codes of common sensors: one-wire power-up and disconnect, data loggers, all bits set. */
const codes: ReadonlySet<number> = new Set([
  -999, -9999, -999.9, -99.9, -99, -127, -32_768, 85, 999, 9999, 32_767, 65_535, 4_294_967_295,
])
/** Values from which the range is known. */
const knownValues = 10

export interface SentinelState {
  count: number
  low: number
  high: number
}

export const createSentinelState = (): SentinelState => ({ count: 0, low: 0, high: 0 })

export function takeSentinel(
  state: SentinelState,
  { time, value }: Pick<Observed, 'time' | 'value'>,
): Match | undefined {
  const width = state.high - state.low
  const isFar =
    state.count >= knownValues && (value > state.high + width || value < state.low - width) && width > 0
  if (!Number.isFinite(value) || (codes.has(value) && isFar))
    return { class: 'sentinel', kind: 'definite', begin: time, likelihood: 0 }
  state.low = state.count === 0 ? value : Math.min(state.low, value)
  state.high = state.count === 0 ? value : Math.max(state.high, value)
  state.count++
  return undefined
}
