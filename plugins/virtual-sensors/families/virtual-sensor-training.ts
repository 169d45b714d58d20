/**
 * Trains a virtual sensor. The training aligns the histories and keeps the sources that correlate. It
 * fits every family to the older part of the history, chooses the best on the newest part, and fits that
 * to all. Without a history of the target the sources are weighted by kriging. Pure; it takes up to
 * seconds and runs in a worker thread.
 */

import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { gridOf } from '#plugins/virtual-sensors/sources/slots.ts'
import { correlationOf } from '#statistics/correlation.ts'
import { correlogramOf } from '#statistics/kriging.ts'
import { families, fittedBase, type Part } from './fitting.ts'
import { krigingOf, type ModelBase, predictionOf } from './members.ts'
import { columnsOf } from './predictors.ts'
import { alignedSource, type TrainingTable, trainingTable } from './table.ts'
import type {
  SourceSeries,
  TrainingInput,
  TrainingOutcome,
  VirtualSensorModel,
} from './virtual-sensor-model.ts'

/** The newest part of the history, by which the family is chosen. */
const validationShare = 1 / 7
const coverage = 0.9

export function trainVirtualSensor(
  input: TrainingInput,
  progress: (share: number) => void = () => {},
): TrainingOutcome {
  if (input.sources.length === 0) return { failure: 'no-source' }
  const { times, values } = input.target
  if (times === undefined || values === undefined) return trainWithoutHistory(input)
  const table = trainingTable(input, { times, values })
  if (typeof table === 'string') return { failure: table }
  return { model: trainOn(table, input, progress) }
}

function trainOn(
  table: TrainingTable,
  input: TrainingInput,
  progress: (share: number) => void,
): VirtualSensorModel {
  const { rows, times } = table
  const { slotMs } = input
  const split = Math.floor(rows.length * (1 - validationShare))
  const early: Part = { rows: rows.slice(0, split), times: times.subarray(0, split), slotMs }
  const geometry = geometryOf(table.sources)
  const base = fittedBase(geometry, early)
  const scores = families.map((family, i) => {
    const member = family.fit(base, early)
    progress((i + 1) / (families.length + 1))
    const residuals = rows
      .slice(split)
      .map((row, j) => row.at(-1)! - predictionOf(base, member, row.subarray(0, -1), times[split + j]!))
    return { family, residuals, error: rootMeanSquare(residuals) }
  })
  const best = scores.reduce((least, one) => (one.error < least.error ? one : least))
  const whole: Part = { rows, times, slotMs }
  const wholeBase = fittedBase(geometry, whole)
  progress(1)
  return {
    ...wholeBase,
    family: best.family.name,
    sources: table.sources.map(({ id }) => id),
    holdMs: table.holdMs,
    slotMs,
    members: [{ family: best.family.name, weight: 1, member: best.family.fit(wholeBase, whole) }],
    error: best.error,
    halfWidths: [quantileOf(best.residuals.map(Math.abs), coverage)],
    rows: rows.length,
    range: input.range ?? {},
  }
}

/**
 * Kriging by a correlogram of the sources; the error comes from the estimate of each source by the
 * others.
 */
function trainWithoutHistory({ sources, slotMs, range }: TrainingInput): TrainingOutcome {
  const longest = sources.reduce((a, b) => (b.times.length > a.times.length ? b : a))
  const grid = gridOf(longest, slotMs, 20_000)
  if (grid === undefined) return { failure: 'not-enough-data' }
  const aligned = sources.map((source) => alignedSource(source, grid))
  const geometry = geometryOf(sources)
  const pairs = sources.flatMap((_, i) =>
    sources.slice(0, i).flatMap((_other, j) => {
      const { correlation, pairs } = correlationOf(aligned[i]!.values, aligned[j]!.values)
      return pairs < 2 ? [] : [{ distance: geometry.between[i]![j]!, correlation }]
    }),
  )
  const correlogram = correlogramOf(pairs)
  const residuals = sources.flatMap((_, left) => {
    const base: ModelBase = { distances: geometry.between[left]!, between: geometry.between }
    const row = new Float64Array(columnsOf(sources.length).width)
    row[left] = Number.NaN
    const weights = krigingOf(base, correlogram, row)
    if (weights === undefined) return []
    return [...aligned[left]!.values].flatMap((value, slot) => {
      const estimate = weights.present.reduce(
        (sum, i, k) => sum + weights.weights[k]! * aligned[i]!.values[slot]!,
        0,
      )
      return Number.isFinite(value - estimate) ? [value - estimate] : []
    })
  })
  const model: VirtualSensorModel = {
    ...geometry,
    family: 'kriging',
    sources: sources.map(({ id }) => id),
    holdMs: aligned.map(({ holdMs }) => holdMs),
    slotMs,
    members: [{ family: 'kriging', weight: 1, member: { kind: 'kriging', correlogram } }],
    error: rootMeanSquare(residuals),
    halfWidths: [quantileOf(residuals.map(Math.abs), coverage)],
    rows: grid.count,
    range: range ?? {},
  }
  return { model }
}

const geometryOf = (sources: readonly SourceSeries[]) => ({
  distances: sources.map(({ distance }) => distance),
  between: sources.map((a) =>
    sources.map((b) => distanceMeters([a.longitude, a.latitude], [b.longitude, b.latitude])),
  ),
})

const rootMeanSquare = (values: readonly number[]): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / Math.max(1, values.length))

function quantileOf(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(share * (sorted.length + 1)))] ?? 0
}
