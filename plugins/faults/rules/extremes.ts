/**
 * The largest values of a statistic on a healthy stream, and the threshold that follows: the value that a
 * healthy stream exceeds at a given rate. Keeps the largest maxima of blocks of samples, and extends them
 * by Hill's estimate of the tail. One unnoticed fault in the history hardly moves the threshold.
 */

const blockSamples = 12
const peaksMax = 10
/** Blocks before which there is no threshold. */
const blocksMin = 8
/**
 * Samples for each that a healthy stream may exceed the threshold: more than twice as many as are known,
 * within bounds.
 */
/** Heaviest tail that is extended. */
const tailMax = 0.4
const samplesMin = 2000
const samplesMax = 20_000
/** Blocks from which older ones count half. */
const blocksMax = 4000

export interface Extremes {
  blocks: number
  /** Maxima of blocks, largest first. */
  peaks: number[]
  /** Maximum and number of samples of the present block. */
  maximum: number
  samples: number
  /** The threshold that follows from these; NaN if it is to be computed anew. */
  derivedThreshold: number
}

export const createExtremes = (): Extremes => ({
  blocks: 0,
  peaks: [],
  maximum: 0,
  samples: 0,
  derivedThreshold: Number.NaN,
})

export function learnExtreme(state: Extremes, value: number): void {
  state.maximum = Math.max(state.maximum, value)
  state.samples++
  if (state.samples < blockSamples) return
  const { peaks, maximum } = state
  state.blocks++
  state.derivedThreshold = Number.NaN
  state.maximum = 0
  state.samples = 0
  if (peaks.length < peaksMax || maximum > peaks.at(-1)!) {
    const position = peaks.findIndex((peak) => peak < maximum)
    peaks.splice(position === -1 ? peaks.length : position, 0, maximum)
    if (peaks.length > peaksMax) peaks.pop()
  }
  if (state.blocks < blocksMax) return
  state.blocks /= 2
  state.peaks = peaks.filter((_, i) => i % 2 === 0)
}

/**
 * The value that a healthy stream exceeds once in so many samples; infinite while too little is known. The
 * largest peak is left out: it may be a fault that nobody noticed.
 */
export function thresholdOf(state: Extremes): number {
  if (Number.isNaN(state.derivedThreshold)) state.derivedThreshold = computedThreshold(state)
  return state.derivedThreshold
}

function computedThreshold({ blocks, peaks }: Extremes): number {
  if (blocks < blocksMin) return Number.POSITIVE_INFINITY
  const count = Math.min(peaks.length, Math.max(4, blocks >> 1))
  const least = Math.max(peaks[count - 1]!, 0.2 * peaks[1]!, 1e-9)
  let tail = 0
  for (let i = 1; i < count - 1; i++) tail += Math.log(Math.max(peaks[i]!, least) / least)
  tail = Math.min(tailMax, tail / (count - 2))
  const known = blocks * blockSamples
  const samples = Math.min(samplesMax, Math.max(samplesMin, 2.3 * known))
  return least * ((count * samples) / known) ** tail
}
