/**
 * The embedded MQTT broker: MQTT 3.1 and 3.1.1 with QoS 0, 1 and 2, retained messages, wills and persistent sessions
 * that survive a restart. PUBACK and PUBREC say that the message is on disk, whatever it was needed for.
 *
 * The broker library answers CONNECT, SUBSCRIBE, UNSUBSCRIBE, PING and the QoS 2 handshake. How messages are stored,
 * where they go and how fast a client may be is decided here. MQTT 5 is refused with return code 1.
 */
import type { EventEmitter } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Aedes } from 'aedes'
import { writeToStream } from 'mqtt-packet'
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import { productToken } from '#base/version.ts'
import type { Door } from '#broker/door.ts'
import type { SessionRows } from '#store/sessions.ts'
import { createAdmission } from './admission.ts'
import { createArrivals, type IntakePort } from './arrivals.ts'
import { createChores } from './chores.ts'
import { createFaults } from './faults.ts'
import { createFilterTree } from './filter-tree.ts'
import { createFlow, createReadingTurn, createTurnEnd } from './flow.ts'
import { type Credentials, createHooks } from './hooks.ts'
import { createLink, type Link } from './link.ts'
import { createPersistence } from './persistence.ts'
import { createPresences } from './presence.ts'
import { createReceipts } from './receipts.ts'
import { createRetained } from './retained.ts'
import { createRoutes } from './routes.ts'
import { createSessionQueues, type Session } from './session-queue.ts'
import { createSessions } from './sessions.ts'
import { systemPrefix } from './topics.ts'
import { createWills } from './wills.ts'
import type { Message } from './wire.ts'

export interface MqttPorts {
  readonly door: Pick<Door, 'submit' | 'whenRoom' | 'commit'>
  readonly intake: IntakePort
  readonly rows: SessionRows
  /** Judges user name and password of every CONNECT. */
  readonly authenticate: (credentials: Credentials) => boolean | Promise<boolean>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface MqttSettings {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Ceilings and times that may be lower than those of the limits table. */
  readonly clientsMax?: number | undefined
  readonly sessionsMax?: number | undefined
  readonly sessionMessagesMax?: number | undefined
  readonly sessionBytesMax?: number | undefined
  readonly sessionsBytesMax?: number | undefined
  readonly sessionAgeMs?: number | undefined
  readonly retainedMessagesMax?: number | undefined
  readonly retainedBytesMax?: number | undefined
  readonly willGraceMs?: number | undefined
  readonly holdMs?: number | undefined
  readonly stallMs?: number | undefined
}

export interface MqttStats {
  readonly clients: number
  readonly sessions: number
  readonly retained: number
  /** Messages owed to sessions, and their bytes. */
  readonly owed: number
  readonly owedBytes: number
}

export interface MqttServer {
  readonly port: number
  stats(): MqttStats
  /** Stops listening, acknowledges what is stored within the deadline, and closes all connections; wills wait on disk. */
  close(deadlineMs: number): Promise<void>
}

const inspectionMs = 1000
/** TCP probes connections that are silent for so long, for clients without keep-alive. */
const probeMs = 60_000
const expiryMs = 3_600_000

/** Starts the broker. @throws gateway.address-unavailable when the address cannot be listened on. */
export async function createMqttServer(ports: MqttPorts, settings: MqttSettings): Promise<MqttServer> {
  const { clock, log, metrics } = ports
  const parts = createParts(ports, settings)
  const { flow, presences, sessions, queues, retained, chores, wills, arrivals } = parts
  const faults = createFaults(ports)
  const hooks = createHooks({ ...parts, authenticate: ports.authenticate })
  const broker = new Aedes({
    ...hooks.options,
    persistence: createPersistence({ ...parts, presenceOf: presences.of }),
    drainTimeout: 0,
    connectTimeout: limits.mqttConnectMs.value,
    maxInflightInbound: 0,
    maxTopicLevels: limits.topicLevelsMax.value,
    // The library publishes wills left by a crash after four of its heartbeats.
    heartbeatInterval: (settings.willGraceMs ?? limits.willGraceMs.value) / 4,
  })
  hooks.attach(broker)
  broker.on('clientError', (client, error) => faults.note(client.id, error.message))
  broker.on('connectionError', (_client, error) => faults.note('', error.message))
  const events: EventEmitter = broker
  events.on('error', (error: Error) => faults.note('', error.message))
  await broker.listen()
  const closeBroker = (): Promise<void> => new Promise((resolve) => broker.close(() => resolve()))

  const partials = createFlow(limits.mqttPartialBytesMax.value)
  const atTurnEnd = createTurnEnd()
  const turn = createReadingTurn(clock.monotonic, limits.mqttTurnMs.value)

  function accept(socket: Socket): void {
    const link = createLink(socket, {
      clock,
      flow,
      partials,
      turn,
      atTurnEnd,
      stallMs: settings.stallMs ?? limits.subscriberStallMs.value,
      receive: arrivals.receive,
      failed: (failing, reason) => faults.note(failing.id(), reason),
      left(leaving) {
        const will = presences.ofLink(leaving)?.will
        if (will !== undefined) wills.drop(will)
      },
      closed,
    })
    presences.add(link, broker.handle(link.relay))
  }

  function closed(link: Link): void {
    const session = presences.remove(link)?.session
    if (session !== undefined) sessions.leave(session, link)
  }

  const listener = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: probeMs }, accept)
  listener.on('drop', () => faults.note('', 'there are too many clients'))
  listener.maxConnections = settings.clientsMax ?? limits.mqttClientsMax.value
  const port = await listen(listener, settings).catch(async (error: unknown) => {
    await closeBroker()
    throw error
  })
  listener.on('error', (error) => faults.note('', error.message))
  log.info('mqtt.listening', { host: settings.host, port })

  const inspection = setInterval(() => {
    for (const link of presences.links()) link.inspect()
  }, inspectionMs).unref()
  const expiry = setInterval(sessions.expire, expiryMs).unref()
  sessions.expire()

  metrics.gauge('selvedge_mqtt_clients', presences.count)
  metrics.gauge('selvedge_mqtt_sessions', sessions.count)
  metrics.gauge('selvedge_mqtt_offline_messages', queues.messages)
  metrics.gauge('selvedge_mqtt_retained_messages', retained.count)

  return Object.freeze({
    port,
    stats: () => ({
      clients: presences.count(),
      sessions: sessions.count(),
      retained: retained.count(),
      owed: queues.messages(),
      owedBytes: queues.bytes(),
    }),
    async close(deadlineMs) {
      const deadline = clock.monotonic() + deadlineMs
      hooks.stop()
      listener.close()
      clearInterval(inspection)
      clearInterval(expiry)
      for (const link of presences.links()) link.hush()
      while ([...presences.links()].some((link) => link.hasTaken()) && clock.monotonic() < deadline) {
        await pause(10)
      }
      sessions.leaveAll()
      await Promise.race([chores.flush(), pause(Math.max(0, deadline - clock.monotonic()), false)])
      for (const link of presences.links()) link.close()
      parts.admission.close()
      await closeBroker()
    },
  } satisfies MqttServer)
}

