/**
 * The embedded MQTT broker: MQTT 3.1, 3.1.1 and 5 with QoS 0, 1 and 2, retained messages, wills, and
 * persistent sessions that survive a restart. PUBACK and PUBREC mean that the message is on disk, for
 * whatever purpose it is stored.
 *
 * All versions share one mechanism; a version only changes the content of packets. Shared subscriptions and
 * enhanced authentication of MQTT 5 are not supported, and clients are informed of that.
 */

import { type AddressInfo, createServer, type Socket } from 'node:net'
import { writeToStream } from 'mqtt-packet'
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError } from '#base/register/errors.ts'
import { productToken } from '#base/register/version.ts'
import type { Door } from '#broker/commit/door.ts'
import { createAcknowledgements } from '#mqtt/clients/acknowledgements.ts'
import { type Credentials, createConnections } from '#mqtt/clients/connections.ts'
import { createSubscriptions } from '#mqtt/clients/mqtt-subscriptions.ts'
import { createLink, type Link } from '#mqtt/link/client-connection.ts'
import { createFaults } from '#mqtt/link/client-faults.ts'
import type { Leaving } from '#mqtt/link/incoming.ts'
import { createArrivals, type IntakePort } from '#mqtt/publish/arrivals.ts'
import { createPublishQueue } from '#mqtt/publish/publish-queue.ts'
import { createReceipts } from '#mqtt/publish/receipts.ts'
import { createRetainedMessages } from '#mqtt/publish/retained.ts'
import { createTopicRoutes } from '#mqtt/publish/topic-routes.ts'
import { createBackgroundWrites } from '#mqtt/sessions/background-writes.ts'
import { createPresences } from '#mqtt/sessions/presence.ts'
import { createSessionQueues, type Session } from '#mqtt/sessions/session-queue.ts'
import { createSessions } from '#mqtt/sessions/sessions.ts'
import { createWills, type Will } from '#mqtt/sessions/wills.ts'
import { createFilterTree } from '#mqtt/wire/filter-tree.ts'
import { createFlow, createReadingTurn, createTurnEnd } from '#mqtt/wire/flow.ts'
import { type PacketFault, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { systemPrefix } from '#mqtt/wire/topics.ts'
import type { Message } from '#mqtt/wire/wire.ts'
import type { SessionRows } from '#store/tables/mqtt-rows.ts'

export interface MqttPorts extends Instruments {
  readonly door: Pick<Door, 'submit' | 'whenRoom' | 'commit'>
  readonly intake: IntakePort
  readonly rows: SessionRows
  /** Checks user name and password of every CONNECT. */
  readonly authenticate: (credentials: Credentials) => boolean | Promise<boolean>
}

export interface MqttSettings {
  readonly host: string
  /** 0 selects any free port. */
  readonly port: number
  /** Limits and times that may be lower than those of the limits table. */
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
  /** Messages queued for sessions, and their bytes. */
  readonly queued: number
  readonly growthBytes: number
}

export interface MqttServer {
  readonly port: number
  stats(): MqttStats
  /** Publishes a message of this gateway with QoS 1. Calls `done` when it is stored for all sessions. */
  publish(topic: string, payload: Uint8Array, done: (isStored: boolean) => void): void
  /**
   * Stops listening, acknowledges messages stored within the deadline, and closes all connections; wills stay
   * on disk.
   */
  close(deadlineMs: number): Promise<void>
}

const inspectionMs = 1000
/** TCP probes connections that are silent for this long, for clients without keep-alive. */
const probeMs = 60_000
const expiryMs = 5000

/**
 * Starts the broker.
 * @throws gateway.address-unavailable when it cannot listen on the address.
 */
export async function createMqttServer(ports: MqttPorts, settings: MqttSettings): Promise<MqttServer> {
  const { clock, log, metrics } = ports
  const parts = createParts(ports, settings)
  const { presences, sessions, queues, retained, backgroundWrites, wills, connections } = parts
  const faults = createFaults(ports)
  const accept = createAcceptor(ports, settings, { ...parts, faults })
  const listener = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: probeMs }, accept)
  listener.on('drop', () => faults.note('', 'the maximum number of clients is reached'))
  listener.maxConnections = settings.clientsMax ?? limits.mqttClientsMax.value
  const port = await listen(listener, settings)
  listener.on('error', (error) => faults.note('', error.message))
  log.info('mqtt.listening', { host: settings.host, port })

  const inspection = setInterval(() => {
    for (const link of presences.links()) link.inspect()
    wills.publishDue()
  }, inspectionMs).unref()
  const expire = (): void => {
    sessions.expire()
    retained.expire()
  }
  const expiry = setInterval(expire, expiryMs).unref()
  expire()

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
      queued: queues.messages(),
      growthBytes: queues.bytes(),
    }),
    publish: (topic, payload, done) => parts.arrivals.publish({ topic, payload, qos: 1 }, done),
    async close(deadlineMs) {
      const deadline = clock.monotonic() + deadlineMs
      connections.stop()
      wills.stop()
      listener.close()
      clearInterval(inspection)
      clearInterval(expiry)
      for (const link of presences.links()) link.stopInput()
      while ([...presences.links()].some((link) => link.hasPending()) && clock.monotonic() < deadline) {
        await pause(10)
      }
      sessions.leaveAll()
      await Promise.race([backgroundWrites.flush(), pause(Math.max(0, deadline - clock.monotonic()), false)])
      for (const link of presences.links()) link.close(reasons.serverShuttingDown)
      parts.admission.close()
    },
  } satisfies MqttServer)
}

