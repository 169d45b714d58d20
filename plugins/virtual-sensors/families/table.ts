/**
 * The table that a virtual sensor learns from: one row of features and the target's value per slot in which
 * the target and every kept source have a value. Candidates that do not correlate
 * (`sources/candidate-correlation.ts`) are left out, and so are those that are missing so often that too few
 * common slots remain. Pure.
 */

import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { commonSlotsMin, testCorrelation } from '#plugins/virtual-sensors/sources/candidate-correlation.ts'
import {
  gridOf,
  heldIntervals,
  ownInterval,
  type Readings,
  type SlotGrid,
  slotValues,
} from '#plugins/virtual-sensors/sources/slots.ts'
import { columnsOf, featureRow } from './predictors.ts'
import type { SourceSeries, TrainingFailure, TrainingInput } from './virtual-sensor-model.ts'

export interface TrainingTable {
  readonly sources: readonly SourceSeries[]
  readonly holdMs: readonly number[]
  /** Features, then the target's value; without missing values. */
  readonly rows: readonly Float64Array[]
  /** When the slot of each row begins. */
  readonly times: Float64Array
}

/** More slots than this make training longer than they make it better; the latest ones are used. */
const slotsMax = 20_000
/**
 * The share of the target's slots that must have all sources; the source with the most gaps is left out
 * until then.
 */
const completeShareMin = 0.6

export function trainingTable(input: TrainingInput, target: Readings): TrainingTable | TrainingFailure {
  const grid = gridOf(target, input.slotMs, slotsMax)
  if (grid === undefined) return 'not-enough-data'
  const targetValues = slotValues(target, grid)
  const candidates = input.sources.map((source) => alignedSource(source, grid))
  const tests = candidates.map(({ values }) => testCorrelation(targetValues, values, candidates.length))
  if (!tests.some(({ commonSlots }) => commonSlots >= commonSlotsMin)) return 'not-enough-data'
  const correlated = candidates.filter((_, i) => tests[i]!.isCorrelated)
  if (correlated.length === 0) return 'no-correlating-source'
  const kept = withoutGaps(correlated, targetValues)
  const table = tableOf(kept, targetValues, grid)
  return table.rows.length < commonSlotsMin ? 'not-enough-data' : table
}

export interface AlignedSource {
  readonly source: SourceSeries
  readonly holdMs: number
  readonly values: Float64Array
}

export function alignedSource(source: SourceSeries, grid: SlotGrid): AlignedSource {
  const holdMs = heldIntervals * (ownInterval(source.times) ?? grid.slotMs)
  return { source, holdMs, values: slotValues(source, grid, holdMs) }
}

/** Leaves out the sources with the most gaps, until enough slots have all. */
function withoutGaps(sources: readonly AlignedSource[], target: Float64Array): readonly AlignedSource[] {
  const isKnown = (source: AlignedSource, slot: number): boolean => !Number.isNaN(source.values[slot]!)
  const slots = [...target.keys()].filter((slot) => !Number.isNaN(target[slot]!))
  const complete = slots.filter((slot) => sources.every((source) => isKnown(source, slot))).length
  if (sources.length === 1 || complete >= Math.max(commonSlotsMin, completeShareMin * slots.length))
    return sources
  const counts = sources.map((source) => slots.filter((slot) => isKnown(source, slot)).length)
  const worst = counts.lastIndexOf(Math.min(...counts))
  return withoutGaps(sources.toSpliced(worst, 1), target)
}

function tableOf(sources: readonly AlignedSource[], target: Float64Array, grid: SlotGrid): TrainingTable {
  const rows: Float64Array[] = []
  const times: number[] = []
  const { width } = columnsOf(sources.length)
  target.forEach((value, slot) => {
    if (Number.isNaN(value)) return
    const at = (grid.first + slot) * grid.slotMs
    const features = featureRow(sources.length, at, (i, lag) => sources[i]!.values[slot - lag] ?? Number.NaN)
    if (features.some(Number.isNaN)) return
    const row = new Float64Array(width + 1)
    row.set(features)
    row[width] = value
    rows.push(row)
    times.push(at)
  })
  return {
    sources: sources.map(({ source }) => source),
    holdMs: sources.map(({ holdMs }) => holdMs),
    rows,
    times: Float64Array.from(times),
  }
}

/** Half of the Earth's circumference, for positions that are not on the globe: JSON has no infinity. */
const farMetres = 20_016_000

/** The distances that the members of a model need. */
export const geometryOf = (sources: readonly SourceSeries[]) => ({
  distances: sources.map(({ distance }) => distance),
  between: sources.map((a) =>
    sources.map((b) =>
      Math.min(farMetres, distanceMeters([a.longitude, a.latitude], [b.longitude, b.latitude])),
    ),
  ),
})
