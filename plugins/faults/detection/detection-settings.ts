/**
 * The settable numbers of fault detection, with their defaults, and the times that follow from a stream's
 * interval. They are enforced elsewhere: those of equal values in `rules/stuck-rule.ts`, of dropouts in
 * `rules/times-rule.ts`, of persistence and of good samples in `state-machine.ts`.
 */
import type { MachineLimits } from './state-machine.ts'

export interface DetectionSettings {
  /**
   * Time for which an anomaly persists before it is a fault, in ms. Default: 10 intervals, or an eighth of
   * the period up to 2 h.
   */
  readonly persistenceMs?: number
  /** Bounds of that time in samples. */
  readonly persistenceSamplesMin: number
  readonly persistenceSamplesMax: number
  /** Good samples after which a fault is over. Default: as many as an anomaly needs to become a fault. */
  readonly clearSamples?: number
  /** Intervals without a value that are a dropout at the least. */
  readonly dropoutSlots: number
  /** Equal values that are a fault after a history that varies. */
  readonly stuckSamples: number
  /** Equal values that are a fault after a short history that varies, or with neighbours that vary. */
  readonly stuckSamplesShort: number
}

export const defaultDetectionSettings: DetectionSettings = {
  persistenceSamplesMin: 5,
  persistenceSamplesMax: 60,
  dropoutSlots: 3,
  stuckSamples: 8,
  stuckSamplesShort: 20,
}

const twoHoursMs = 7_200_000

/** The counts of the state machine for a stream; without a known interval the least ones. */
export function machineLimits(
  { settings, periodMs }: { readonly settings: DetectionSettings; readonly periodMs?: number },
  intervalMs: number | undefined,
): MachineLimits {
  const { persistenceSamplesMin: least, persistenceSamplesMax: most, persistenceMs } = settings
  const ofPeriod = Math.min(twoHoursMs, (periodMs ?? Number.POSITIVE_INFINITY) / 8)
  const time = persistenceMs ?? Math.max(10 * (intervalMs ?? 0), ofPeriod)
  const persistenceSamples =
    intervalMs === undefined ? least : Math.min(most, Math.max(least, Math.ceil(time / intervalMs)))
  return { persistenceSamples, clearSamples: settings.clearSamples ?? persistenceSamples }
}
