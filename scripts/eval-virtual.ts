/**
 * `npm run eval:virtual -- --data DIR`: lets every sensor of the sets in turn play the broken one, trains
 * its virtual sensor on the first 70 % of the time by the code of the product, and compares its
 * predictions of the last 30 % with the simple baselines.
 */
import { families } from '#plugins/virtual-sensors/families/fitting.ts'
import { optionsOf, wholeNumber, wrongUsage } from './options.ts'
import { type SensorSet, sensorSets } from './sensor-sets.ts'
import { durationOf, startTaskThreads } from './task-threads.ts'
import type { VirtualTask, VirtualThreadSetup } from './virtual-target-thread.ts'
import { meanOf, type TargetResult } from './virtual-targets.ts'

const help = `Usage: npm run eval:virtual -- --data DIR [--sets WORDS] [--every N] [--family NAME]
                             [--workers N] [--cache DIR] [--targets]

  --data DIR     the folder above beijing_air, la_traffic, intel_lab and aarhus_parking
  --sets WORDS   only the sets whose names contain one of these words, separated by commas
  --every N      only every Nth sensor as target (default 1)
  --family NAME  only this family, such as "ridge", instead of the choice
  --workers N    threads that train and predict at the same time (default 1)
  --cache DIR    keep the result of each target in this folder; a change of code or data computes it anew
  --targets      print a line for each target, too

Progress and the expected time stand on standard error.
Exit code: 0 every goal is reached; 1 a goal is missed; 64 wrong usage.
`

const options = optionsOf('eval:virtual', help, {
  data: { type: 'string' },
  sets: { type: 'string' },
  every: { type: 'string' },
  family: { type: 'string' },
  workers: { type: 'string' },
  cache: { type: 'string' },
  targets: { type: 'boolean' },
})
const { data, sets: words, family } = options
if (data === undefined) wrongUsage('eval:virtual', '--data is missing')
if (family !== undefined && !families.some(({ name }) => name === family))
  wrongUsage('eval:virtual', `--family expects one of: ${families.map(({ name }) => name).join(', ')}`)
const step = wholeNumber('eval:virtual', 'every', options.every ?? '1', 1)
const workers = wholeNumber('eval:virtual', 'workers', options.workers ?? '1', 1)
const chosen = sensorSets(data).filter(
  ({ name }) => words === undefined || words.split(',').some((word) => name.includes(word)),
)
if (chosen.length === 0) wrongUsage('eval:virtual', `there is no set in ${data}`)

const begun = performance.now()
const tasksOf = ({ name: set, sensors }: SensorSet, kind: VirtualTask['kind']): VirtualTask[] =>
  [...sensors.keys()].filter((i) => i % step === 0).map((index) => ({ kind, set, index }))
const withPlaces = chosen.filter(({ radius }) => radius !== undefined)
const slotsOf = new Map(chosen.map(({ name, sensors }) => [name, sensors[0]!.values.length]))
const threads = startTaskThreads<VirtualTask, TargetResult | string | number | undefined>({
  name: 'eval:virtual',
  module: new URL('./virtual-target-thread.ts', import.meta.url),
  setup: { data, family, cache: options.cache } satisfies VirtualThreadSetup,
  workers,
  planned: [
    ...chosen.flatMap((set) => tasksOf(set, 'trained')),
    ...withPlaces.flatMap((set) => tasksOf(set, 'new')),
  ],
  workOf: ({ kind, set }) => slotsOf.get(set)! * (kind === 'new' ? 0.3 : 1),
})

const bestSimple = ({ simple }: TargetResult): number => Math.min(...Object.values(simple))

type Column = readonly [title: string, digits: number, of: (one: TargetResult) => number]

const columns: readonly Column[] = [
  ['RMSE', 3, (one) => one.error],
  ['MAE', 3, (one) => one.absolute],
  ['R2', 3, (one) => one.rSquared],
  ['/IDW2', 3, (one) => one.error / one.simple['inverse2']!],
  ['/simple', 3, (one) => one.error / bestSimple(one)],
  ['/climat', 3, (one) => one.error / one.simple['climatology']!],
  ['<=3%', 3, (one) => Number(one.error <= 1.03 * bestSimple(one))],
  ['cover', 3, (one) => one.covered],
  ['loss', 3, (one) => one.lossy],
  ['dead', 3, (one) => one.dead],
  ['train s', 2, (one) => one.seconds],
]

