/**
 * `npm run bench -- subscriptions`: writes that are notified, from the client's request to the subscriber's socket.
 * The floor is a bare Hono app that posts a constant notification for each PATCH with the same client, keeps nothing
 * and knows no subscription. Each figure counts only if every match was delivered, and each once.
 */
import { fill } from './fill.ts'
import { type LoadFigures, median, medians, startPinned, underLoad } from './processes.ts'
import { end, layOutGateway, type Server, startFloor, startGateway } from './servers.ts'
import { type RequestKind, station, stationId, stationType } from './site.ts'

const load = new URL('./http-load.ts', import.meta.url).pathname
const floorFile = new URL('./http-floor.ts', import.meta.url).pathname
const receiverFile = new URL('./notification-receiver.ts', import.meta.url).pathname
const stations = 10_000
/** How long after the last write the last notification may come. */
const patienceMs = 30_000

type Subscriptions = (receiver: string) => readonly object[]

interface Case {
  readonly title: string
  readonly kind: RequestKind
  readonly connections: number
  /** Requests per second; 0 is as fast as they are answered. */
  readonly rate: number
  readonly subscriptions: Subscriptions
  readonly hasFloor: boolean
  readonly goal: string
}

/** One subscription in so many takes the stations whose numbers leave its remainder; ids are spread by their tail. */
export const byPattern: Subscriptions = (receiver) =>
  Array.from({ length: 105 }, (_, k) =>
    k < 100
      ? subscription({ idPattern: `${String(k).padStart(2, '0')}$`, type: stationType }, `${receiver}/p`)
      : subscription({ type: `Other${k}` }, `${receiver}/p`),
  )
const byId: Subscriptions = (receiver) =>
  Array.from({ length: stations }, (_, i) =>
    subscription({ id: stationId(i), type: stationType }, `${receiver}/s/${i}`),
  )
const byIdPattern: Subscriptions = (receiver) =>
  Array.from({ length: stations }, (_, i) =>
    subscription({ idPattern: `^${stationId(i)}$`, type: stationType }, `${receiver}/s/${i}`),
  )
const byValue: Subscriptions = (receiver) =>
  Array.from({ length: stations }, (_, i) => ({
    ...subscription({ type: stationType }, `${receiver}/s/${i}`),
    q: `description==${JSON.stringify((station(i)['description'] as { value: string }).value)}`,
  }))

const cases: readonly Case[] = [
  {
    title: '105 subscriptions, 80 % PATCH (documents) and 20 % GET, 50 clients',
    kind: 'write-read',
    connections: 50,
    rate: 0,
    subscriptions: byPattern,
    hasFloor: true,
    goal: '3,000/s, all delivered',
  },
  {
    title: '105 subscriptions, 80 % PATCH (observations) and 20 % GET, 50 clients',
    kind: 'observe-read',
    connections: 50,
    rate: 0,
    subscriptions: byPattern,
    hasFloor: false,
    goal: '3,000/s, all delivered',
  },
  {
    title: '10,000 subscriptions by id, an endpoint each, 500 writes/s',
    kind: 'write',
    connections: 50,
    rate: 500,
    subscriptions: byId,
    hasFloor: false,
    goal: 'all delivered',
  },
  {
    title: '10,000 subscriptions by idPattern, an endpoint each, 500 writes/s',
    kind: 'write',
    connections: 50,
    rate: 500,
    subscriptions: byIdPattern,
    hasFloor: false,
    goal: 'all delivered',
  },
  {
    title: '10,000 subscriptions by q on one type, an endpoint each, 500 writes/s',
    kind: 'write',
    connections: 50,
    rate: 500,
    subscriptions: byValue,
    hasFloor: false,
    goal: 'all delivered',
  },
]

export async function benchSubscriptions(options: { quick: boolean }): Promise<void> {
  const command = layOutGateway()
  const rounds = options.quick ? 1 : 3
  const seconds = options.quick ? 3 : 10
  for (const each of cases) await measure(command, each, { rounds, seconds })
}

function subscription(selector: object, uri: string): object {
  return {
    type: 'Subscription',
    entities: [selector],
    notification: { endpoint: { uri, accept: 'application/json' } },
  }
}

/** Figures of one load, and the notifications that it must cause and that were received. */
interface Round {
  readonly figures: LoadFigures
  readonly expected: number
  readonly received: number
  readonly distinct: number
  /** From the end of the load until the last one came. */
  readonly tailMs: number
}

