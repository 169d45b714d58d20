/**
 * The usual size of a deviation, as a function of the level of the stream and of the hour of the day:
 * heavy-tailed quantities vary more when they are high, traffic varies more at rush hours. Learned one
 * sample at a time.
 */

/** Levels, in deviations from the mean, between which the logarithm of the size is interpolated. */
const knotLevels = [-2, -1.2, -0.6, 0, 0.6, 1.2, 2, 3, 5] as const
const levelMax = knotLevels.at(-1)!
const lastSegment = knotLevels.length - 2
export const hourBins = 12
/** Samples whose mean is the first size at every level. */
const firstSamples = 20
const ratioMax = 4
const learningMin = 0.008

export interface Spread {
  count: number
  first: number
  /** Logarithm of the size per level, and what the hour adds. */
  knots: number[]
  hours: number[]
}

export const createSpread = (): Spread => ({
  count: 0,
  first: 0,
  knots: knotLevels.map(() => 0),
  hours: new Array<number>(hourBins).fill(0),
})

/** A place in the table: the level in deviations from the mean, and the hour of the day. */
export interface SpreadPlace {
  readonly level: number
  readonly hour: number
}

const binOf = (hour: number): number => Math.floor((hour * hourBins) / 24)

function segmentOf(level: number): { low: number; share: number } {
  const inside = Math.min(levelMax, Math.max(knotLevels[0], level))
  let low = 0
  while (low < lastSegment && knotLevels[low + 1]! < inside) low++
  return { low, share: (inside - knotLevels[low]!) / (knotLevels[low + 1]! - knotLevels[low]!) }
}

/** Mean absolute deviation to expect there, at least `floor`. */
export function sizeAt({ knots, hours }: Spread, { level, hour }: SpreadPlace, floor: number): number {
  const { low, share } = segmentOf(level)
  const size = Math.exp(knots[low]! * (1 - share) + knots[low + 1]! * share + hours[binOf(hour)]!)
  return Math.max(size, floor)
}

/** Learns a size; `usual` is what `sizeAt` gave for the place. */
export function learnSize(
  spread: Spread,
  place: SpreadPlace,
  { size, usual, floor }: { size: number; usual: number; floor: number },
): void {
  spread.count++
  if (spread.count <= firstSamples) {
    spread.first += (Math.max(size, floor) - spread.first) / spread.count
    spread.knots.fill(Math.log(Math.max(spread.first, Number.MIN_VALUE)))
    return
  }
  const { low, share } = segmentOf(place.level)
  const surprise = Math.min(ratioMax, size / usual) - 1
  const step = Math.max(learningMin, 1 / Math.sqrt(spread.count)) * surprise
  const { knots, hours } = spread
  knots[low] = knots[low]! + step * (1 - share)
  knots[low + 1] = knots[low + 1]! + step * share
  const bin = binOf(place.hour)
  hours[bin] = 0.999 * hours[bin]! + 0.3 * step
}
