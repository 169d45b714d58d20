/**
 * Evaluates the virtual sensor of one target: it is trained on the first 70 % of the time by the code of
 * the product, and its predictions of the last 30 % are compared with the simple baselines.
 */
import { families } from '#plugins/virtual-sensors/families/fitting.ts'
import { type LatestReading, lookbackMs, predict } from '#plugins/virtual-sensors/families/prediction.ts'
import { binOfDay, dayBinsOf } from '#plugins/virtual-sensors/families/predictors.ts'
import type {
  TrainingInput,
  VirtualSensorModel,
} from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import { trainVirtualSensor } from '#plugins/virtual-sensors/families/virtual-sensor-training.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type Neighbour, neighboursOf, type SensorSet } from './sensor-sets.ts'

const trainingShare = 0.7
/** Runs with losses predict every fifth slot: each set of missing sources is solved again. */
const robustnessEvery = 5

type Target = SensorSet['sensors'][number]

export interface TargetResult {
  readonly name: string
  readonly error: number
  readonly simple: Readonly<Record<string, number>>
  readonly covered: number
  readonly lossy: number
  readonly dead: number
  readonly rSquared: number
  readonly absolute: number
  readonly seconds: number
}
/** The readings of a source from `from` on, without those that are missing or lost. */
function readingsOf(set: SensorSet, values: Float64Array, range: readonly [number, number]) {
  const slots = Array.from({ length: range[1] - range[0] }, (_, i) => range[0] + i).filter(
    (slot) => !Number.isNaN(values[slot]!),
  )
  return {
    times: Float64Array.from(slots, (slot) => set.begin + slot * set.slotMs),
    values: Float64Array.from(slots, (slot) => values[slot]!),
  }
}

function inputOf(
  set: SensorSet,
  target: Target,
  neighbours: readonly Neighbour[],
  count: number,
): TrainingInput {
  const { latitude, longitude } = target
  return {
    target: { latitude, longitude, ...readingsOf(set, target.values, [0, count]) },
    sources: neighbours.map(({ sensor, distance }) => ({
      id: sensor.id,
      distance,
      latitude: sensor.latitude,
      longitude: sensor.longitude,
      ...readingsOf(set, sensor.values, [0, count]),
    })),
    slotMs: set.slotMs,
  }
}

interface Run {
  readonly truths: readonly number[]
  readonly values: readonly number[]
  readonly covered: number
}

/** Predicts every slot of the test part; `isLost` says which readings of sources do not arrive. */
function testRun(
  set: SensorSet,
  target: Target,
  model: VirtualSensorModel,
  { isLost, every: stride }: { isLost: (source: number, slot: number) => boolean; every: number },
): Run {
  const count = target.values.length
  const from = Math.floor(count * trainingShare)
  const back = Math.ceil(lookbackMs(model) / set.slotMs)
  const sources = model.sources.map((id) => set.sensors.find((sensor) => sensor.id === id)!)
  const arrived = sources.map(({ values }, i) =>
    values.map((value, slot) => (slot >= from && isLost(i, slot) ? Number.NaN : value)),
  )
  const truths: number[] = []
  const values: number[] = []
  let covered = 0
  for (let slot = from; slot < count; slot += stride) {
    const truth = target.values[slot]!
    if (Number.isNaN(truth)) continue
    const latest = arrived.map((of) => latestOf(set, of, [Math.max(0, slot - back), slot]))
    const found = predict(model, latest, set.begin + slot * set.slotMs)
    if (found === undefined) continue
    truths.push(truth)
    values.push(found.value)
    if (truth >= found.low && truth <= found.high) covered++
  }
  return { truths, values, covered: covered / truths.length }
}

function latestOf(
  set: SensorSet,
  values: Float64Array,
  [from, to]: readonly [number, number],
): LatestReading | undefined {
  const { times, values: known } = readingsOf(set, values, [from, to + 1])
  if (times.length === 0) return undefined
  const readings = [...times].map((time, i) => ({ time, value: known[i]! }))
  return { ...readings.at(-1)!, earlier: readings.slice(0, -1) }
}

/**
 * Root mean square errors of the simple baselines over the test part, each with all sources in the
 * radius.
 */
