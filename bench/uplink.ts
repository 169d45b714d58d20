/**
 * `npm run bench -- uplink [--quick]`: a gateway on one core and a hub on the other. What an idle uplink costs; how fast a
 * backlog of a million observations goes up while devices publish 1,000 a second; how long their messages wait for
 * PUBACK meanwhile, and how late a value of now arrives over there. The floor is the pace of devices.
 */
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { createMeters, fillMeters, meters } from './meters.ts'
import { memory, percentile, pin, processCpuSeconds, startPinned } from './processes.ts'
import { end, layOutGateway, type Server, startGateway } from './servers.ts'

const mqttLoad = new URL('./mqtt-load.ts', import.meta.url).pathname
const entities = '/ngsi-ld/v1/entities'
const liveRate = 1000
const idleSeconds = 20

export async function benchUplink({ quick }: { readonly quick: boolean }): Promise<void> {
  const command = layOutGateway()
  const [gateway, hub] = [await startGateway(command), await startGateway(command)]
  pin(hub.pid, '1')
  try {
    await probeEntity(gateway)
    const alone = await idleCpu(gateway)
    await subscribe(gateway, hub)
    await pause(5000)
    const linked = await idleCpu(gateway)
    tell(`idle: ${alone.toFixed(2)} % of a core without, ${linked.toFixed(2)} % with an uplink`)
    await unsubscribe(gateway)

    await createMeters(gateway.httpPort)
    const days = quick ? 2 : meters
    const pace = await fillMeters(gateway.httpPort, 0, days)
    tell(`backlog: ${days * 86_400} observations, written here at ${Math.round(pace)}/s`)
    await drain(gateway, hub, days * 86_400)
  } finally {
    await Promise.all([gateway.stop(), hub.stop()])
  }
}

/** Has the backlog go up under live load. */
async function drain(gateway: Server, hub: Server, count: number): Promise<void> {
  const cpu = (): [number, number] => [processCpuSeconds(gateway.pid), processCpuSeconds(hub.pid)]
  const load = startLoad(gateway)
  await pause(3000)
  const before = cpu()
  const startedAt = performance.now()
  const watch = watchLive(gateway, hub)
  await subscribe(gateway, hub)
  let most = 0
  for (let done = false; !done; done = isDrained(gateway)) {
    await pause(250)
    most = Math.max(most, memory(gateway.pid).resident)
    if (performance.now() - startedAt > 600_000) throw new TypeError('it did not all go up in ten minutes')
  }
  const seconds = (performance.now() - startedAt) / 1000
  const after = cpu()
  const lates = await watch.stop()
  const acknowledged = await load.stop()
  const perSecond = count / seconds
  tell(
    `drained in ${seconds.toFixed(1)} s: ${Math.round(perSecond)} observations/s,` +
      ` ${(perSecond / liveRate).toFixed(1)} times live (goal 10)`,
  )
  const [here, there] = before.map((from, i) => ((after[i]! - from) / count) * 1e6)
  tell(
    `CPU per observation: ${here!.toFixed(1)} us here, ${there!.toFixed(1)} us at the hub, live load included`,
  )
  tell(`resident here at most ${Math.round(most / 2 ** 20)} MB`)
  tell(`PUBACK meanwhile: p50 ${acknowledged.p50} ms, p99 ${acknowledged.p99} ms (goal 50)`)
  tell(`live values at the hub: p50 ${percentile(lates, 50)} ms, worst ${Math.max(...lates)} ms (goal 2000)`)
}

interface Acknowledged {
  readonly p50: number
  readonly p99: number
}

/** Devices that publish, until it is stopped. */
function startLoad(gateway: Server): { stop(): Promise<Acknowledged> } {
  const { promise, resolve } = Promise.withResolvers<Acknowledged>()
  const numbers = [gateway.port, 100, 1, 20, 100, liveRate].map(String)
  let isOver = false
  let last: Acknowledged | undefined
  let child = begin()
  function begin() {
    return startPinned(1, [process.execPath, mqttLoad, ...numbers], {
      quiet: false,
      onLine(line) {
        if (!line.startsWith('{')) return
        const told = JSON.parse(line) as Acknowledged
        last = last === undefined || told.p99 > last.p99 ? told : last
        if (isOver) resolve(last)
        else child = begin()
      },
    })
  }
  return {
    async stop() {
      isOver = true
      const told = await promise
      await end(child)
      return told
    },
  }
}

/** Writes a value now and then, and sees when it is at the hub. */
function watchLive(gateway: Server, hub: Server): { stop(): Promise<readonly number[]> } {
  const lates: number[] = []
  let isOver = false
  const work = async (): Promise<void> => {
    for (let n = 1; !isOver; n++) {
      const value = { value: { type: 'Property', value: n, observedAt: new Date().toISOString() } }
      await ask(gateway, 'PATCH', `${entities}/urn:probe/attrs`, value)
      const from = performance.now()
      while (!isOver && performance.now() - from < 30_000) {
        const answer = await fetch(`http://127.0.0.1:${hub.httpPort}${entities}/urn:probe?options=keyValues`)
        const seen = answer.ok ? ((await answer.json()) as { value: number }).value : 0
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

/** Whether an uplink owes nothing of the past, as its row says. */
function isDrained(gateway: Server): boolean {
  const database = new Database(`${gateway.folder}/selvedge.db`, { readonly: true })
  try {
    const text = database.prepare<[], string>('SELECT state FROM uplink').pluck().get()
    if (text === undefined) return false
    const { spans, refresh } = JSON.parse(text) as { spans: readonly unknown[]; refresh?: unknown }
    return spans.length === 0 && refresh === undefined
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
    value: { type: 'Property', value: 0, observedAt: new Date().toISOString() },
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

async function unsubscribe(gateway: Server): Promise<void> {
  await ask(gateway, 'DELETE', '/ngsi-ld/v1/subscriptions/urn:up')
  await pause(2500)
}

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
