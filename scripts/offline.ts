/**
 * `npm run offline -- [--observations 260000] [--share 10] [--rate 100000]`: a gateway whose centre is away for 72 hours, with
 * 100 observations a second of 100 tanks and 200 MB of history, both made smaller by one factor and as fast as it goes; of
 * the history one part in `share` is the budget of the uplink. While the centre is away resident memory must be flat, disk
 * within the bounds of history, log and journal, and what waits within the budget. When it is back, every observation is
 * at the centre or within a gap that it is told of, and gaps tell how many exactly. Ends with 1 where that is not so.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { openReader } from '#store/file/database.ts'
import { createRemovableParts } from '#store/history/oldest-parts.ts'
import { entitiesOf } from '#test/judge/entities.ts'
import { startMs, tankType } from '#test/judge/writers.ts'
import { createFaultProxy } from '#test/kit/fault-proxy.ts'
import { startGatewayProcess } from '#test/kit/process.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run offline -- [options]

A centre that is away while devices go on, 72 hours at 100 observations a second with 200 MB for the history made smaller.

  --observations N  how many are told meanwhile (default 260000, a hundredth)
  --rate N          how many a second at most (default 100000)
  --share N         the uplink may keep one so manieth of the history's bound (default 10)

Exit code: 0 memory, disk and gaps are as they should be; 1 they are not; 64 wrong usage.
`
const values = optionsOf('offline', help, {
  observations: { type: 'string', default: '260000' },
  rate: { type: 'string', default: '100000' },
  share: { type: 'string', default: '10' },
})
for (const name of ['observations', 'rate', 'share'] as const) wholeNumber('offline', name, values[name], 1)
const whole = { observations: 72 * 3600 * 100, bytes: 200e6 }
const tanks = 100
const steps = Math.ceil(Number(values.observations) / tanks)
const observations = steps * tanks
const budget = Math.max(2 ** 20, Math.round((whole.bytes * observations) / whole.observations))
const uplinkBudget = Math.round(budget / Number(values.share))
const mib = 2 ** 20
/** Growth of resident memory over the second half, by its slope, that is still noise. */
const growthMax = 0.1
const drainMs = 300_000 + Number(values.observations) / 20