/** Creates the function that accepts new connections. */
function createAcceptor(
  { clock, metrics }: MqttPorts,
  settings: MqttSettings,
  parts: ReturnType<typeof createParts> & { readonly faults: ReturnType<typeof createFaults> },
): (socket: Socket) => void {
  const { flow, presences, sessions, receipts, wills, arrivals, connections, subscriptions, faults } = parts
  const partials = createFlow(limits.mqttPartialBytesMax.value)
  const atTurnEnd = createTurnEnd()
  const backlog = { bytes: 0 }
  const turn = createReadingTurn(clock.monotonic, limits.mqttTurnMs.value)
  const unsent = metrics.counter('selvedge_mqtt_unsent_total')
  const answered = createAcknowledgements(parts)

  function left(link: Link, { keepsWill, expirySeconds }: Leaving): PacketFault | undefined {
    const presence = presences.of(link)
    if (presence === undefined) return undefined
    if (expirySeconds !== undefined) {
      if (presence.endsWithConnection && expirySeconds > 0) {
        return protocolError('a session expiry interval after one of 0 [MQTT-3.14.2-2]')
      }
      presence.expiryMs = Math.min(expirySeconds * 1000, settings.sessionAgeMs ?? limits.sessionAgeMs.value)
    }
    if (presence.will !== undefined && !keepsWill) wills.drop(presence.will)
    return undefined
  }

  function closed(link: Link): void {
    const presence = presences.remove(link)
    if (presence === undefined) return
    const { session, client, will, expiryMs } = presence
    if (session !== undefined) sessions.leave(session, presence)
    if (session === undefined || expiryMs === 0) receipts.clear(client)
    if (will !== undefined) wills.leave(will, session === undefined ? 0 : expiryMs)
  }

  return function accept(socket) {
    const link = createLink(socket, {
      clock,
      flow,
      unsent,
      partials,
      turn,
      atTurnEnd,
      backlog,
      stallMs: settings.stallMs ?? limits.subscriberStallMs.value,
      receive: arrivals.receive,
      answered,
      control(from, type, bytes) {
        return type === 'connect' ? connections.connect(from, bytes) : subscriptions[type](from, bytes)
      },
      failed: (failing, reason) => faults.note(failing.id(), reason),
      left,
      closed,
    })
    presences.connect(link)
  }
}

/** Creates the parts of the broker and connects them. */
function createParts(ports: MqttPorts, settings: MqttSettings) {
  const { door, rows, clock, log, metrics, authenticate } = ports
  const flow = createFlow(limits.framesInFlightBytesMax.value)
  const admission = createPublishQueue(door)
  const backgroundWrites = createBackgroundWrites(door)
  const linkTree = createFilterTree<Link>()
  const sessionTree = createFilterTree<Session>()
  const queues = createSessionQueues(
    { door, rows, backgroundWrites, sessions: () => sessions.all(), log, metrics },
    {
      sessionMessages: settings.sessionMessagesMax ?? limits.sessionMessagesMax.value,
      sessionBytes: settings.sessionBytesMax ?? limits.sessionBytesMax.value,
      sessionsBytes: settings.sessionsBytesMax ?? limits.sessionsBytesMax.value,
    },
  )
  const sessions = createSessions(
    { door, rows, backgroundWrites, queues, tree: sessionTree, clock, log },
    {
      sessionsMax: settings.sessionsMax ?? limits.sessionsMax.value,
      sessionAgeMs: settings.sessionAgeMs ?? limits.sessionAgeMs.value,
    },
  )
  const retained = createRetainedMessages(
    { rows, log, backgroundWrites, clock, fixed: [versionMessage] },
    {
      retainedMessages: settings.retainedMessagesMax ?? limits.retainedMessagesMax.value,
      retainedBytes: settings.retainedBytesMax ?? limits.retainedBytesMax.value,
    },
  )
  const receipts = createReceipts({ rows, sessions, admission })
  const sessionAgeMs = settings.sessionAgeMs ?? limits.sessionAgeMs.value
  const graceMs = settings.willGraceMs ?? limits.willGraceMs.value
  const publish = (will: Will): void => arrivals.receiveWill(will)
  const wills = createWills({ rows, door, backgroundWrites, clock, graceMs, publish })
  const presences = createPresences(linkTree)
  const undelivered = metrics.counter('selvedge_mqtt_undelivered_total')
  const routes = createTopicRoutes({ links: linkTree, sessions: sessionTree, undelivered })
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
  const login = { presences, sessions, receipts, wills, sessionAgeMs, authenticate }
  const connections = createConnections(login)
  const subscriptions = createSubscriptions({ presences, sessions, retained, routes })
  const state = { queues, sessions, retained, receipts, wills, presences }
  return { ...state, flow, admission, backgroundWrites, arrivals, connections, subscriptions }
}

/** The version message that MQTT brokers customarily publish. */
const versionMessage: Message = {
  topic: `${systemPrefix}broker/version`,
  payload: Buffer.from(productToken),
  qos: 0,
}

// Otherwise the library would cache two bytes for every possible number after its first packet: 8 MB.
writeToStream.cacheNumbers = false

/** With `isKeeping` false, the timer does not keep the process alive. */
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
