/**
 * `npm run bench -- uplink [--quick] [--only idle|history|outage]`: a gateway on one core and a hub on the other. What an idle
 * uplink costs; how fast a backlog of a million observations goes up while devices publish 1,000 a second, how long their
 * messages wait for PUBACK meanwhile, those of the hub's own devices too, and how late a value of now arrives over
 * there. The backlog is a history that a client wrote, or what 100 devices said in an outage. The floor is the pace of devices.
 */
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { createMeters, daySeconds, fillMeters, meters } from './meters.ts'
import { loopLag, memory, percentile, pin, processCpuSeconds, startPinned } from './processes.ts'
import { layOutGateway, type Server, startGateway } from './servers.ts'

const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
const entities = '/ngsi-ld/v1/entities'
const liveRate = 1000
const hubRate = 100
const idleSeconds = 20
const calmMs = 8000

interface UplinkOptions {
  readonly quick: boolean
  /** One of the scenes; left out, all of them. */
  readonly only?: string | undefined
}

export async function benchUplink({ quick, only }: UplinkOptions): Promise<void> {
  const command = layOutGateway()
  const scenes = {
    idle: () => idle(command),
    history: () => history(command, quick),
    outage: () => outage(command, quick),
  }
  for (const [name, scene] of Object.entries(scenes)) if (only === undefined || only === name) await scene()
}

/** A gateway and its hub while something is done with them. */
async function withBoth(
  command: string,
  act: (gateway: Server, hub: Server) => Promise<void>,
): Promise<void> {
  const [gateway, hub] = [await startGateway(command), await startGateway(command)]
  pin(hub.pid, '1')
  try {
    await probeEntity(gateway)
    await act(gateway, hub)
  } finally {
    await Promise.all([gateway.stop(), hub.stop()])
  }
}

const idle = (command: string): Promise<void> =>
  withBoth(command, async (gateway, hub) => {
    const alone = await idleCpu(gateway)
    await subscribe(gateway, hub)
    await pause(5000)
    const linked = await idleCpu(gateway)
    tell(`idle: ${alone.toFixed(2)} % of a core without, ${linked.toFixed(2)} % with an uplink`)
  })

const history = (command: string, quick: boolean): Promise<void> =>
  withBoth(command, async (gateway, hub) => {
    await createMeters(gateway.httpPort)
    const days = quick ? 2 : meters
    const pace = await fillMeters(gateway.httpPort, 0, days)
    tell(`a history of ${days * daySeconds} observations, written here at ${Math.round(pace)}/s`)
    await drain(gateway, hub, { count: days * daySeconds, begin: () => subscribe(gateway, hub) })
  })

const outage = (command: string, quick: boolean): Promise<void> =>
  withBoth(command, async (gateway, hub) => {
    await subscribe(gateway, hub)
    await pause(2000)
    await operate(gateway, 'pause')
    const most = quick ? 150_000 : 1_000_000
    let count = 0
    while (count < most) count += await publishFor(gateway, quick ? 3 : 5)
    tell(`an outage in which 100 devices published ${count} observations`)
    await drain(gateway, hub, { count, begin: () => operate(gateway, 'resume') })
  })

/** Has the backlog go up under live load. */
async function drain(
  gateway: Server,
  hub: Server,
  { count, begin }: { readonly count: number; readonly begin: () => Promise<void> },
): Promise<void> {
  const cpu = (): [number, number] => [processCpuSeconds(gateway.pid), processCpuSeconds(hub.pid)]
  const [floor, hubFloor] = await Promise.all(
    [startLoad(gateway, liveRate), startLoad(hub, hubRate)].map((one) => pause(calmMs).then(one.stop)),
  )
  const load = startLoad(gateway, liveRate)
  const hubLoad = startLoad(hub, hubRate)
  await pause(3000)
  const calm = memory(gateway.pid).resident
  const before = cpu()
  await Promise.all([gateway, hub].map((one) => loopLag(one.httpPort)))
  const startedAt = performance.now()
  const watch = watchLive(gateway, hub)
  const since = lastRow(gateway)
  await begin()
  let most = 0
  for (let done = false; !done; done = isDrained(gateway, since)) {
    await pause(250)
    most = Math.max(most, memory(gateway.pid).resident)
    if (performance.now() - startedAt > 600_000) throw new TypeError('it did not all go up in ten minutes')
  }
  const seconds = (performance.now() - startedAt) / 1000
  const after = cpu()
  const lags = await Promise.all([gateway, hub].map((one) => loopLag(one.httpPort)))
  const lates = await watch.stop()
  const [acknowledged, atHub] = await Promise.all([load.stop(), hubLoad.stop()])
  const perSecond = count / seconds
  tell(
    `drained in ${seconds.toFixed(1)} s: ${Math.round(perSecond)} observations/s,` +
      ` ${(perSecond / liveRate).toFixed(1)} times live (goal 10)`,
  )
  const [here, there] = before.map((from, i) => ((after[i]! - from) / count) * 1e6)
  tell(
    `CPU per observation: ${here!.toFixed(1)} us here, ${there!.toFixed(1)} us at the hub, live load included`,
  )
  tell(`resident here at most ${megabytes(most)} MB, ${megabytes(calm)} MB before`)
  tell(`PUBACK meanwhile: ${shown(acknowledged)} (goal p99 50), without ${shown(floor!)}`)
  tell(`PUBACK at the hub meanwhile: ${shown(atHub)}, without ${shown(hubFloor!)}`)
  tell(`event loop late, p99: ${lags[0]!.toFixed(1)} ms here, ${lags[1]!.toFixed(1)} ms at the hub`)
  tell(`live values at the hub: p50 ${percentile(lates, 0.5)} ms, worst ${Math.max(...lates)} ms (goal 2000)`)
}

