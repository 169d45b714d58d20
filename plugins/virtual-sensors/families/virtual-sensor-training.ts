/**
 * Trains a virtual sensor. With a history of the target, the training aligns the histories and keeps the
 * sources that correlate. It weighs the families by validation, and fits those with a weight to all rows.
 * Without a history the sources themselves decide. Pure; it takes up to seconds and runs in a worker
 * thread.
 */
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type Blend, blendOf } from './blending.ts'
import { type Family, families, fittedBase, type Part } from './fitting.ts'
import { type IntervalModel, intervalModelOf, quantileOf, rootMeanSquare, spreadOf } from './intervals.ts'
import { trainWithoutHistory } from './no-history.ts'
import { blendedValue } from './prediction.ts'
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
  progress(1)
  return { ...trained, interval }
}

function intervalOfBlend(
  trained: Omit<VirtualSensorModel, 'interval'>,
  part: Part,
  blend: Blend,
): IntervalModel {
  const sources = trained.sources.length
  const cases = part.rows.map((row, i) => ({
    predicted: blend.predicted[i]!,
    spread: spreadOf(row, sources),
    residual: blend.residuals[i]!,
  }))
  return intervalModelOf(cases, missingFactors(trained, part, blend))
}

const missingMax = 3
const missingRows = 120

/** How much wider the errors get without some of the sources, on a sample of the rows. */
function missingFactors(trained: Omit<VirtualSensorModel, 'interval'>, part: Part, blend: Blend): number[] {
  const sources = trained.sources.length
  const random = createSeededRandom(1)
  const step = Math.max(1, Math.floor(part.rows.length / missingRows))
  const sampled = [...part.rows.keys()].filter((i) => i % step === 0)
  const factors = [1]
  for (let missing = 1; missing <= Math.min(missingMax, sources - 1); missing++) {
    // The change that the missing sources cause is added to the residual of validation.
    const errors = sampled.map((i) => {
      const row = part.rows[i]!.slice(0, -1)
      const whole = blendedValue(trained, row, part.times[i]!)
      for (let left = missing; left > 0; ) {
        const source = Math.floor(random() * sources)
        if (Number.isNaN(row[source]!)) continue
        for (let column = source; column < 2 * sources; column += sources) row[column] = Number.NaN
        left--
      }
      return Math.abs(blend.residuals[i]! + whole - blendedValue(trained, row, part.times[i]!))
    })
    const before = quantileOf(
      sampled.map((i) => Math.abs(blend.residuals[i]!)),
      0.9,
    )
    factors.push(before > 0 ? Math.max(factors.at(-1)!, quantileOf(errors, 0.9) / before) : factors.at(-1)!)
  }
  return factors
}
