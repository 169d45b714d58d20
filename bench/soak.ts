/**
 * `npm run bench -- soak [--minutes 30]`: mixed load at a steady rate, and whether memory stays flat under it. Devices
 * publish, clients patch, query, follow links, subscribe and leave again, read history; batches of 10,000 entities stream
 * through, a context source has a part in what one tenant asks, and notifications are taken in every way there is. Under load
 * the gateway holds garbage that comes and goes by tens of MB, so what stays is measured while it rests, after a third of
 * the load and at the end: its resident memory, its live heap, and what is in use of its native one. The run fails when one of
 * them grows faster than its goal, when a request fails, or when the notifications that came are not those that were expected.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { fill } from './fill.ts'
import { createLiveHeap, type LiveHeap } from './live-heap.ts'
import { nativeHeapBytes } from './native-heap.ts'
import { memory, percentile, startPinned } from './processes.ts'
import { end, layOutGateway, type Server, startGateway } from './servers.ts'
import { bodyOf, pathOf, type RequestKind, stationId, stationType } from './site.ts'
import { type Listeners, listen, subscriptionOf } from './soak-notified.ts'
import { askAt, askBoth, comeAndGo, share } from './soak-shared.ts'

const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
const stations = 5000
const devices = 100
const messagesPerSecond = 200
const requestsPerSecond = 60
/** MB that a minute of load may add to what is in use at rest. A leak of a hundred bytes for each message and request would be 1.5. */
const growthMax = { liveHeap: 0.1, native: 0.25 } as const
/** The same of resident memory: how many free pieces of the native heap stay resident makes up to 15 MB of difference. */
const residentGrowthMax = 1
/** A quiet gateway gives memory back after twenty seconds. */
const restSeconds = 40
/** Caches of SQLite come and go within so many seconds even so. */
const nativeSeconds = 15
const batchSize = 100
/** Of so many bytes each that together they are more than a body may be that is parsed whole. */
const largeBatchSize = 10_000
const largeBatchSeconds = 120
const routes = 100

/**
 * A day in half an hour: what is kept in memory until it is half an hour old, or until there are 65,536 of it, would fill all the
 * time that this takes, and look like a leak.
 */
const inMiniature = { SELVEDGE_LIMITS: 'tailAgeMs=120000,entityRecordsUnfoldedMax=16384' }

interface Tally {
  requests: number
  readonly failures: string[]
  readonly latencies: number[]
}

/** What there is to be asked. */
interface Site {
  readonly gateway: Server
  readonly listeners: Listeners
  readonly tally: Tally
  readonly heap: LiveHeap
}

/** Memory of the gateway in MB. */
interface Stretch {
  readonly minutes: number
  /** Resident, the least and the most under load. */
  readonly busy: readonly [least: number, most: number]
  /** At the rest that followed. */
  readonly resident: number
  readonly liveHeap: number
  /** In use of the native heap; undefined where it cannot be read. */
  readonly native: number | undefined
}

export async function benchSoak({ minutes }: { readonly minutes: number }): Promise<void> {
  const tally: Tally = { requests: 0, failures: [], latencies: [] }
  const command = layOutGateway()
  const heap = await createLiveHeap()
  const [gateway, source] = await Promise.all([
    startGateway(command, { ...inMiniature, ...heap.env }),
    startGateway(command),
  ])
  const failed = (error: unknown): void => void tally.failures.push(String(error))
  try {
    await fill(gateway.httpPort, stations)
    await sendLargeBatch(gateway, 0)
    await createRoutes(gateway)
    await share(gateway, source)
    const listeners = await listen(gateway, (...asked) => ask(gateway, ...asked), failed)
    await observeAll(gateway)
    // The inspector takes its own memory now.
    await heap.measure(gateway)
    const site = { gateway, listeners, tally, heap }
    const first = await stretch(site, { from: 0, minutes: minutes / 3 })
    const second = await stretch(site, { from: minutes / 3, minutes: (minutes * 2) / 3 })
    judge(site, [first, second])
    await listeners.close()
  } finally {
    await Promise.all([gateway.stop(), source.stop()])
  }
}

async function ask(gateway: Server, method: string, path: string, body?: string): Promise<void> {
  await askAt(gateway, method, path, body === undefined ? {} : { body })
}

/** Waits until all expected notifications were received, or nobody would wait for it any longer. */
async function settled({ ways }: Listeners): Promise<void> {
  const isComplete = (): boolean => Object.values(ways).every(({ ids, expected }) => ids.size >= expected)
  for (let waited = 0; waited < 10_000 && !isComplete(); waited += 100) await pause(100)
  // What comes too often comes soon.
  await pause(1000)
}