/** The parts of the broker and what each stands on. */
function createParts(ports: MqttPorts, settings: MqttSettings) {
  const { door, rows, clock, log, metrics } = ports
  const flow = createFlow(limits.framesInFlightBytesMax.value)
  const admission = createAdmission(door)
  const chores = createChores(door)
  const linkTree = createFilterTree<Link>()
  const sessionTree = createFilterTree<Session>()
  const queues = createSessionQueues(
    { door, rows, chores, sessions: () => sessions.all(), log, metrics },
    {
      sessionMessages: settings.sessionMessagesMax ?? limits.sessionMessagesMax.value,
      sessionBytes: settings.sessionBytesMax ?? limits.sessionBytesMax.value,
      sessionsBytes: settings.sessionsBytesMax ?? limits.sessionsBytesMax.value,
    },
  )
  const sessions = createSessions(
    { door, rows, chores, queues, tree: sessionTree, clock, log },
    {
      sessionsMax: settings.sessionsMax ?? limits.sessionsMax.value,
      sessionAgeMs: settings.sessionAgeMs ?? limits.sessionAgeMs.value,
    },
  )
  const retained = createRetained(
    { rows, log, standing: [versionMessage] },
    {
      retainedMessages: settings.retainedMessagesMax ?? limits.retainedMessagesMax.value,
      retainedBytes: settings.retainedBytesMax ?? limits.retainedBytesMax.value,
    },
  )
  const receipts = createReceipts({ rows, sessions, admission })
  const wills = createWills({ rows, door, chores })
  const presences = createPresences(linkTree)
  const undelivered = metrics.counter('selvedge_mqtt_undelivered_total')
  const routes = createRoutes({ links: linkTree, sessions: sessionTree, undelivered })
  const holdMs = settings.holdMs ?? limits.mqttHoldMs.value
  const arrivals = createArrivals({
    holdMs,
    flow,
    admission,
    intake: ports.intake,
    routes,
    retained,
    queues,
    receipts,
    wills,
    clock,
    log,
    metrics,
  })
  return { flow, admission, chores, queues, sessions, retained, receipts, wills, presences, routes, arrivals }
}

/** As other brokers tell theirs. */
const versionMessage: Message = {
  topic: `${systemPrefix}broker/version`,
  payload: Buffer.from(productToken),
  qos: 0,
}

export type MqttParts = ReturnType<typeof createParts>

// The library would keep the two bytes of every number there is from its first packet on: 8 MB.
writeToStream.cacheNumbers = false

/** `isKeeping` false: it does not keep the process alive. */
const pause = (ms: number, isKeeping = true): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    if (!isKeeping) timer.unref()
  })

function listen(
  listener: ReturnType<typeof createServer>,
  { host, port }: { host: string; port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', (error) => {
      reject(
        new GatewayError(
          'gateway.address-unavailable',
          `MQTT cannot listen on ${host}:${port}: ${error.message}`,
        ),
      )
    })
    listener.listen(port, host, () => resolve((listener.address() as AddressInfo).port))
  })
}