function simpleErrors(set: SensorSet, target: Target, neighbours: readonly Neighbour[]) {
  const count = target.values.length
  const from = Math.floor(count * trainingShare)
  const profile = profileOf(set, target, from)
  const squares = new Map<string, number>()
  const counts = new Map<string, number>()
  const add = (name: string, error: number): void => {
    if (Number.isNaN(error)) return
    squares.set(name, (squares.get(name) ?? 0) + error ** 2)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  for (let slot = from; slot < count; slot++) {
    const truth = target.values[slot]!
    if (Number.isNaN(truth)) continue
    const held = neighbours.flatMap(({ sensor, distance }) => {
      const value = [0, 1, 2, 3].map((back) => sensor.values[slot - back]!).find((one) => !Number.isNaN(one))
      return value === undefined ? [] : [{ value, distance: Math.max(distance, 1) }]
    })
    const inverse = (power: number): number => {
      const sum = held.reduce((total, { distance }) => total + distance ** -power, 0)
      return held.reduce((total, { value, distance }) => total + (value * distance ** -power) / sum, 0)
    }
    if (held.length > 0) {
      add('nearest', truth - held[0]!.value)
      add('mean', truth - inverse(0))
      if (set.radius !== undefined) {
        add('inverse1', truth - inverse(1))
        add('inverse2', truth - inverse(2))
      }
    }
    add('climatology', truth - profile[binOfDay(set.begin + slot * set.slotMs, profile.length)]!)
  }
  return Object.fromEntries([...squares].map(([name, sum]) => [name, Math.sqrt(sum / counts.get(name)!)]))
}

function profileOf(set: SensorSet, target: Target, count: number): number[] {
  const bins = dayBinsOf(set.slotMs)
  const groups = Array.from({ length: bins }, (): number[] => [])
  for (let slot = 0; slot < count; slot++) {
    const value = target.values[slot]!
    if (!Number.isNaN(value)) groups[binOfDay(set.begin + slot * set.slotMs, bins)]!.push(value)
  }
  const all = meanOf(groups.flat())
  return groups.map((group) => (group.length === 0 ? all : meanOf(group)))
}

/** The figures of one target, or why it has no virtual sensor; `family` is the only one to choose from. */
export function evaluateTarget(set: SensorSet, target: Target, family?: string): TargetResult | string {
  const count = Math.floor(target.values.length * trainingShare)
  const neighbours = neighboursOf(set, target, count)
  const begun = performance.now()
  const outcome = trainVirtualSensor(
    inputOf(set, target, neighbours, count),
    undefined,
    families.filter(({ name }) => family === undefined || name === family),
  )
  const seconds = (performance.now() - begun) / 1000
  if ('failure' in outcome) return outcome.failure
  const { model } = outcome
  const run = testRun(set, target, model, { isLost: () => false, every: 1 })
  const random = createSeededRandom(1)
  const every = robustnessEvery
  const plain = testRun(set, target, model, { isLost: () => false, every })
  const lossy = testRun(set, target, model, { isLost: () => random() < 0.2, every })
  const deadSource = Math.floor(random() * model.sources.length)
  const isDead = (source: number): boolean => source === deadSource
  const dead = model.sources.length < 2 ? plain : testRun(set, target, model, { isLost: isDead, every })
  const error = errorOf(run)
  const mean = meanOf(run.truths)
  return {
    name: target.id,
    error,
    simple: simpleErrors(set, target, neighbours),
    covered: run.covered,
    lossy: errorOf(lossy) / errorOf(plain),
    dead: errorOf(dead) / errorOf(plain),
    rSquared: 1 - error ** 2 / meanOf(run.truths.map((truth) => (truth - mean) ** 2)),
    absolute: meanOf(run.truths.map((truth, i) => Math.abs(truth - run.values[i]!))),
    seconds,
  }
}

/**
 * The error relative to inverse distance squared without a history of the target: the test part is
 * predicted from a model of the neighbours alone.
 */
export function evaluateNewTarget(set: SensorSet, target: Target): number | undefined {
  const count = Math.floor(target.values.length * trainingShare)
  const neighbours = neighboursOf(set, target, count)
  const { sources, slotMs } = inputOf(set, target, neighbours, count)
  const { latitude, longitude } = target
  const outcome = trainVirtualSensor({ target: { latitude, longitude }, sources, slotMs })
  if ('failure' in outcome) return undefined
  const run = testRun(set, target, outcome.model, { isLost: () => false, every: 1 })
  return errorOf(run) / simpleErrors(set, target, neighbours)['inverse2']!
}

const errorOf = ({ truths, values }: Run): number =>
  Math.sqrt(meanOf(truths.map((truth, i) => (truth - values[i]!) ** 2)))

export const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