/** A stretch of load, after so many minutes of it, and the rest that follows. */
async function stretch(site: Site, { from, minutes }: { from: number; minutes: number }): Promise<Stretch> {
  const { gateway, heap, listeners } = site
  const seconds = Math.round(minutes * 60)
  const numbers = [gateway.port, devices, 1, seconds + 5, devices, messagesPerSecond].map(String)
  const publishers = startPinned(1, [process.execPath, mqttLoad, ...numbers])
  const first = Math.round(from * 60) * requestsPerSecond
  const [samples] = await Promise.all([
    sample(gateway, { from, seconds, everySeconds: 5 }),
    load(site, first, first + seconds * requestsPerSecond),
  ])
  await end(publishers)
  await settled(listeners)
  const resting = await sample(gateway, { from: from + minutes, seconds: restSeconds, everySeconds: 1 })
  const busy = [Math.min(...samples), Math.max(...samples)] as const
  const native = await leastNative(gateway)
  const liveHeap = (await heap.measure(gateway)) / 1e6
  return { minutes, busy, resident: Math.min(...resting), liveHeap, native }
}

/** The least of some seconds, in MB. */
async function leastNative({ pid }: Server): Promise<number | undefined> {
  let least: number | undefined
  for (let second = 0; second < nativeSeconds; second++) {
    const bytes = nativeHeapBytes(pid)
    if (bytes !== undefined) least = Math.min(least ?? bytes, bytes)
    await pause(1000)
  }
  return least && least / 1e6
}

/** An open loop of the requests from one number to another; those that are late do not hold up the others. */
async function load(site: Site, first: number, end: number): Promise<void> {
  const { tally } = site
  const begin = performance.now()
  const underWay = new Set<Promise<void>>()
  for (let n = first; n < end; n++) {
    const early = begin + ((n - first) / requestsPerSecond) * 1000 - performance.now()
    if (early > 0) await pause(early)
    if (underWay.size > 500) await Promise.race(underWay)
    const startedAt = performance.now()
    const one = request(site, n)
      .then(() => {
        tally.requests++
        if (tally.latencies.length < 1_000_000) tally.latencies.push(performance.now() - startedAt)
      })
      .catch((error: unknown) => {
        tally.failures.push(String(error))
      })
      .finally(() => underWay.delete(one))
    underWay.add(one)
  }
  await Promise.all(underWay)
}

/**
 * Request number `n`: four of ten write, the others read. Of a hundred one follows a link, one is about what a context source
 * has a part in, and two are of what happens now and then; every two minutes one is a batch of 10,000 entities.
 */
async function request(site: Site, n: number): Promise<void> {
  const { gateway, listeners } = site
  const [hundred, rest] = [Math.floor(n / 100), n % 100]
  if (rest === 99) return rare(gateway, hundred)
  if (rest === 74) return askBoth(gateway, hundred)
  if (rest === 49)
    return n % (largeBatchSeconds * requestsPerSecond) === 3049
      ? sendLargeBatch(gateway, n)
      : rarer(site, hundred)
  if (rest === 24) return ask(gateway, 'GET', routesPath(hundred))
  const kind = mix[n % mix.length]!
  if (kind !== 'history') {
    const body = bodyOf(kind, n, Date.now())
    const path = pathOf(kind, n, stations)
    await ask(gateway, body === undefined ? 'GET' : 'PATCH', path, body)
    if (kind === 'write') listeners.written(path)
    return
  }
  const id = stationId((n * 7919) % stations)
  const aggregate = 'options=aggregatedValues&aggrMethods=avg,max&aggrPeriodDuration=PT1M'
  const form = n % 20 === 9 ? aggregate : 'options=temporalValues&lastN=20'
  return ask(gateway, 'GET', `/ngsi-ld/v1/entities/${id}`).then(() =>
    ask(
      gateway,
      'GET',
      `/ngsi-ld/v1/temporal/entities/${id}?attrs=temperature&timerel=after&timeAt=2025-01-01T00:00:00Z&${form}`,
    ),
  )
}

const mix: readonly (RequestKind | 'history')[] = [
  'observe',
  'get',
  'write',
  'list',
  'observe',
  'equal',
  'write',
  'near',
  'range',
  'history',
]

/** Each station once, since the first observation of each brings its stream into memory, to stay: chance would take 20 minutes. */
async function observeAll(gateway: Server): Promise<void> {
  for (let from = 0; from < stations; from += batchSize) {
    const batch = Array.from({ length: batchSize }, (_, i) => ({
      id: stationId(from + i),
      type: stationType,
      ...(JSON.parse(bodyOf('observe', from + i, Date.now())!) as object),
    }))
    await ask(gateway, 'POST', '/ngsi-ld/v1/entityOperations/update', JSON.stringify(batch))
  }
}

/** Routes, each along five stations. */
async function createRoutes(gateway: Server): Promise<void> {
  const all = Array.from({ length: routes }, (_, n) => ({
    id: `urn:ngsi-ld:Route:${n}`,
    type: 'Route',
    along: { type: 'Relationship', object: Array.from({ length: 5 }, (__, i) => stationId(5 * n + i)) },
  }))
  await ask(gateway, 'POST', '/ngsi-ld/v1/entityOperations/create', JSON.stringify(all))
}