interface Goal {
  readonly set: string
  readonly column: string
  readonly most: number
}

/** The goals for each set. Those of all sets together stand below. */
const goals: readonly Goal[] = [
  { set: 'speed', column: '/IDW2', most: 0.36 },
  { set: 'speed', column: '/climat', most: 0.5 },
  { set: 'PM2.5 60 km', column: '/IDW2', most: 0.85 },
  { set: 'NO2 60 km', column: '/IDW2', most: 0.93 },
  { set: 'O3 60 km', column: '/IDW2', most: 0.9 },
  { set: 'Intel temperature', column: '/simple', most: 0.55 },
  { set: 'parking occupancy', column: '/simple', most: 0.85 },
]
const goalsNew: Readonly<Record<string, number>> = {
  'PM2.5 60 km': 0.93,
  'NO2 60 km': 0.94,
  'O3 60 km': 0.96,
  speed: 0.8,
}

const write = (text: string): void => void process.stdout.write(`${text}\n`)
const shown = (value: number, digits = 3): string =>
  (Number.isFinite(value) ? value.toFixed(digits) : '-').padStart(9)
let isMissed = false
function writeGoal(name: string, value: number, [least, most]: readonly [number, number]): void {
  const isReached = value >= least && value <= most
  isMissed ||= !isReached
  const bounds =
    least > 0
      ? most < Number.POSITIVE_INFINITY
        ? `${least} to ${most}`
        : `at least ${least}`
      : `at most ${most}`
  write(`  ${isReached ? 'reached' : 'MISSED '} ${name.padEnd(34)} ${shown(value)}  (${bounds})`)
}

function writeRow(name: string, of: readonly TargetResult[], rest: string): void {
  const cells = columns.map(([, digits, figure]) => shown(meanOf(of.map(figure)), digits))
  write(`${name.padEnd(18)}  ${String(of.length).padStart(7)}${cells.join('')}  ${rest}`.trimEnd())
}

const tables = new Map<string, readonly TargetResult[]>()
write(`${'set'.padEnd(18)}  targets${columns.map(([title]) => title.padStart(9)).join('')}  without a model`)
for (const set of chosen) {
  const results = (await threads.run(tasksOf(set, 'trained'))) as (TargetResult | string)[]
  const good = results.filter((result) => typeof result !== 'string')
  const failures = Map.groupBy(
    results.filter((result) => typeof result === 'string'),
    (failure) => failure,
  )
  tables.set(set.name, good)
  if (options.targets === true) for (const one of good) writeRow(`  ${one.name}`, [one], '')
  const rest = [...failures].map(([failure, { length }]) => `${failure} ${length}`).join(', ')
  writeRow(set.name, good, rest)
}

write('\nno history: RMSE / IDW2')
const news = new Map<string, number>()
for (const set of withPlaces) {
  const ratios = (await threads.run(tasksOf(set, 'new'))).filter((ratio) => typeof ratio === 'number')
  news.set(set.name, meanOf(ratios))
  write(`${set.name.padEnd(18)}  ${String(ratios.length).padStart(7)}${shown(meanOf(ratios))}`)
}

await threads.close()

write('\ngoals')
for (const { set, column, most } of goals) {
  const of = columns.find(([title]) => title === column)![2]
  const results = tables.get(set)
  if (results !== undefined) writeGoal(`${set} ${column}`, meanOf(results.map(of)), [0, most])
}
for (const [set, ratio] of news) {
  const most = goalsNew[set]
  if (most !== undefined) writeGoal(`${set} without history`, ratio, [0, most])
}
for (const [set, results] of tables) {
  writeGoal(`${set} coverage`, meanOf(results.map((one) => one.covered)), [0.87, 0.93])
  writeGoal(`${set} 20 % loss`, meanOf(results.map((one) => one.lossy)), [0, 1.03])
}
const all = [...tables.values()].flat()
const share = meanOf(all.map((one) => Number(one.error <= 1.03 * bestSimple(one))))
writeGoal('targets at most 3 % worse', share, [0.98, Number.POSITIVE_INFINITY])
write(
  `\n${isMissed ? 'A goal is missed' : 'All goals are reached'} (${durationOf(performance.now() - begun)}).`,
)
process.exitCode = isMissed ? 1 : 0
