/**
 * A sample as the rules receive it: with its distance from the sample before, and with the neighbours'
 * estimate.
 */

/** Estimate of a stream's value from its neighbours at the same time. */
export interface NeighbourEstimate {
  readonly value: number
  /** Standard error of the estimate. */
  readonly error: number
  /** True if the neighbours changed lately. */
  readonly isVarying: boolean
  /** True if the neighbours do not contradict each other. */
  readonly areAgreeing: boolean
}

export interface Observed {
  /** observedAt in ms. */
  readonly time: number
  readonly value: number
  /** Intervals since the previous sample: 1 without a gap. */
  readonly slots: number
  readonly neighbour: NeighbourEstimate | undefined
}

const hourMs = 3_600_000

/** Hour of the day in UTC, 0 to 23. */
export const hourOf = (time: number): number => ((Math.floor(time / hourMs) % 24) + 24) % 24