const routesPath = (n: number): string =>
  `/ngsi-ld/v1/entities?type=Route&join=${n % 2 === 0 ? 'inline' : 'flat'}&limit=10&offset=${(n * 10) % routes}`

/** Meters that are all there already, but for the first time; queries of stations do not meet them. */
function sendLargeBatch(gateway: Server, n: number): Promise<void> {
  const items = Array.from({ length: largeBatchSize }, (_, i) => ({
    id: `urn:ngsi-ld:Meter:${i}`,
    type: 'Meter',
    round: { type: 'Property', value: n },
    remark: { type: 'Property', value: `Meter ${i} ${'as it was read by the company '.repeat(26)}` },
  }))
  return ask(gateway, 'POST', '/ngsi-ld/v1/entityOperations/upsert', JSON.stringify(items))
}

/** A registration comes and goes, or the consumer of a stream does. */
async function rarer({ gateway, listeners }: Site, n: number): Promise<void> {
  if (n % 2 === 0) return comeAndGo(gateway, n)
  listeners.comeAgain()
}

/** What happens now and then, each time with another name: whatever it leaves behind would add up. */
async function rare(gateway: Server, n: number): Promise<void> {
  const id = `urn:soak:${n}`
  const subscriptions = '/ngsi-ld/v1/subscriptions'
  if (n % 3 === 0) {
    await ask(
      gateway,
      'POST',
      subscriptions,
      subscriptionOf(id, { uri: 'http://127.0.0.1:9/' }, `urn:soak:none:${n}`),
    )
    return ask(gateway, 'DELETE', `${subscriptions}/${id}`)
  }
  if (n % 3 === 1) {
    const entity = { id, type: 'Passing', [`name${n}`]: { type: 'Property', value: n } }
    await ask(gateway, 'POST', '/ngsi-ld/v1/entities', JSON.stringify(entity))
    return ask(gateway, 'DELETE', `/ngsi-ld/v1/entities/${id}`)
  }
  const batch = Array.from({ length: batchSize }, (_, i) => ({
    id: stationId((n * batchSize + i) % stations),
    type: stationType,
    note: { type: 'Property', value: n },
  }))
  return ask(gateway, 'POST', '/ngsi-ld/v1/entityOperations/update', JSON.stringify(batch))
}

/** Resident memory of the gateway in MB, now and again; some of it printed as it goes. */
async function sample(
  { pid }: Server,
  { from, seconds, everySeconds }: { from: number; seconds: number; everySeconds: number },
): Promise<readonly number[]> {
  const begin = performance.now()
  const samples: number[] = []
  for (let at = everySeconds; at <= seconds; at += everySeconds) {
    await pause(begin + at * 1000 - performance.now())
    const megabytes = memory(pid).resident / 1e6
    samples.push(megabytes)
    const minutes = (from + at / 60).toFixed(1).padStart(5)
    if (at % 20 === 0) process.stdout.write(`  ${minutes} min ${megabytes.toFixed(1)} MB\n`)
  }
  return samples
}

function judge({ tally, listeners: { ways } }: Site, stretches: readonly [Stretch, Stretch]): void {
  const [first, second] = stretches
  const isShort = first.minutes + second.minutes < 30
  let isFlat = true
  const line = (what: string, [before, after]: readonly (number | undefined)[], most: number): string => {
    if (before === undefined || after === undefined) return `${what} cannot be read here\n`
    const growth = (after - before) / second.minutes
    if (!isShort && growth >= most) isFlat = false
    return `${what} ${before.toFixed(1)}, then ${after.toFixed(1)} MB: ${growth.toFixed(3)} MB per minute  (goal below ${most}, over at least 30 minutes)\n`
  }
  const notified = Object.entries(ways).map(
    ([way, { ids, expected }]) => `${ids.size} of ${expected} by ${way}`,
  )
  const isWhole = Object.values(ways).every(({ ids, expected }) => ids.size === expected && expected > 0)
  const p99 = percentile(tally.latencies, 0.99).toFixed(1)
  const busy = stretches.map((one) => one.busy.map((some) => some.toFixed(0)).join(' to '))
  process.stdout.write(
    `${tally.requests} requests, p99 ${p99} ms, ${tally.failures.length} failed; notifications ${notified.join(', ')}\n` +
      `resident under load ${busy.join(', then ')} MB\n` +
      line('resident at rest', [first.resident, second.resident], residentGrowthMax) +
      line('live heap at rest', [first.liveHeap, second.liveHeap], growthMax.liveHeap) +
      line('native heap in use at rest', [first.native, second.native], growthMax.native),
  )
  const kinds = Map.groupBy(tally.failures, (failure) => failure.replace(/\d+/g, ''))
  for (const all of kinds.values()) process.stderr.write(`${all.length} times such as ${all[0]}\n`)
  if (!isFlat || tally.failures.length > 0 || !isWhole) process.exitCode = 1
}
