/**
 * `npm run offline -- [--observations 260000] [--rate 2500] [--share 2]`: a gateway whose centre is away for 72 hours at 100 observations a
 * second, with 200 MB for what waits, both made smaller by the same factor and as fast as it goes. Resident memory must
 * stay flat and the file within its bounds meanwhile; when the centre comes, whatever it does not get has to lie
 * within a gap that it is told of, and gaps may claim no more than there was. Ends with 1 where that is not so.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { entitiesOf, historyOf } from '#test/judge/verdict.ts'
import { startMs, tankType, untilDone } from '#test/judge/writers.ts'
import { createFaultProxy } from '#test/kit/fault-proxy.ts'
import { startGatewayProcess } from '#test/kit/process.ts'

const { values } = parseArgs({
  options: {
    observations: { type: 'string', default: '260000' },
    rate: { type: 'string', default: '2500' },
    share: { type: 'string', default: '2' },
  },
})
const observations = Number(values.observations)
const rate = Number(values.rate)
/** One part in so many of the history is for the uplink; more than it holds has to be let go. */
const share = Number(values.share)
const whole = { observations: 72 * 3600 * 100, bytes: 200e6 }
const budget = Math.max(2 ** 20, Math.round((whole.bytes * observations) / whole.observations))
const tanks = 20
const mib = 2 ** 20
/** Growth of resident memory over the second half that is still noise. */
const growthMax = 0.15

const tell = (line: string): void => void process.stdout.write(`${line}\n`)
const complaints: string[] = []
const folder = mkdtempSync(join(tmpdir(), 'selvedge-offline-'))
const env = { SELVEDGE_HISTORY_MAX_BYTES: String(budget) }
const site = await startGatewayProcess({ dataFolder: join(folder, 'site'), env })
const hub = await startGatewayProcess({ dataFolder: join(folder, 'hub') })
const proxy = await createFaultProxy({ target: { host: '127.0.0.1', port: hub.httpPort } })
await proxy.set('refused')

const place = (): Promise<{ httpUrl: string; mqttPort: number }> => Promise.resolve(site)
const post = (path: string, body: unknown): Promise<unknown> =>
  untilDone(place, (client) => client.send('POST', path, body), [])
const idOf = (i: number): string => `urn:tank:${i}`
const observation = (i: number, step: number): object => ({
  type: 'Property',
  // Noise of six digits, which packs badly.
  value: ((Math.imul(step * tanks + i, 0x9e3779b1) >>> 8) % 1_000_000) / 1000,
  observedAt: new Date(startMs + step * 1000).toISOString(),
})
const resident = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${site.pid}/status`, 'utf8'))![1]) * 1024

await post('/ngsi-ld/v1/subscriptions', {
  id: 'urn:offline:uplink',
  type: 'Subscription',
  entities: [{ type: tankType }],
  notification: {
    endpoint: {
      uri: `${proxy.url}/ngsi-ld/v1`,
      notifierInfo: [
        { key: 'selvedge:mode', value: 'uplink' },
        { key: 'selvedge:budget-bytes', value: String(Math.round(budget / share)) },
        { key: 'selvedge:thin-seconds', value: '10' },
      ],
    },
  },
})

tell(
  `${observations} observations, ${(budget / mib).toFixed(1)} MiB of history, 1/${share} of that for the uplink`,
)
const startedAt = performance.now()
const samples: number[] = []
let steps = 0
for (; steps * tanks < observations; steps += 5) {
  const tanksNow = Array.from({ length: tanks }, (_, i) => i)
  for (let step = steps + 1; step <= steps + 5; step++) {
    const bodies = tanksNow.map((i) => ({ id: idOf(i), type: tankType, level: observation(i, step) }))
    await post('/ngsi-ld/v1/entityOperations/upsert?options=update', bodies)
  }
  const aheadMs = ((steps * tanks) / rate) * 1000 - (performance.now() - startedAt)
  if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs))
  if (steps % 100 === 0) samples.push(resident())
}
const half = samples.slice(samples.length >> 1)
const [early, late] = [half.slice(0, half.length >> 1), half.slice(half.length >> 1)].map(
  (part) => part.reduce((sum, one) => sum + one, 0) / part.length,
) as [number, number]
tell(`written in ${Math.round((performance.now() - startedAt) / 1000)} s`)
tell(`resident: ${(early / mib).toFixed(0)} MiB in the third quarter, ${(late / mib).toFixed(0)} in the last`)
if (late > early * (1 + growthMax)) complaints.push('resident memory grew')
const bytes = ['', '-wal'].reduce(
  (sum, end) => sum + statSync(join(folder, 'site', `selvedge.db${end}`)).size,
  0,
)
tell(`its files have ${(bytes / mib).toFixed(1)} MiB, log and journal included`)
if (bytes > budget + 96 * mib) complaints.push('the files are larger than history, log and journal may be')

await proxy.set('none')
const backAt = performance.now()
const isDrained = async (): Promise<boolean> => {
  const reply = await fetch(`${site.httpUrl}/selvedge/v1/uplinks`)
  return reply.ok && /"state":"live"/.test(await reply.text())
}
while (!(await isDrained()) && performance.now() - backAt < 120_000)
  await new Promise((resolve) => setTimeout(resolve, 500))
await new Promise((resolve) => setTimeout(resolve, 3000))
tell(`up again after ${Math.round((performance.now() - backAt) / 1000)} s`)

interface Gap {
  readonly gapOf: { readonly object: string }
  readonly gapFrom: { readonly value: { readonly '@value': string } }
  readonly gapTo: { readonly value: { readonly '@value': string } }
  readonly lost?: { readonly value: number }
  readonly lostAtMost?: { readonly value: number }
  readonly reason: { readonly value: string }
}
const gaps = [...(await entitiesOf(hub.httpUrl, ['HistoryGap'])).values()] as unknown as Gap[]
const byReason = Map.groupBy(gaps, ({ reason }) => reason.value)
for (const [reason, all] of byReason) tell(`gaps, ${reason}: ${all.length}`)
let arrived = 0
for (let i = 0; i < tanks; i++) {
  const id = idOf(i)
  const history = await historyOf(hub.httpUrl, id)
  const there = new Set((history.get('level ') ?? []).map((text) => Date.parse(text.split(' ', 1)[0]!)))
  const ofTank = gaps
    .filter(({ gapOf }) => gapOf.object === id)
    .map((gap) => ({
      from: Date.parse(gap.gapFrom.value['@value']),
      to: Date.parse(gap.gapTo.value['@value']),
      count: gap.lost?.value ?? gap.lostAtMost!.value,
    }))
  let missing = 0
  let untold = 0
  for (let step = 1; step <= steps; step++) {
    const at = startMs + step * 1000
    if (there.has(at)) continue
    missing++
    if (!ofTank.some(({ from, to }) => at >= from && at <= to)) untold++
  }
  arrived += there.size
  const told = ofTank.reduce((sum, { count }) => sum + count, 0)
  if (untold > 0) complaints.push(`${id} lacks ${untold} of ${missing} missing observations in its gaps`)
  if (told < missing) complaints.push(`${id}: gaps tell of ${told}, missing are ${missing}`)
}
tell(`${arrived} of ${steps * tanks} observations are at the centre`)
for (const complaint of complaints.slice(0, 20)) tell(complaint)
tell(complaints.length === 0 ? 'within bounds, and every loss is told' : `${complaints.length} complaints`)
await proxy.close()
await Promise.all([site.stop(), hub.stop()])
rmSync(folder, { recursive: true })
process.exit(complaints.length === 0 ? 0 : 1)
