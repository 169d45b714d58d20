/**
 * `npm run eval:virtual -- --data DIR`: lets every sensor of the sets in turn play the broken one, trains
 * its virtual sensor on the first 70 % of the time by the code of the product, and compares its
 * predictions of the last 30 % with the simple baselines. Ends with 1 below a target.
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
import { optionsOf, wholeNumber, wrongUsage } from './options.ts'
import { type Neighbour, neighboursOf, type SensorSet, sensorSets } from './sensor-sets.ts'

const help = `Usage: npm run eval:virtual -- --data DIR [--sets WORDS] [--every N] [--family NAME]

  --data DIR    the folder above beijing_air, la_traffic, intel_lab and aarhus_parking
  --sets WORDS  only the sets whose names contain one of these words, separated by commas
  --every N     only every Nth sensor as target (default 1)
  --family NAME only this family, such as "ridge", instead of the choice
`
const trainingShare = 0.7

type Target = SensorSet['sensors'][number]

interface TargetResult {
  readonly name: string
  readonly family: string
  readonly error: number
  readonly simple: Readonly<Record<string, number>>
  readonly covered: number
  readonly lossy: number
  readonly dead: number
  readonly rSquared: number
  readonly absolute: number
  readonly seconds: number
  readonly microseconds: number
}

const {
  data,
  sets: words,
  every = '1',
  family: only,
} = optionsOf('eval:virtual', help, {
  data: { type: 'string' },
  sets: { type: 'string' },
  every: { type: 'string' },
  family: { type: 'string' },
})
if (data === undefined) wrongUsage('eval:virtual', '--data is missing')
const step = wholeNumber('eval:virtual', 'every', every, 1)
const chosen = sensorSets(data).filter(
  ({ name }) => words === undefined || words.split(',').some((word) => name.includes(word)),
)
const choice = families.filter(({ name }) => only === undefined || name === only)
if (chosen.length === 0) wrongUsage('eval:virtual', `there is no set in ${data}`)

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
  isLost: (source: number, slot: number) => boolean,
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
  for (let slot = from; slot < count; slot++) {
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

function evaluate(set: SensorSet, target: Target): TargetResult | string {
  const count = Math.floor(target.values.length * trainingShare)
  const neighbours = neighboursOf(set, target, count)
  const begun = performance.now()
  const outcome = trainVirtualSensor(inputOf(set, target, neighbours, count), undefined, choice)
  const seconds = (performance.now() - begun) / 1000
  if ('failure' in outcome) return outcome.failure
  const { model } = outcome
  const begunTest = performance.now()
  const run = testRun(set, target, model, () => false)
  const microseconds = ((performance.now() - begunTest) * 1000) / run.truths.length
  const random = createSeededRandom(1)
  const lossy = testRun(set, target, model, () => random() < 0.2)
  const deadSource = Math.floor(random() * model.sources.length)
  const dead = model.sources.length < 2 ? run : testRun(set, target, model, (source) => source === deadSource)
  const error = errorOf(run)
  const mean = meanOf(run.truths)
  return {
    name: target.id,
    family: model.family,
    error,
    simple: simpleErrors(set, target, neighbours),
    covered: run.covered,
    lossy: errorOf(lossy) / error,
    dead: errorOf(dead) / error,
    rSquared: 1 - error ** 2 / meanOf(run.truths.map((truth) => (truth - mean) ** 2)),
    absolute: meanOf(run.truths.map((truth, i) => Math.abs(truth - run.values[i]!))),
    seconds,
    microseconds,
  }
}

const errorOf = ({ truths, values }: Run): number =>
  Math.sqrt(meanOf(truths.map((truth, i) => (truth - values[i]!) ** 2)))
const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
const bestSimple = ({ simple }: TargetResult): number => Math.min(...Object.values(simple))
const shown = (value: number, digits = 3): string =>
  (Number.isFinite(value) ? value.toFixed(digits) : '-').padStart(8)

for (const set of chosen) {
  const results = set.sensors.filter((_, i) => i % step === 0).map((target) => evaluate(set, target))
  const failures = Map.groupBy(
    results.filter((result) => typeof result === 'string'),
    (failure) => failure,
  )
  const good = results.filter((result) => typeof result !== 'string')
  if (process.env['DETAIL'] !== undefined)
    for (const one of good)
      process.stdout.write(
        `  ${one.name.padEnd(16)} ${shown(one.error)} ${shown(one.error / bestSimple(one))} ${shown(one.covered)} ${one.family} ${JSON.stringify(one.simple)}\n`,
      )
  const ratio = (of: (one: TargetResult) => number): string =>
    shown(meanOf(good.map((one) => one.error / of(one))))
  const mean = (of: (one: TargetResult) => number, digits = 3): string => shown(meanOf(good.map(of)), digits)
  process.stdout.write(
    `${set.name.padEnd(18)} n ${good.length} rmse ${mean((one) => one.error)} /idw2 ${ratio((one) => one.simple['inverse2']!)} /simple ${ratio(bestSimple)} /clim ${ratio((one) => one.simple['climatology']!)} <=1.03 ${shown(good.filter((one) => one.error <= 1.03 * bestSimple(one)).length / good.length)} cover ${mean((one) => one.covered)} loss ${mean((one) => one.lossy)} dead ${mean((one) => one.dead)} r2 ${mean((one) => one.rSquared)} mae ${mean((one) => one.absolute)} train s ${mean((one) => one.seconds, 2)} us ${mean((one) => one.microseconds, 0)} fail ${JSON.stringify(Object.fromEntries([...failures].map(([k, v]) => [k, v.length])))} fam ${JSON.stringify(Object.fromEntries([...Map.groupBy(good, ({ family }) => family)].map(([k, v]) => [k, v.length])))}\n`,
  )
}
