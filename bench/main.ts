/**
 * `npm run bench -- ingest|stages|http|query|history|subscriptions|footprint|batches|soak|uplink|discovery|quality|anomalies|models|faults|orchestrator [--quick] [--minutes N]
 * [--only SCENE]`: each prints our figure, the raw floor of the same machine measured in the same run, and the ratio.
 * Absolute figures of a shared machine mean little; ratios do. Batches and the soak judge memory, which has no floor, and
 * exit with 1 when it grows.
 */
import { parseArgs } from 'node:util'

interface Options {
  readonly quick: boolean
  readonly minutes: number
  readonly only: string | undefined
}

const benches: Readonly<Record<string, () => Promise<(options: Options) => Promise<void>>>> = {
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
}

const usage = `usage: npm run bench -- ${Object.keys(benches).join('|')} [--quick] [--minutes N] [--only SCENE]\n`
const [name = '', ...flags] = process.argv.slice(2)

function wrong(why: string): never {
  process.stderr.write(`${why}${usage}`)
  process.exit(64)
}

function options(): Options {
  try {
    const { values } = parseArgs({
      args: flags,
      options: {
        quick: { type: 'boolean', default: false },
        minutes: { type: 'string', default: '30' },
        only: { type: 'string' },
      },
    })
    const minutes = Number(values.minutes)
    if (!(minutes > 0)) throw new TypeError('--minutes is no number')
    return { quick: values.quick, minutes, only: values.only }
  } catch (error) {
    return wrong(`${(error as Error).message.split('. ', 1)[0]}\n`)
  }
}

if ([name, ...flags].some((word) => word === '--help' || word === '-h')) {
  process.stdout.write(usage)
  process.exit(0)
}
const load = benches[name]
if (load === undefined) wrong('')
const chosen = options()
const run = await load()
await run(chosen)
process.exit()
