/**
 * Chooses and weighs the families by blocked time-series validation: each fifth of the history is
 * predicted from the other four. The weights have the least squared error over all fifths, of which the
 * newest counts most. Pure.
 */
import { simplexWeights } from '#statistics/simplex-weights.ts'
import { type Family, fittedBase, type Part } from './fitting.ts'
import { type ModelBase, predictionOf } from './members.ts'

export interface Blend {
  readonly weights: readonly { readonly family: Family; readonly weight: number }[]
  /** The value that the blend predicts for each row, from a training without the row's block. */
  readonly predicted: Float64Array
  readonly residuals: Float64Array
}

type Geometry = Pick<ModelBase, 'distances' | 'between'>

export const blockCount = 5
/** How much an error in the newest block counts: sensors and seasons drift. */
const newestWeight = 3
/** Spreads the weight over families of about the same error. */
const spreading = 0.1
/** A family with less weight is left out. */
const weightMin = 0.03

export interface BlendTask {
  readonly geometry: Geometry
  readonly part: Part
  readonly families: readonly Family[]
  readonly progress: (share: number) => void
}

export function blendOf(task: BlendTask): Blend {
  const { rows } = task.part
  const candidates = outOfBlock(task)
  const truth = Float64Array.from(rows, (row) => row.at(-1)!)
  const errorsOf = (predicted: Float64Array): Float64Array => predicted.map((value, i) => value - truth[i]!)
  const errors = candidates.map(({ predicted }) => errorsOf(predicted))
  const newest = blockOf(rows.length, blockCount - 1)
  const weighed = errors.map((of) =>
    of.map((error, i) => (i >= newest.from ? error * Math.sqrt(newestWeight) : error)),
  )
  const all = simplexWeights(weighed, spreading)
  const kept = candidates.flatMap((candidate, i) =>
    all[i]! >= Math.min(weightMin, Math.max(...all)) ? [{ ...candidate, weight: all[i]! }] : [],
  )
  const sum = kept.reduce((total, { weight }) => total + weight, 0)
  const weights = kept.map(({ family, weight }) => ({ family, weight: weight / sum }))
  const predicted = truth.map((_, i) =>
    kept.reduce((total, one) => total + (one.weight / sum) * one.predicted[i]!, 0),
  )
  return { weights, predicted, residuals: predicted.map((value, i) => truth[i]! - value) }
}

/** The rows of a block. */
export const blockOf = (rows: number, block: number) => ({
  from: Math.floor((rows * block) / blockCount),
  to: Math.floor((rows * (block + 1)) / blockCount),
})

interface Candidate {
  readonly family: Family
  readonly predicted: Float64Array
}

/** The predictions of the families that suit every block. */
function outOfBlock({ geometry, part, families, progress }: BlendTask): readonly Candidate[] {
  const { rows, times, slotMs } = part
  const found = families.map((family) => ({
    family,
    predicted: new Float64Array(rows.length).fill(Number.NaN),
  }))
  for (let block = 0; block < blockCount; block++) {
    const { from, to } = blockOf(rows.length, block)
    const others = rows.flatMap((row, i) => (i < from || i >= to ? [{ row, time: times[i]! }] : []))
    const rest: Part = {
      rows: others.map(({ row }) => row),
      times: Float64Array.from(others, ({ time }) => time),
      slotMs,
    }
    const base = fittedBase(geometry, rest)
    found.forEach(({ family, predicted }, i) => {
      const member = family.fit(base, rest)
      if (member === undefined) return
      for (let row = from; row < to; row++) {
        predicted[row] = predictionOf(base, member, rows[row]!.subarray(0, -1), times[row]!)
      }
      progress((block + (i + 1) / found.length) / blockCount)
    })
  }
  return found.filter(({ predicted }) => predicted.every(Number.isFinite))
}
