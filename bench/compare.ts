/**
 * `npm run bench -- compare --against CHECKOUT`: this version and the one built in another checkout, in turns on the
 * same machine, so that neither the machine's speed nor other work decides. The goal of each figure is nine tenths
 * of the other version's.
 */
import { fill } from './fill.ts'
import { atRest, type LoadFigures, median, medians, pin, underLoad } from './processes.ts'
import { layOutGateway, type Server, serverCore, startGateway } from './servers.ts'
import type { RequestKind } from './site.ts'
import { byPattern, startReceiver, subscribe } from './subscriptions.ts'

const httpLoad = new URL('./http-load.ts', import.meta.url).pathname
const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
/** More documents than are cached. */
const stations = 20_000
const writesPerSecond = 1000
const goalPercent = 90

interface Scene {
  readonly title: string
  readonly kind: RequestKind
  readonly connections: number
  /** Beside 1,000 observations/s of 1,000 stations, whose work on the main thread is counted with that of the requests. */
  readonly beside?: true
  /** Where the gateway runs; the load is always on core 1. */
  readonly cores: string
}

const oneCore = String(serverCore)
const bothCores = '0,1'
const searches = (['equal', 'range', 'between', 'near'] as const).map(
  (kind): Scene => ({ title: `search ${kind}`, kind, connections: 1, cores: bothCores }),
)
const requests: readonly Scene[] = [
  { title: 'GET by id', kind: 'get', connections: 32, cores: oneCore },
  { title: 'list of 20', kind: 'list', connections: 32, cores: oneCore },
  { title: 'PATCH observations', kind: 'observe', connections: 50, cores: oneCore },
  { title: 'PATCH documents', kind: 'write', connections: 50, cores: oneCore },
  ...searches,
  ...searches.map((scene): Scene => ({ ...scene, title: `${scene.title}, beside writes`, beside: true })),
]
const notified: readonly Scene[] = [
  { title: '105 subscriptions, documents', kind: 'write-read', connections: 50, cores: oneCore },
  { title: '105 subscriptions, observations', kind: 'observe-read', connections: 50, cores: oneCore },
]

/** Of the other version and of this one, in this order, by the command that starts it. */
type OfEach<T> = ReadonlyMap<string, T>
interface Effort {
  readonly rounds: number
  readonly seconds: number
}

export async function benchCompare(options: { quick: boolean; against: string | undefined }): Promise<void> {
  const commands = [layOutGateway(options.against), layOutGateway()]
  const effort = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 }
  await compareStarts(commands, effort)
  const gateways = new Map<string, Server>()
  const receiver = await startReceiver()
  try {
    for (const command of commands) gateways.set(command, await startGateway(command))
    for (const { httpPort } of gateways.values()) await fill(httpPort, stations)
    for (const { pid } of gateways.values()) await atRest(pid)
    for (const scene of requests) await compare(gateways, scene, effort)
    for (const { httpPort } of gateways.values()) await subscribe(httpPort, byPattern(receiver.url))
    for (const scene of notified) await compare(gateways, scene, effort)
  } finally {
    for (const gateway of gateways.values()) await gateway.stop()
    await receiver.stop()
  }
}

/** Of each round: time until ready (ms), and ingest. */
interface Starts {
  readonly ready: number[]
  readonly ingest: LoadFigures[]
}

/** A new gateway of each version in each round: its start, and MQTT ingest. */
async function compareStarts(commands: readonly string[], { rounds, seconds }: Effort): Promise<void> {
  const nothing = (): Starts => ({ ready: [], ingest: [] })
  const all = new Map(commands.map((command) => [command, nothing()]))
  await inTurns(all, rounds, async (seen, command) => {
    const gateway = await startGateway(command)
    try {
      await atRest(gateway.pid)
      seen.ready.push(gateway.readyMs)
      const load = [gateway.port, 100, 16, seconds, 100, 0].map(String)
      seen.ingest.push(await underLoad(gateway, mqttLoad, load))
    } finally {
      await gateway.stop()
    }
  })
  const [other, mine] = [...all.values()] as [Starts, Starts]
  const [theirs, ours] = [median(other.ready), median(mine.ready)]
  process.stdout.write(
    `${'ready after exec'.padEnd(34)} ${theirs.toFixed(0)} and ${ours.toFixed(0)} ms: ` +
      `${percent(theirs, ours)} % (goal ${goalPercent})\n`,
  )
  print('MQTT QoS 1 ingest', other.ingest, mine.ingest)
}

async function compare(gateways: OfEach<Server>, scene: Scene, { rounds, seconds }: Effort): Promise<void> {
  const { title, kind, connections, beside, cores } = scene
  const all = new Map([...gateways.keys()].map((command) => [command, [] as LoadFigures[]]))
  for (const { pid } of gateways.values()) pin(pid, cores)
  await inTurns(all, rounds, async (seen, command) => {
    const gateway = gateways.get(command)!
    const run = (more: object): Promise<LoadFigures> => {
      const argument = { port: gateway.httpPort, kind, connections, seconds, stations, rate: 0, ...more }
      return underLoad(gateway, httpLoad, [JSON.stringify(argument)])
    }
    const writes = {
      kind: 'observe',
      connections: 16,
      seconds: seconds + 2,
      stations: 1000,
      rate: writesPerSecond,
    }
    const writing = beside && run(writes)
    seen.push(await run({}))
    await writing
  })
  const [other, mine] = [...all.values()] as [LoadFigures[], LoadFigures[]]
  print(title, other, mine)
}

/** Each round in another order, as what runs second may find the machine in another state. */
async function inTurns<T>(all: OfEach<T>, rounds: number, run: (seen: T, command: string) => Promise<void>) {
  for (let round = 0; round < rounds; round++) {
    const order = [...all]
    for (const [command, seen] of round % 2 === 0 ? order : order.toReversed()) await run(seen, command)
  }
}

function print(title: string, other: readonly LoadFigures[], mine: readonly LoadFigures[]): void {
  const [theirs, ours] = [medians(other), medians(mine)]
  const rates = (all: readonly LoadFigures[]): string =>
    all.map(({ perSecond }) => perSecond.toFixed(0)).join(' ')
  process.stdout.write(
    `${title.padEnd(34)} ${theirs.perSecond.toFixed(0)} and ${ours.perSecond.toFixed(0)}/s: ` +
      `${percent(ours.perSecond, theirs.perSecond)} % (goal ${goalPercent}), main thread ${theirs.mainMicros.toFixed(1)} and ` +
      `${ours.mainMicros.toFixed(1)} us, p50 ${theirs.p50.toFixed(2)} and ${ours.p50.toFixed(2)} ms\n` +
      `  rounds, per second: ${rates(other)} and ${rates(mine)}\n`,
  )
}

const percent = (value: number, of: number): string => ((value / of) * 100).toFixed(0)
