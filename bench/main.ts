/**
 * `npm run bench -- ingest|stages|http|query|history|subscriptions|footprint|batches|soak|uplink|discovery [--quick] [--minutes N]
 * [--only SCENE]`: each prints our figure, the raw floor of the same machine measured in the same run, and the ratio.
 * Absolute figures of a shared machine mean little; ratios do. Batches and the soak judge memory, which has no floor, and
 * exit with 1 when it grows.
 */
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
  soak: async () => (await import('./soak.ts')).benchSoak,
  footprint: async () => (await import('./footprint.ts')).benchFootprint,
}

const [name = '', ...flags] = process.argv.slice(2)
const load = benches[name]
if (load === undefined) {
  process.stderr.write(
    `usage: npm run bench -- ${Object.keys(benches).join('|')} [--quick] [--minutes N] [--only SCENE]\n`,
  )
  process.exit(64)
}
const run = await load()
const minutes = Number(flags[flags.indexOf('--minutes') + 1] ?? 30) || 30
const only = flags.includes('--only') ? flags[flags.indexOf('--only') + 1] : undefined
await run({ quick: flags.includes('--quick'), minutes, only })
process.exit()
