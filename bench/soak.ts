/**
 * `npm run bench -- soak [--minutes 30]`: mixed load at a steady rate, and whether memory stays flat under it. Devices
 * publish, clients patch, query, subscribe and leave again, read history; a receiver takes the notifications. Resident
 * memory is sampled and the slope of its second half is fitted; the run fails when that is steeper than the goal, when
 * a request fails, or when notifications are missing.
 */
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { fill } from './fill.ts'
import { memory, percentile, startPinned } from './processes.ts'
import { end, layOutGateway, type Server, startGateway } from './servers.ts'
import { bodyOf, pathOf, type RequestKind, stationId, stationType } from './site.ts'

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
const batchSize = 100

interface Tally {
  requests: number
  /** Notifications that came, and those that writes owed. */
  notified: number
  owed: number
  readonly failures: string[]
  readonly latencies: number[]
}

export async function benchSoak({ minutes }: { readonly minutes: number }): Promise<void> {
  const tally: Tally = { requests: 0, notified: 0, owed: 0, failures: [], latencies: [] }
  const receiver = await startReceiver(tally)
  const gateway = await startGateway(layOutGateway())
  try {
    await fill(gateway.httpPort, stations)
    await subscribe(gateway, receiver.url)
    const seconds = minutes * 60
    const numbers = [gateway.port, devices, 1, seconds + 5, devices, messagesPerSecond].map(String)
    const publishers = startPinned(1, [process.execPath, mqttLoad, ...numbers])
    const [samples] = await Promise.all([sample(gateway, seconds), load(gateway, { seconds, tally })])
    await end(publishers)
    await pause(3000)
    judge(samples, tally)
  } finally {
    await gateway.stop()
    receiver.close()
  }
}

async function startReceiver(tally: Tally): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      tally.notified++
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() }
}

/** Stations that one of five patches falls on. */
const watched = stationId(0).slice(0, -3)

/** The subscription that is there throughout. */
async function subscribe(gateway: Server, uri: string): Promise<void> {
  const subscription = subscriptionOf('urn:soak:kept', uri, `${watched}.*`)
  await ask(gateway, 'POST', '/ngsi-ld/v1/subscriptions', subscription)
}

const subscriptionOf = (id: string, uri: string, idPattern: string): string =>
  JSON.stringify({
    id,
    type: 'Subscription',
    entities: [{ type: stationType, idPattern }],
    watchedAttributes: ['humidity'],
    notification: { endpoint: { uri, accept: 'application/json' } },
  })

async function ask(gateway: Server, method: string, path: string, body?: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}${encodeURI(path)}`, {
    method,
    ...(body === undefined ? {} : { body, headers: { 'Content-Type': 'application/json' } }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new TypeError(`${method} ${path} answered ${answer.status}: ${text}`)
}

/** An open loop of requests; those that are late do not hold up the others. */
async function load(
  gateway: Server,
  { seconds, tally }: { readonly seconds: number; readonly tally: Tally },
): Promise<void> {
  const begin = performance.now()
  const underWay = new Set<Promise<void>>()
  for (let n = 0; n < seconds * requestsPerSecond; n++) {
    const early = begin + (n / requestsPerSecond) * 1000 - performance.now()
    if (early > 0) await pause(early)
    if (underWay.size > 500) await Promise.race(underWay)
    const startedAt = performance.now()
    const one = request(gateway, n, tally)
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

/** Request number `n`: four of ten write, the others read; every hundredth is a batch, a subscription or its end. */
async function request(gateway: Server, n: number, tally: Tally): Promise<void> {
  if (n % 100 === 99) return rare(gateway, Math.floor(n / 100))
  const kind = mix[n % mix.length]!
  if (kind !== 'history') {
    const body = bodyOf(kind, n, startedAt)
    const path = pathOf(kind, n, stations)
    await ask(gateway, body === undefined ? 'GET' : 'PATCH', path, body)
    if (kind === 'write' && path.includes(watched)) tally.owed++
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

const startedAt = Date.now()
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

/** What happens now and then, each time with another name: whatever it leaves behind would add up. */
async function rare(gateway: Server, n: number): Promise<void> {
  const id = `urn:soak:${n}`
  const subscriptions = '/ngsi-ld/v1/subscriptions'
  if (n % 3 === 0) {
    await ask(gateway, 'POST', subscriptions, subscriptionOf(id, 'http://127.0.0.1:9/', `urn:soak:none:${n}`))
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

/** Resident memory, 60 times or every five seconds, whatever is rarer; printed as it goes. */
async function sample({ pid }: Server, seconds: number): Promise<readonly Sample[]> {
  const everyMs = Math.max(5, seconds / 60) * 1000
  const begin = performance.now()
  const samples: Sample[] = []
  for (let at = everyMs; at <= seconds * 1000; at += everyMs) {
    await pause(begin + at - performance.now())
    const one = { minutes: at / 60_000, megabytes: memory(pid).resident / 1e6 }
    samples.push(one)
    process.stdout.write(`  ${one.minutes.toFixed(1).padStart(5)} min ${one.megabytes.toFixed(1)} MB\n`)
  }
  return samples
}

function judge(samples: readonly Sample[], tally: Tally): void {
  const half = samples.slice(Math.floor(samples.length / 2))
  const slope = slopeOf(half)
  const runMinutes = samples.at(-1)!.minutes
  const p99 = percentile(tally.latencies, 0.99)
  process.stdout.write(
    `${tally.requests} requests, p99 ${p99.toFixed(1)} ms, ${tally.failures.length} failed; ${tally.notified} of ${tally.owed} notifications\n` +
      `resident memory of the second half: ${slope >= 0 ? '+' : ''}${slope.toFixed(3)} MB per minute  (goal below ${slopeMax}, over at least 10 minutes)\n`,
  )
  for (const failure of tally.failures.slice(0, 5)) process.stderr.write(`${failure}\n`)
  const isFlat = slope < slopeMax || runMinutes < 10
  if (!isFlat || tally.failures.length > 0 || tally.notified < tally.owed) process.exitCode = 1
}

/** Least squares, MB per minute. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (one: Sample) => number): number =>
    samples.reduce((sum, one) => sum + of(one), 0) / samples.length
  const [x, y] = [mean(({ minutes }) => minutes), mean(({ megabytes }) => megabytes)]
  const along = samples.reduce((sum, one) => sum + (one.minutes - x) * (one.megabytes - y), 0)
  return along / samples.reduce((sum, one) => sum + (one.minutes - x) ** 2, 0)
}
