/**
 * Trains a virtual sensor. With a history of the target, the training aligns the histories and keeps the
 * sources that correlate. It weighs the families by validation, and fits those with a weight to all rows.
 * Without a history the sources themselves decide. Pure; it takes up to seconds and runs in a worker
 * thread.
 */
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type Blend, blendOf, blockCount, blockOf } from './blending.ts'
import { type Family, families, fittedBase, type Part } from './fitting.ts'
import { type IntervalModel, intervalModelOf, quantileOf, rootMeanSquare, spreadOf } from './intervals.ts'
import { trainWithoutHistory } from './no-history.ts'
import { type BlendedModel, blendedValue } from './prediction.ts'
import { geometryOf, type TrainingTable, trainingTable } from './table.ts'
import type { TrainingInput, TrainingOutcome, VirtualSensorModel } from './virtual-sensor-model.ts'

/** `progress` gets the share of the work that is done; `choice` are the families to choose from. */
export function trainVirtualSensor(
  input: TrainingInput,
  progress: (share: number) => void = () => {},
  choice: readonly Family[] = families,
): TrainingOutcome {
  if (input.sources.length === 0) return { failure: 'no-source' }
  const { times, values } = input.target
  if (times === undefined || values === undefined) return trainWithoutHistory(input)
  const table = trainingTable(input, { times, values })
  if (typeof table === 'string') return { failure: table }
  return { model: trainOn(table, input, { progress, choice }) }
}

interface Options {
  readonly progress: (share: number) => void
  readonly choice: readonly Family[]
}

function trainOn(
  table: TrainingTable,
  input: TrainingInput,
  { progress, choice }: Options,
): VirtualSensorModel {
  const { rows, times, holdMs } = table
  const { slotMs } = input
  const geometry = geometryOf(table.sources)
  const part: Part = { rows, times, slotMs }
  const blend = blendOf({
    geometry,
    part,
    families: choice,
    progress: (share) => progress(share * 0.8),
  })
  const base = fittedBase(geometry, part)
  const members = blend.weights.flatMap(({ family, weight }) => {
    const member = family.fit(base, part)
    return member === undefined ? [] : [{ family: family.name, weight, member }]
  })
  progress(0.95)
  const trained = {
    ...base,
    family: members.length === 1 ? members[0]!.family : 'blend',
    sources: table.sources.map(({ id }) => id),
    holdMs,
    slotMs,
    members,
    error: rootMeanSquare(blend.residuals),
    rows: rows.length,
    range: input.range ?? {},
  }
  const interval = intervalOfBlend(trained, part, blend)
  const freshShare = isHeldBetter(trained, part, blend) ? 1 : 0.5
  progress(1)
  return { ...trained, interval, freshShare }
}

function intervalOfBlend(trained: BlendedModel, part: Part, blend: Blend): IntervalModel {
  const sources = trained.distances.length
  const cases = part.rows.map((row, i) => ({
    predicted: blend.predicted[i]!,
    spread: spreadOf(row, sources),
    residual: blend.residuals[i]!,
  }))
  const blocks = Array.from({ length: blockCount }, (_, block) => {
    const { from, to } = blockOf(cases.length, block)
    return cases.slice(from, to)
  })
  return intervalModelOf(blocks, missingFactors(trained, part, blend))
}

const missingMax = 3
const sampledRows = 120
const lostShare = 0.2

/** How much wider the errors get without some of the sources. */
function missingFactors(trained: BlendedModel, part: Part, blend: Blend): number[] {
  const sources = trained.distances.length
  const random = createSeededRandom(1)
  const before = quantileOf(sampledErrors(trained, part, { blend, change: (row) => row }), 0.9)
  const factors = [1]
  for (let missing = 1; missing <= Math.min(missingMax, sources - 1); missing++) {
    const change = (row: Float64Array): Float64Array => {
      const silent = randomSources(sources, missing, random)
      return row.map((value, column) =>
        column < 2 * sources && silent.has(column % sources) ? Number.NaN : value,
      )
    }
    const after = quantileOf(sampledErrors(trained, part, { blend, change }), 0.9)
    factors.push(before > 0 ? Math.max(factors.at(-1)!, after / before) : 1)
  }
  return factors
}

/**
 * Whether the last known value of a late source predicts better in place of the missing one than as an
 * earlier one.
 */
function isHeldBetter(trained: BlendedModel, part: Part, blend: Blend): boolean {
  const sources = trained.distances.length
  const errorWith = (late: (row: Float64Array, source: number) => number): number => {
    const random = createSeededRandom(1)
    const change = (row: Float64Array): Float64Array =>
      row.map((value, column) => (column < sources && random() < lostShare ? late(row, column) : value))
    return rootMeanSquare(sampledErrors(trained, part, { blend, change }))
  }
  return errorWith((row, source) => row[sources + source]!) <= errorWith(() => Number.NaN)
}

interface Sampling {
  readonly blend: Blend
  readonly change: (row: Float64Array) => Float64Array
}

/**
 * Absolute errors on a sample of the rows, after a change of each row: the residual of validation with
 * the difference that the change makes.
 */
function sampledErrors(trained: BlendedModel, { rows, times }: Part, { blend, change }: Sampling): number[] {
  const step = Math.max(1, Math.floor(rows.length / sampledRows))
  return [...rows.keys()]
    .filter((i) => i % step === 0)
    .map((i) => {
      const row = rows[i]!.slice(0, -1)
      const changed = blendedValue(trained, change(row), times[i]!)
      return Math.abs(blend.residuals[i]! + blendedValue(trained, row, times[i]!) - changed)
    })
    .filter(Number.isFinite)
}

function randomSources(sources: number, count: number, random: () => number): ReadonlySet<number> {
  const chosen = new Set<number>()
  while (chosen.size < count) chosen.add(Math.floor(random() * sources))
  return chosen
}
