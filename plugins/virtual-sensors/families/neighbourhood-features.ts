/**
 * The input of a shipped virtual-sensor model: up to eight sources around a place, each with value, distance,
 * crowding, usual offset and age; the estimate by kriging; and the time of day. Values are in the scale of
 * the sources. Training and prediction call the same function, so they cannot differ. Pure.
 */

/** Sources of a row; a place without a source holds NaN as its value. */
export const neighbourhoodSources = 8
const sourceFeatures = 5
export const neighbourhoodWidth = neighbourhoodSources * sourceFeatures + 5

/** The scale of the values of all sources. */
export interface NeighbourhoodScale {
  readonly mean: number
  readonly deviation: number
}

export interface NeighbourSource {
  /** NaN if the source has no current value. */
  readonly value: number
  /** How many slots old the value is. */
  readonly ageSlots: number
}

export interface NeighbourSlot {
  readonly sources: readonly NeighbourSource[]
  /** The estimate by kriging from the same sources. */
  readonly kriging: number
  /** Time of the slot, in ms. */
  readonly at: number
}

/** The part of a row that is the same in every slot. */
export interface Neighbourhood {
  readonly scale: NeighbourhoodScale
  /** From the place to each source, in metres. */
  readonly distances: readonly number[]
  /** Between the sources, in metres. */
  readonly between: readonly (readonly number[])[]
  /** The usual value of each source. */
  readonly means: readonly number[]
}

const dayMs = 86_400_000
const distanceMin = 1
const ageMax = 3
/** Distances are expressed relative to this one. */
const unitMeters = 10_000

/** The mean and the standard deviation of all known values of the sources, and the mean of each. */
export function neighbourhoodScale(
  histories: readonly ArrayLike<number>[],
): { readonly scale: NeighbourhoodScale; readonly means: readonly number[] } | undefined {
  const sums = histories.map((history) => sumsOf(history))
  const count = sums.reduce((total, one) => total + one.count, 0)
  const mean = sums.reduce((total, one) => total + one.sum, 0) / count
  const deviation = Math.sqrt(sums.reduce((total, one) => total + one.squares, 0) / count - mean ** 2)
  if (!(deviation > 0)) return undefined
  return {
    scale: { mean, deviation },
    means: sums.map((one) => (one.count === 0 ? mean : one.sum / one.count)),
  }
}

function sumsOf(history: ArrayLike<number>) {
  let count = 0
  let sum = 0
  let squares = 0
  for (let i = 0; i < history.length; i++) {
    const value = history[i]!
    if (!Number.isFinite(value)) continue
    count++
    sum += value
    squares += value ** 2
  }
  return { count, sum, squares }
}

/** Features of one slot: all values, then all distances and so on, then the time of day. */
export function writeNeighbourhood(
  { scale, distances, between, means }: Neighbourhood,
  { sources, kriging, at }: NeighbourSlot,
  { target, offset }: { readonly target: Float32Array; readonly offset: number },
): void {
  const nearest = Math.max(distanceMin, Math.min(...distances))
  for (let i = 0; i < neighbourhoodSources; i++) {
    const source = sources[i]
    const distance = Math.max(distances[i] ?? nearest, distanceMin)
    const put = (feature: number, value: number): void => {
      target[offset + feature * neighbourhoodSources + i] = value
    }
    put(0, source === undefined ? Number.NaN : (source.value - scale.mean) / scale.deviation)
    put(1, Math.log(distance / nearest))
    put(2, source === undefined ? 0 : Math.log(crowding(between[i]!, i) / unitMeters))
    put(3, source === undefined ? 0 : (means[i]! - scale.mean) / scale.deviation)
    put(4, source === undefined ? 0 : Math.min(source.ageSlots, ageMax))
  }
  const angle = (2 * Math.PI * (at % dayMs)) / dayMs
  const global = offset + sourceFeatures * neighbourhoodSources
  target[global] = Math.log(nearest / unitMeters)
  target[global + 1] = Math.sin(angle)
  target[global + 2] = Math.cos(angle)
  target[global + 3] = Math.log(sources.length)
  target[global + 4] = (kriging - scale.mean) / scale.deviation
}

/** The distance to the nearest other source; a lone source has none near it. */
function crowding(row: readonly number[], own: number): number {
  let least = 10 * unitMeters
  for (let j = 0; j < row.length; j++) if (j !== own) least = Math.min(least, row[j]!)
  return Math.max(distanceMin, least)
}
