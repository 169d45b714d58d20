/**
 * `npm run bench -- ingest|stages|http|query|history|subscriptions|footprint|batches|soak|uplink|discovery|quality|anomalies|models|faults|orchestrator|compare [--quick] [--minutes N]
 * [--only SCENE] [--plugins none|default] [--against CHECKOUT]`: each prints our figure, the raw floor of the same machine measured in the same run, and the ratio. `compare` prints the figures of another version in place of a floor.
 * Absolute figures of a shared machine mean little; ratios do. Batches and the soak judge memory, which has no floor, and
 * exit with 1 when it grows.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

interface Options {
  readonly quick: boolean
  readonly minutes: number
  readonly only: string | undefined
  /** Another version, for `compare`. */
  readonly against: string | undefined
}

type Benchmark = (options: Options) => Promise<void>

const benches: Readonly<Record<string, () => Promise<Benchmark>>> = {
  ingest: async () => (await import('./ingest.ts')).benchIngest,
  stages: async () => (await import('./stages.ts')).benchStages,
  http: async () => (await import('./http.ts')).benchHttp,
  query: async () => (await import('./query.ts')).benchQuery,
  history: async () => (await import('./history.ts')).benchHistory,
  subscriptions: async () => (await import('./subscriptions.ts')).benchSubscriptions,
  batches: async () => (await import('./batches.ts')).benchBatches,
  uplink: async () => (await import('./uplink.ts')).benchUplink,
  discovery: async () => (await import('./discovery.ts')).benchDiscovery,
  quality: async () => (await import('./quality.ts')).benchQuality,
  anomalies: async () => (await import('./anomalies.ts')).benchAnomalies,
  models: async () => (await import('./models.ts')).benchModels,
  faults: async () => (await import('./faults.ts')).benchFaults,
  orchestrator: async () => (await import('./orchestrator.ts')).benchOrchestrator,
  soak: async () => (await import('./soak.ts')).benchSoak,
  footprint: async () => (await import('./footprint.ts')).benchFootprint,
  compare: async () => (await import('./compare.ts')).benchCompare,
}

/** Benchmarks whose goals are those of the gateway without the plugins that read every observation. */
const baseBenches: ReadonlySet<string> = new Set([
  'ingest',
  'http',
  'query',
  'history',
  'subscriptions',
  'uplink',
  'footprint',
  'compare',
])

/** The plugins that read every observation have goals of their own, so a benchmark of the base runs without and with them. */
const selections = {
  none: {
    title: 'Without quality analyser and fault detection; the goals are set for this',
    env: { SELVEDGE_QUALITY_ENABLED: 'false', SELVEDGE_FAULTS_ENABLED: 'false' },
  },
  default: {
    title: 'With the default plugins',
    env: { SELVEDGE_QUALITY_ENABLED: 'true', SELVEDGE_FAULTS_ENABLED: 'true' },
  },
} as const
type Selection = keyof typeof selections
const selectionNames = Object.keys(selections) as readonly Selection[]

const usage = `usage: npm run bench -- ${Object.keys(benches).join('|')} [--quick] [--minutes N] [--only SCENE] [--plugins ${selectionNames.join('|')}] [--against CHECKOUT]\n--plugins is taken by ${[...baseBenches].join(', ')}\n`
const [name = '', ...flags] = process.argv.slice(2)

function wrong(why: string): never {
  process.stderr.write(`${why}${usage}`)
  process.exit(64)
}

function options(): { readonly chosen: Options; readonly plugins: readonly Selection[] } {
  try {
    const { values } = parseArgs({
      args: flags,
      options: {
        quick: { type: 'boolean', default: false },
        minutes: { type: 'string', default: '30' },
        only: { type: 'string' },
        plugins: { type: 'string' },
        against: { type: 'string' },
      },
    })
    const minutes = Number(values.minutes)
    if (!(minutes > 0)) throw new TypeError('--minutes is no number')
    const plugins = selectionNames.filter((one) => values.plugins === undefined || values.plugins === one)
    if (plugins.length === 0)
      throw new TypeError(`--plugins expects ${selectionNames.join(' or ')}, got ${values.plugins}`)
    if (values.plugins !== undefined && !baseBenches.has(name))
      throw new TypeError(`${name} does not take --plugins`)
    if (name === 'compare' && values.against === undefined)
      throw new TypeError('compare needs --against CHECKOUT')
    if (values.against !== undefined && !existsSync(join(values.against, 'scripts/build.ts')))
      throw new TypeError(`--against: ${values.against} is no checkout, since scripts/build.ts is missing`)
    if (name !== 'compare' && values.against !== undefined)
      throw new TypeError(`${name} does not take --against`)
    const { quick, only, against } = values
    return { chosen: { quick, minutes, only, against }, plugins }
  } catch (error) {
    return wrong(`${(error as Error).message.split('. ', 1)[0]}\n`)
  }
}

if ([name, ...flags].some((word) => word === '--help' || word === '-h')) {
  process.stdout.write(usage)
  process.exit(0)
}
const load = Object.hasOwn(benches, name) ? benches[name] : undefined
if (load === undefined) wrong('')
const { chosen, plugins } = options()
const run = await load()
if (baseBenches.has(name))
  for (const selection of plugins) {
    const { title, env } = selections[selection]
    process.stdout.write(`\n== ${title} ==\n\n`)
    // The gateways under measurement inherit it.
    Object.assign(process.env, env)
    await run(chosen)
  }
else await run(chosen)
process.exit()