async function measure(
  command: string,
  each: Case,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<void> {
  process.stdout.write(`${each.title}\n`)
  const receiver = await startReceiver()
  const gateway = await startGateway(command)
  let floor: Server | undefined
  try {
    await fill(gateway.httpPort, stations)
    const perSecond = await subscribe(gateway.httpPort, each.subscriptions(receiver.url))
    process.stdout.write(`  subscribed at ${perSecond.toFixed(0)}/s\n`)
    if (each.hasFloor) floor = await startFloor(floorFile, [floorOf(receiver.url)])
    const [ours, bare]: [Round[], Round[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      ours.push(await runRound(gateway, receiver, { ...each, seconds }))
      if (floor !== undefined) bare.push(await runRound(floor, receiver, { ...each, seconds }))
    }
    print('selvedge', ours)
    if (bare.length > 0) print('bare Hono (the floor)', bare)
    if (bare.length > 0) {
      const [mine, theirs] = [ours, bare].map((all) => medians(all.map(({ figures }) => figures)))
      const share = (mine!.perSecond / theirs!.perSecond) * 100
      const cpu = (theirs!.allMicros / mine!.allMicros) * 100
      process.stdout.write(`  ratio: ${share.toFixed(0)} % of the answers, ${cpu.toFixed(0)} % by CPU each\n`)
    }
    process.stdout.write(`  (goal ${each.goal})\n\n`)
  } finally {
    await floor?.stop()
    await gateway.stop()
    await receiver.stop()
  }
}

interface Receiver {
  readonly url: string
  counts(): Promise<{ received: number; distinct: number }>
  stop(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const child = startPinned(1, [process.execPath, receiverFile], {
    quiet: false,
    onLine: (line) => resolve(Number(line)),
  })
  const url = `http://127.0.0.1:${await promise}`
  return {
    url,
    counts: async () => (await (await fetch(url)).json()) as { received: number; distinct: number },
    stop: () => end(child),
  }
}

/** Returns how many were made per second. */
export async function subscribe(httpPort: number, all: readonly object[]): Promise<number> {
  const startedAt = performance.now()
  let next = 0
  const worker = async (): Promise<void> => {
    for (let body = all[next++]; body !== undefined; body = all[next++]) {
      const answer = await fetch(`http://127.0.0.1:${httpPort}/ngsi-ld/v1/subscriptions`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (answer.status !== 201) throw new TypeError(`${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: 32 }, worker))
  return all.length / ((performance.now() - startedAt) / 1000)
}

/** The floor's answer, and the notification that it sends: like ours, of one station. */
function floorOf(receiver: string): string {
  const data = [station(1)]
  const notification = JSON.stringify({
    id: 'urn:ngsi-ld:Notification:floor',
    type: 'Notification',
    subscriptionId: 'urn:ngsi-ld:Subscription:floor',
    notifiedAt: new Date().toISOString(),
    data,
  })
  const headers = { 'Content-Type': 'application/json', Server: 'floor' }
  return JSON.stringify({ text: JSON.stringify(data[0]), headers, notify: { url: receiver, notification } })
}

async function runRound(
  server: Server,
  receiver: Receiver,
  { kind, connections, rate, seconds }: Case & { seconds: number },
): Promise<Round> {
  const before = await receiver.counts()
  const argument = { port: server.httpPort, kind, connections, seconds, stations, rate }
  const figures = await underLoad(server, load, [JSON.stringify(argument)])
  const expected = figures.writes!
  const endedAt = performance.now()
  let after = await receiver.counts()
  while (after.received - before.received < expected && performance.now() - endedAt < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    after = await receiver.counts()
  }
  const tailMs = performance.now() - endedAt
  return {
    figures,
    expected,
    received: after.received - before.received,
    distinct: after.distinct - before.distinct,
    tailMs,
  }
}

function print(name: string, rounds: readonly Round[]): void {
  const { perSecond, p50, p99, mainMicros, allMicros } = medians(rounds.map(({ figures }) => figures))
  const of = (pick: (round: Round) => number): string => rounds.map((round) => pick(round)).join(', ')
  process.stdout.write(
    `  ${name.padEnd(24)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50.toFixed(2)} ms p99 ${p99.toFixed(2)} ms  ` +
      `CPU main ${mainMicros.toFixed(1)} us all ${allMicros.toFixed(1)} us per request\n` +
      `    expected ${of(({ expected }) => expected)}  received ${of(({ received }) => received)}  ` +
      `different ${of(({ distinct }) => distinct)}  last one ${median(rounds.map(({ tailMs }) => tailMs)).toFixed(0)} ms after the load\n`,
  )
}