interface Acknowledged {
  readonly p50: number
  readonly p99: number
}

const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20)
const shown = ({ p50, p99 }: Acknowledged): string => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`

/** 100 devices publish as fast as they are acknowledged. Returns how many messages were. */
function publishFor(gateway: Server, seconds: number): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const numbers = [gateway.port, 100, 20, seconds, 100, 0].map(String)
  startPinned(1, [process.execPath, mqttLoad, ...numbers], {
    quiet: false,
    onLine: (line) => {
      if (line.startsWith('{')) resolve((JSON.parse(line) as { done: number }).done)
    },
  })
  return promise
}

/** Devices that publish, until it is stopped. */
function startLoad(gateway: Server, rate: number): { stop(): Promise<Acknowledged> } {
  const { promise, resolve } = Promise.withResolvers<Acknowledged>()
  const numbers = [gateway.port, 100, 1, 3600, 100, rate].map(String)
  const child = startPinned(1, [process.execPath, mqttLoad, ...numbers], {
    quiet: false,
    onLine(line) {
      if (line.startsWith('{')) resolve(JSON.parse(line) as Acknowledged)
    },
  })
  return {
    async stop() {
      child.kill('SIGTERM')
      return promise
    },
  }
}

/** Writes a value now and then, and sees when it is at the hub. */
function watchLive(gateway: Server, hub: Server): { stop(): Promise<readonly number[]> } {
  const lates: number[] = []
  let isOver = false
  const work = async (): Promise<void> => {
    for (let n = 1; !isOver; n++) {
      const attributes = { level: { type: 'Property', value: n, observedAt: new Date().toISOString() } }
      await ask(gateway, 'PATCH', `${entities}/urn:probe/attrs`, attributes)
      const from = performance.now()
      while (!isOver && performance.now() - from < 30_000) {
        const answer = await fetch(`http://127.0.0.1:${hub.httpPort}${entities}/urn:probe?options=keyValues`)
        const seen = answer.ok ? ((await answer.json()) as { level: number }).level : 0
        if (seen >= n) break
        await pause(20)
      }
      if (!isOver) lates.push(Math.round(performance.now() - from))
      await pause(500)
    }
  }
  const done = work()
  return {
    async stop() {
      isOver = true
      await done
      // The first one waits for the uplink itself.
      return lates.slice(1).toSorted((a, b) => a - b)
    },
  }
}

/** Whether an uplink was past a place of the log and has sent everything before it, as its row says. */
function isDrained(gateway: Server, since: number): boolean {
  return read(gateway, (database) => {
    const text = database.prepare<[], string>('SELECT state FROM uplink').pluck().get()
    if (text === undefined) return false
    const { spans, refresh, position } = JSON.parse(text) as {
      spans: readonly unknown[]
      refresh?: unknown
      position: { n: number }
    }
    return spans.length === 0 && refresh === undefined && position.n >= since
  })
}

const lastRow = (gateway: Server): number =>
  read(gateway, (database) => database.prepare<[], number>('SELECT max(n) FROM log').pluck().get()!)

function read<T>(gateway: Server, look: (database: Database.Database) => T): T {
  const database = new Database(`${gateway.folder}/selvedge.db`, { readonly: true })
  try {
    return look(database)
  } finally {
    database.close()
  }
}

/** Percent of a core over some seconds in which nothing happens. */
async function idleCpu(gateway: Server): Promise<number> {
  const before = processCpuSeconds(gateway.pid)
  await pause(idleSeconds * 1000)
  return ((processCpuSeconds(gateway.pid) - before) / idleSeconds) * 100
}

const probeEntity = (gateway: Server): Promise<void> =>
  ask(gateway, 'POST', entities, {
    id: 'urn:probe',
    type: 'Probe',
    level: { type: 'Property', value: 0, observedAt: new Date().toISOString() },
  })

const streamObservation = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'

const subscribe = (gateway: Server, hub: Server): Promise<void> =>
  ask(gateway, 'POST', '/ngsi-ld/v1/subscriptions', {
    id: 'urn:up',
    type: 'Subscription',
    entities: ['Meter', 'Probe', streamObservation].map((type) => ({ type })),
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${hub.httpPort}/ngsi-ld/v1`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })

const operate = (gateway: Server, how: 'pause' | 'resume'): Promise<void> =>
  ask(gateway, 'POST', `/selvedge/v1/uplinks/urn:up/${how}`)

async function ask(server: Server, method: string, path: string, body?: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${server.httpPort}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (!answer.ok)
    throw new TypeError(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`)
  await answer.arrayBuffer()
}

const tell = (line: string): void => void process.stdout.write(`${line}\n`)
