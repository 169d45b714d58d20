/**
 * The value that a faulty or missing sample should have had: the neighbours' estimate, else the stream's
 * daily profile plus the last good deviation from it, which fades with time. Learns from good samples only.
 */
import { hourOf, type NeighbourEstimate, type Observed } from '#plugins/faults/rules/observed.ts'

export interface Estimate {
  readonly value: number
  /** Standard error. */
  readonly error: number
  readonly method: 'neighbours' | 'profile' | 'last-value'
}

const hours = 24
const slowest = 0.02
/** Good samples from which the daily profile is used. */
const profileSamples = 200
const deviationMax = 5

export interface RecoveryState {
  count: number
  /** Mean per hour of the day. */
  profile: number[]
  counts: number[]
  /** Variance of deviations from the profile, and covariance of successive ones. */
  variance: number
  covariance: number
  lastGood: { value: number; time: number } | null
}

export const createRecoveryState = (): RecoveryState => ({
  count: 0,
  profile: new Array<number>(hours).fill(0),
  counts: new Array<number>(hours).fill(0),
  variance: 0,
  covariance: 0,
  lastGood: null,
})

export function learnGood(state: RecoveryState, { time, value, slots }: Observed): void {
  const { profile, counts, lastGood } = state
  const hour = hourOf(time)
  const seen = Math.min(counts[hour]! + 1, 1 / slowest)
  const deviation = seen === 1 ? 0 : value - profile[hour]!
  const most = deviationMax * Math.sqrt(state.variance)
  const bounded = state.count < profileSamples ? deviation : Math.min(most, Math.max(-most, deviation))
  if (lastGood !== null && slots === 1 && seen > 1) {
    const before = lastGood.value - profile[hourOf(lastGood.time)]!
    const weight = Math.max(1 / (state.count + 1), slowest / 4)
    state.variance += weight * (bounded * bounded - state.variance)
    state.covariance += weight * (bounded * before - state.covariance)
  }
  counts[hour] = seen
  profile[hour] = seen === 1 ? value : profile[hour]! + bounded / seen
  state.count++
  state.lastGood = { value, time }
}

/** A difference of so many standard errors says something new. */
const newErrors = 0.1

/** Whether an estimate says something that an earlier one of the same fault does not. */
export function isNewEstimate(now: Estimate, before: Estimate | undefined): boolean {
  if (before === undefined || now.method !== before.method) return true
  const least = newErrors * now.error
  return Math.abs(now.value - before.value) > least || Math.abs(now.error - before.error) > least
}

/** Undefined without neighbours before the first good sample. */
export function estimateAt(
  state: RecoveryState,
  { time, neighbour }: { time: number; neighbour: NeighbourEstimate | undefined },
  intervalMs: number | undefined,
): Estimate | undefined {
  if (neighbour !== undefined) return { value: neighbour.value, error: neighbour.error, method: 'neighbours' }
  const { lastGood, profile, counts, variance, covariance } = state
  if (lastGood === null) return undefined
  const hour = hourOf(time)
  if (state.count < profileSamples || counts[hour] === 0 || intervalMs === undefined)
    return { value: lastGood.value, error: Math.sqrt(variance), method: 'last-value' }
  const age = Math.max(1, (time - lastGood.time) / intervalMs)
  const persistence = variance === 0 ? 0 : Math.min(0.999, Math.max(0, covariance / variance)) ** age
  const deviation = lastGood.value - profile[hourOf(lastGood.time)]!
  return {
    value: profile[hour]! + persistence * deviation,
    error: Math.sqrt(variance * (1 - persistence ** 2)),
    method: 'profile',
  }
}