const startedAt = performance.now()
const tell = (line: string): void =>
  void process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${line}\n`)
const complaints: string[] = []
const folder = mkdtempSync(join(tmpdir(), 'selvedge-offline-'))
const env = { SELVEDGE_HISTORY_MAX_BYTES: String(budget) }
const site = await startGatewayProcess({ dataFolder: join(folder, 'site'), env })
const hub = await startGatewayProcess({ dataFolder: join(folder, 'hub') })
const proxy = await createFaultProxy({ target: { host: '127.0.0.1', port: hub.httpPort } })
await proxy.set('refused')

const post = async (path: string, body: unknown): Promise<void> => {
  const request = {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  }
  const reply = await fetch(`${site.httpUrl}${path}`, request)
  const text = await reply.text()
  if (reply.status >= 300) throw new TypeError(`${path} was answered ${reply.status}: ${text.slice(0, 300)}`)
}
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const idOf = (i: number): string => `urn:tank:${i}`
const timeOf = (step: number): number => startMs + step * 1000
const observation = (i: number, step: number): object => ({
  id: idOf(i),
  type: tankType,
  level: {
    type: 'Property',
    // Noise of six digits, which packs badly.
    value: ((Math.imul(step * tanks + i, 0x9e3779b1) >>> 8) % 1_000_000) / 1000,
    observedAt: new Date(timeOf(step)).toISOString(),
  },
})

interface Sample {
  readonly written: number
  readonly residentBytes: number
  readonly historyBytes: number
  readonly fileBytes: number
}

function sample(written: number): Sample {
  const status = readFileSync(`/proc/${site.pid}/status`, 'utf8')
  const file = join(folder, 'site', 'selvedge.db')
  const database = openReader(file)
  try {
    const log = 'SELECT coalesce(sum(octet_length(body)), 0) FROM log'
    const logBytes = database.prepare<[], number>(log).pluck().get()!
    return {
      written,
      residentBytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024,
      historyBytes: createRemovableParts(database).usedBytes(logBytes),
      fileBytes: ['', '-wal'].reduce((sum, end) => sum + statSync(`${file}${end}`).size, 0),
    }
  } finally {
    database.close()
  }
}

/** Bytes an observation by which resident memory grows, by least squares. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (read: (one: Sample) => number): number =>
    samples.reduce((sum, one) => sum + read(one), 0) / samples.length
  const [x, y] = [mean((one) => one.written), mean((one) => one.residentBytes)]
  return mean((one) => (one.written - x) * (one.residentBytes - y)) / mean((one) => (one.written - x) ** 2)
}

interface Status {
  readonly state: string
  readonly waitingObservations: number
  readonly waitingBytes: number
  readonly toBeLetGo: number
  readonly roomSeconds?: number
  readonly evicted: number
}

async function statusOf(): Promise<Status> {
  const reply = await fetch(`${site.httpUrl}/selvedge/v1/uplinks`)
  return ((await reply.json()) as Status[])[0]!
}

async function write(): Promise<Sample[]> {
  const samples: Sample[] = []
  const beganAt = performance.now()
  for (let step = 1; step <= steps; step++) {
    const all = Array.from({ length: tanks }, (_, i) => observation(i, step))
    const half = all.length >> 1
    const path = '/ngsi-ld/v1/entityOperations/upsert?options=update'
    await Promise.all([post(path, all.slice(0, half)), post(path, all.slice(half))])
    const aheadMs = ((step * tanks) / Number(values.rate)) * 1000 - (performance.now() - beganAt)
    if (aheadMs > 0) await rest(aheadMs)
    if (step % Math.ceil(steps / 100) === 0) samples.push(sample(step * tanks))
  }
  return samples
}

/** Times at which the centre has an observation. */
async function timesAt(id: string): Promise<ReadonlySet<number>> {
  const times = new Set<number>()
  for (let after = 0; ; ) {
    const query = `attrs=level&options=temporalValues&timerel=after&timeAt=${new Date(after).toISOString()}`
    const reply = await fetch(`${hub.httpUrl}/ngsi-ld/v1/temporal/entities/${id}?${query}`)
    if (reply.status === 404) return times
    const { level } = (await reply.json()) as {
      level: { values: [unknown, string][] } | { values: [unknown, string][] }[]
    }
    const pairs = [level].flat().flatMap(({ values: all }) => all)
    for (const [, at] of pairs) times.add(Date.parse(at))
    if (reply.status === 200) return times
    after = Math.max(...pairs.map(([, at]) => Date.parse(at)))
  }
}

interface Gap {
  readonly gapOf: { readonly object: string }
  readonly gapFrom: { readonly value: { readonly '@value': string } }
  readonly gapTo: { readonly value: { readonly '@value': string } }
  readonly lost?: { readonly value: number }
  readonly lostAtMost?: { readonly value: number }
  readonly reason: { readonly value: string }
}

async function judgeGaps(): Promise<void> {
  const gaps = ([...(await entitiesOf(hub.httpUrl, ['HistoryGap'])).values()] as unknown as Gap[]).map(
    (gap) => ({
      of: gap.gapOf.object,
      reason: gap.reason.value,
      from: Date.parse(gap.gapFrom.value['@value']),
      to: Date.parse(gap.gapTo.value['@value']),
      lost: gap.lost?.value ?? gap.lostAtMost!.value,
      isExact: gap.lost !== undefined,
    }),
  )
  for (const [reason, all] of Map.groupBy(gaps, (gap) => gap.reason))
    tell(`gaps, ${reason}: ${all.length}, of ${all.reduce((sum, { lost }) => sum + lost, 0)} observations`)
  const sum = { there: 0, missing: 0, told: 0 }
  for (let i = 0; i < tanks; i++) {
    const id = idOf(i)
    const there = await timesAt(id)
    const own = gaps.filter((gap) => gap.of === id)
    const isIn = (at: number, some: typeof own): boolean =>
      some.some(({ from, to }) => at >= from && at <= to)
    const all = Array.from({ length: steps }, (_, step) => timeOf(step + 1))
    const missing = all.filter((at) => !there.has(at))
    const untold = missing.filter((at) => !isIn(at, own)).length
    const told = own.reduce((total, { lost }) => total + lost, 0)
    // The newest went up as the current value before its history was looked at, and may be counted all the same.
    const spare = 1
    if (untold > 0) complaints.push(`${id}: ${untold} of ${missing.length} that are missing are in no gap`)
    const isTold = own.every(({ isExact }) => isExact) ? told <= missing.length + spare : true
    if (told < missing.length || !isTold)
      complaints.push(`${id}: gaps tell of ${told}, missing are ${missing.length}`)
    // Between what is thinned some are kept; what was let go as a whole is not there.
    const whole = own.filter(({ reason }) => reason === 'budget')
    const both = [...there].filter((at) => isIn(at, whole)).length
    if (both > spare) complaints.push(`${id}: ${both} are there and in a gap of all`)
    sum.there += there.size
    sum.missing += missing.length
    sum.told += told
  }
  tell(`at the centre ${sum.there} of ${observations}; missing ${sum.missing}, told as gaps ${sum.told}`)
}

await post('/ngsi-ld/v1/subscriptions', {
  id: 'urn:offline:uplink',
  type: 'Subscription',
  entities: [{ type: tankType }],
  notification: {
    endpoint: {
      uri: `${proxy.url}/ngsi-ld/v1`,
      notifierInfo: [
        { key: 'selvedge:mode', value: 'uplink' },
        { key: 'selvedge:budget-bytes', value: String(uplinkBudget) },
        { key: 'selvedge:thin-seconds', value: '10' },
      ],
    },
  },
})
const share = ((100 * observations) / whole.observations).toFixed(1)
tell(`${observations} observations, ${share} % of 72 hours; history ${(budget / mib).toFixed(1)} MiB`)
const samples = await write()
const later = samples.slice(samples.length >> 1)
const resident = later.reduce((sum, one) => sum + one.residentBytes, 0) / later.length
const growth = slopeOf(later) * (later.at(-1)!.written - later[0]!.written)
tell(
  `written; resident ${(resident / mib).toFixed(0)} MiB in the second half, where it grew by ${(growth / mib).toFixed(1)}`,
)
if (growth > resident * growthMax) complaints.push('resident memory grew')
const most = (read: (one: Sample) => number): number => Math.max(...samples.map(read))
const [history, files] = [most((one) => one.historyBytes), most((one) => one.fileBytes)]
tell(`at the most ${(history / mib).toFixed(1)} MiB of history, ${(files / mib).toFixed(1)} of files`)
if (history > budget) complaints.push('the history is larger than it may be')
// Log rows have about as much around them as in them; the journal is copied back between two commits.
const filesMax = budget + 2 * limits.logBytesMax.value + 2 * limits.walPagesMax.value * 4096
if (files > filesMax) complaints.push('the files are larger than history, log and journal may be')

let away = await statusOf()
for (let i = 0; i < 90 && away.waitingBytes > uplinkBudget; i++) {
  await rest(1000)
  away = await statusOf()
}
const hours = ((away.roomSeconds ?? Number.NaN) / 3600).toFixed(2)
tell(
  `offline: ${away.waitingObservations} wait with ${away.waitingBytes} of ${uplinkBudget} bytes, ${away.toBeLetGo} to be let go, room for ${hours} h`,
)
if (away.waitingBytes > uplinkBudget) complaints.push('more waits than the budget allows')
if (away.roomSeconds === undefined) complaints.push('the room that is left is not told')

await proxy.set('none')
const backAt = performance.now()
while ((await statusOf()).state !== 'live' && performance.now() - backAt < drainMs) await rest(500)
await rest(3000)
tell(
  `live again after ${Math.round((performance.now() - backAt) / 1000)} s; evicted ${(await statusOf()).evicted}`,
)
await judgeGaps()
for (const complaint of complaints.slice(0, 20)) tell(complaint)
tell(complaints.length === 0 ? 'within bounds, and every loss is told' : `${complaints.length} complaints`)
await proxy.close()
await Promise.all([site.stop(), hub.stop()])
rmSync(folder, { recursive: true })
process.exit(complaints.length === 0 ? 0 : 1)
