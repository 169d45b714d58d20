/**
 * `npm run bench -- ingest|stages|http|query|history|subscriptions|footprint [--quick]`: each prints our figure, the raw
 * floor of the same machine measured in the same run, and the ratio. Absolute figures of a shared machine mean little;
 * ratios do.
 */
const benches: Readonly<Record<string, () => Promise<(options: { quick: boolean }) => Promise<void>>>> = {
  ingest: async () => (await import('./ingest.ts')).benchIngest,
  stages: async () => (await import('./stages.ts')).benchStages,
  http: async () => (await import('./http.ts')).benchHttp,
  query: async () => (await import('./query.ts')).benchQuery,
  history: async () => (await import('./history.ts')).benchHistory,
  subscriptions: async () => (await import('./subscriptions.ts')).benchSubscriptions,
  footprint: async () => (await import('./footprint.ts')).benchFootprint,
}

const [name = '', ...flags] = process.argv.slice(2)
const load = benches[name]
if (load === undefined) {
  process.stderr.write(`usage: npm run bench -- ${Object.keys(benches).join('|')} [--quick]\n`)
  process.exit(64)
}
const run = await load()
await run({ quick: flags.includes('--quick') })
process.exit(0)
