/**
 * Trains a virtual sensor for a place without a history: the mean of ordinary kriging, by a correlogram
 * of the sources, and of inverse-distance weights. Each source in turn plays the place and is estimated
 * from the others, which gives the error. Weights that minimise this error did not carry over to the
 * place. An ONNX model that is assigned is a candidate, too: the caller runs it on the trials. Pure.
 */
import { gridOf, type SlotGrid } from '#plugins/virtual-sensors/sources/slots.ts'
import { correlationOf } from '#statistics/correlation.ts'
import { correlogramOf } from '#statistics/kriging.ts'
import { intervalModelOf, rootMeanSquare, spreadOf, type ValidationCase } from './intervals.ts'
import { placeNeighbourhood, trialsOf } from './neighbourhood-model.ts'
import { blendedValue } from './prediction.ts'
import { featureRow } from './predictors.ts'
import { type AlignedSource, alignedSource, geometryOf } from './table.ts'
import type { TrainingInput, TrainingOutcome, WeightedMember } from './virtual-sensor-model.ts'

const slotsMax = 20_000
/** Slots that are estimated for each source. */
const estimatedMax = 1000

export function trainWithoutHistory({ sources, slotMs, range, triesModel }: TrainingInput): TrainingOutcome {
  const longest = sources.reduce((a, b) => (b.times.length > a.times.length ? b : a))
  const grid = gridOf(longest, slotMs, slotsMax)
  if (grid === undefined) return { failure: 'not-enough-data' }
  const aligned = sources.map((source) => alignedSource(source, grid))
  const geometry = geometryOf(sources)
  const correlogram = correlogramOf(
    aligned.flatMap((a, i) =>
      aligned.slice(0, i).flatMap((b, j) => {
        const { correlation, pairs } = correlationOf(a.values, b.values)
        return pairs < 2 ? [] : [{ distance: geometry.between[i]![j]!, correlation }]
      }),
    ),
  )
  const members: readonly WeightedMember[] = [
    { family: 'kriging', weight: 0.5, member: { kind: 'kriging', correlogram } },
    { family: 'inverse distance', weight: 0.5, member: { kind: 'inverse-distance', power: 1 } },
  ]
  const estimated = estimatesOf(aligned, grid, { between: geometry.between, members })
  const cases = estimated.length > 0 ? estimated : deviationsOf(aligned)
  const model = {
    ...geometry,
    family: 'blend',
    sources: sources.map(({ id }) => id),
    holdMs: aligned.map(({ holdMs }) => holdMs),
    slotMs,
    members,
    error: rootMeanSquare(cases.map(({ residual }) => residual)),
    interval: intervalModelOf([cases], [1]),
    rows: grid.count,
    range: range ?? {},
  }
  if (triesModel !== true) return { model }
  const histories = aligned.map(({ values }) => values)
  const neighbourhood = placeNeighbourhood(geometry.distances, histories)
  if (neighbourhood === undefined) return { model }
  return { model: { ...model, neighbourhood }, trials: trialsOf(aligned, { model, correlogram, grid }) }
}

interface Estimation {
  readonly between: readonly (readonly number[])[]
  readonly members: readonly WeightedMember[]
}

/** Estimates each source from the others. */
function estimatesOf(
  aligned: readonly AlignedSource[],
  grid: SlotGrid,
  { between, members }: Estimation,
): readonly ValidationCase[] {
  const step = Math.max(1, Math.floor(grid.count / estimatedMax))
  return aligned.flatMap(({ values }, left) => {
    const base = { distances: between[left]!, between, members }
    const found: ValidationCase[] = []
    for (let slot = 0; slot < grid.count; slot += step) {
      const at = (grid.first + slot) * grid.slotMs
      const row = featureRow(aligned.length, at, (i, lag) =>
        i === left ? Number.NaN : (aligned[i]!.values[slot - lag] ?? Number.NaN),
      )
      const predicted = blendedValue(base, row, at)
      const residual = values[slot]! - predicted
      if (Number.isFinite(residual))
        found.push({ predicted, spread: spreadOf(row, aligned.length), residual })
    }
    return found
  })
}

/** A single source cannot be estimated from others: its deviations from its mean stand for the errors. */
function deviationsOf(aligned: readonly AlignedSource[]): readonly ValidationCase[] {
  return aligned.flatMap(({ values }) => {
    const known = [...values].filter((value) => !Number.isNaN(value))
    const mean = known.reduce((a, b) => a + b, 0) / known.length
    return known.map((value) => ({ predicted: mean, spread: 0, residual: value - mean }))
  })
}
