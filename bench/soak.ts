/**
 * `npm run bench -- soak [--minutes 30]`: mixed load at a steady rate, and whether memory stays flat under it. Devices
 * publish, clients patch, query, follow links, subscribe and leave again, read history; batches of 10,000 entities stream
 * through, a context source has a part in what one tenant asks, and notifications are taken in every way there is. Resident
 * memory of the gateway is sampled and the slope of its second half is fitted, and its live heap is measured after a third and
 * at the end; the run fails when one of them grows faster than its goal, when a request fails, or when the notifications that
 * came are not those that were owed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { fill } from './fill.ts'
import { createLiveHeap, type LiveHeap } from './live-heap.ts'
import { memory, percentile, startPinned } from './processes.ts'
import { end, layOutGateway, type Server, startGateway } from './servers.ts'
import { bodyOf, pathOf, type RequestKind, stationId, stationType } from './site.ts'
import { askAt, askBoth, comeAndGo, share } from './soak-shared.ts'
import { type Listeners, listen, subscriptionOf } from './soak-told.ts'

const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
const stations = 5000
const devices = 100
const messagesPerSecond = 200
const requestsPerSecond = 60
/**
 * MB a minute. What collections leave now and again comes to a few MB in the second half of half an hour; a leak of
 * a hundred bytes for each message and request would be 1.5 MB a minute.
 */
const slopeMax = 0.25
/** The same of what is left after a collection, which tells a leak from garbage. */
const heapSlopeMax = 0.1
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
    const seconds = minutes * 60
    const numbers = [gateway.port, devices, 1, seconds + 5, devices, messagesPerSecond].map(String)
    const publishers = startPinned(1, [process.execPath, mqttLoad, ...numbers])
    const [samples] = await Promise.all([
      sample(gateway, heap, seconds),
      load({ gateway, listeners, tally }, seconds),
    ])
    await end(publishers)
    await settled(listeners)
    judge(samples, tally, listeners)
    await listeners.close()
  } finally {
    await Promise.all([gateway.stop(), source.stop()])
  }
}

async function ask(gateway: Server, method: string, path: string, body?: string): Promise<void> {
  await askAt(gateway, method, path, body === undefined ? {} : { body })
}

/** Waits until all is told that is owed, or nobody would wait for it any longer. */
async function settled({ ways }: Listeners): Promise<void> {
  const isTold = (): boolean => Object.values(ways).every(({ ids, owed }) => ids.size >= owed)
  for (let waited = 0; waited < 10_000 && !isTold(); waited += 100) await pause(100)
  // What comes too often comes soon.
  await pause(1000)
}

/** An open loop of requests; those that are late do not hold up the others. */
async function load(site: Site, seconds: number): Promise<void> {
  const { tally } = site
  const begin = performance.now()
  const underWay = new Set<Promise<void>>()
  for (let n = 0; n < seconds * requestsPerSecond; n++) {
    const early = begin + (n / requestsPerSecond) * 1000 - performance.now()
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

interface Sample {
  readonly minutes: number
  readonly megabytes: number
}

interface Samples {
  /** Every five seconds. */
  readonly resident: readonly Sample[]
  /** After a third, and at the end. */
  readonly liveHeap: readonly Sample[]
}

/** Memory of the gateway; some of it printed as it goes. */
async function sample(gateway: Server, heap: LiveHeap, seconds: number): Promise<Samples> {
  const everyMs = 5000
  const printedMs = Math.max(everyMs, 1000 * 5 * Math.ceil(seconds / 300))
  const third = everyMs * Math.ceil((seconds * 1000) / 3 / everyMs)
  const begin = performance.now()
  const samples: Sample[] = []
  const liveHeap: Sample[] = []
  for (let at = everyMs; at <= seconds * 1000; at += everyMs) {
    await pause(begin + at - performance.now())
    const one = { minutes: at / 60_000, megabytes: memory(gateway.pid).resident / 1e6 }
    samples.push(one)
    if (at === third || at > seconds * 1000 - everyMs)
      liveHeap.push({ ...one, megabytes: (await heap.measure(gateway)) / 1e6 })
    if (at % printedMs === 0)
      process.stdout.write(`  ${one.minutes.toFixed(1).padStart(5)} min ${one.megabytes.toFixed(1)} MB\n`)
  }
  return { resident: samples, liveHeap }
}

function judge({ resident, liveHeap }: Samples, tally: Tally, { ways }: Listeners): void {
  const half = resident.slice(Math.floor(resident.length / 2))
  const slope = slopeOf(floorsOf(half))
  const heapSlope = slopeOf(liveHeap)
  const runMinutes = resident.at(-1)!.minutes
  const signed = (one: number): string => `${one >= 0 ? '+' : ''}${one.toFixed(3)} MB per minute`
  const heaps = liveHeap.map(({ megabytes }) => megabytes.toFixed(1)).join(' and then ')
  const p99 = percentile(tally.latencies, 0.99)
  const told = Object.entries(ways).map(([way, { ids, owed }]) => `${ids.size} of ${owed} by ${way}`)
  const isWhole = Object.values(ways).every(({ ids, owed }) => ids.size === owed && owed > 0)
  process.stdout.write(
    `${tally.requests} requests, p99 ${p99.toFixed(1)} ms, ${tally.failures.length} failed; notifications ${told.join(', ')}\n` +
      `resident memory of the second half: ${signed(slope)}  (goal below ${slopeMax}, over at least 10 minutes)\n` +
      `live heap: ${heaps} MB, ${signed(heapSlope)}  (goal below ${heapSlopeMax})\n`,
  )
  const kinds = Map.groupBy(tally.failures, (failure) => failure.replace(/\d+/g, ''))
  for (const all of kinds.values()) process.stderr.write(`${all.length} times such as ${all[0]}\n`)
  const isFlat = (slope < slopeMax && heapSlope < heapSlopeMax) || runMinutes < 10
  if (!isFlat || tally.failures.length > 0 || !isWhole) process.exitCode = 1
}

/**
 * The least of each stretch from one large batch to the next: what these take for a while says nothing of what stays, and
 * would hide it.
 */
function floorsOf(samples: readonly Sample[]): readonly Sample[] {
  const stretches = Map.groupBy(samples, ({ minutes }) => Math.floor((minutes * 60) / largeBatchSeconds))
  return [...stretches.values()].map((stretch) =>
    stretch.reduce((least, one) => (one.megabytes < least.megabytes ? one : least)),
  )
}

/** Least squares, MB per minute. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (one: Sample) => number): number =>
    samples.reduce((sum, one) => sum + of(one), 0) / samples.length
  const [x, y] = [mean(({ minutes }) => minutes), mean(({ megabytes }) => megabytes)]
  const along = samples.reduce((sum, one) => sum + (one.minutes - x) * (one.megabytes - y), 0)
  return along / samples.reduce((sum, one) => sum + (one.minutes - x) ** 2, 0)
}
