/**
 * A client of another MQTT broker that receives with QoS 1 and a session of its own. Its owner acknowledges
 * each message, so a message that was not processed is delivered again.
 *
 * A lost connection is opened again after a pause that grows with each attempt. The other broker then
 * re-sends unacknowledged messages.
 */
import { connect, type IClientOptions } from 'mqtt'
import { limits } from '#base/limits/limits.ts'
import { messageOf } from '#base/time/certificate-time.ts'
import type { Clock } from '#base/time/clock.ts'
import { pubackBytes } from '#mqtt/wire/wire.ts'

export interface SubscriberSettings {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string
  /** Identifies the session at the other broker; must be stable and unique there. */
  readonly clientId: string
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** Certificate authorities in PEM, for mqtts; the system's when left out. */
  readonly ca?: string | readonly string[] | undefined
  /** First pause before reconnecting, ms; it doubles up to the limit. */
  readonly retryMs?: number | undefined
}

/** A message as the MQTT library delivers it. */
export interface DeliveredMessage {
  readonly topic: string
  readonly payload: Buffer
  readonly qos: number
  readonly retain: boolean
  readonly dup: boolean
  readonly messageId?: number | undefined
}

export interface SubscriberPorts {
  readonly clock: Pick<Clock, 'monotonic'>
  /** A random number from 0 up to 1, for the jitter of reconnecting. */
  readonly random: () => number
  /** Processes a message and calls `settle` once; true acknowledges it, false leaves it to be re-sent. */
  message(message: DeliveredMessage, settle: (isStored: boolean) => void): void
  connected(sessionPresent: boolean): void
  lost(inFlight: number): void
  /** The connection or a subscription was refused. */
  refused(reason: string): void
}

export interface Subscriber {
  /** Replaces the topic filters. */
  subscribe(topics: Iterable<string>): void
  stats(): { readonly connected: boolean; readonly inFlight: number; readonly acknowledged: number }
  /**
   * Accepts no more messages, acknowledges those that settle within the deadline, and disconnects; the
   * session remains.
   */
  close(deadlineMs: number): Promise<void>
}

const firstRetryMs = 1000
/** A connection that lasted this long resets the pause when it is lost. */
const stableMs = 60_000

export function createSubscriber(ports: SubscriberPorts, settings: SubscriberSettings): Subscriber {
  const { clock } = ports
  const leastMs = settings.retryMs ?? firstRetryMs
  let pauseMs = leastMs
  let connectedAt = 0
  let isUp = false
  let isClosing = false
  let inFlight = 0
  let acknowledged = 0
  /** The library delivers the next packet only after this is called. */
  let deliverNext: (() => void) | undefined
  let wanted: ReadonlySet<string> = new Set()
  /** Filters of the session at the other broker; undefined until it is known. */
  let subscribed: Set<string> | undefined

  const client = connect(clientOptions(settings, leastMs))
  client.handleMessage = handleMessage

  /**
   * Handles one message. The library delivers the next one when `done` is called, and sends its own PUBACK
   * only when `done` gets no error. So `done` always gets one, and `acknowledgement` sends PUBACK.
   */
  function handleMessage(packet: unknown, done: (error?: Error) => void): void {
    if (isClosing) return
    inFlight++
    const message = packet as DeliveredMessage
    ports.message({ ...message, payload: Buffer.from(message.payload) }, acknowledgement(message))
    const next = (): void => done(manual)
    if (inFlight < limits.bridgeInFlightMax.value) next()
    else deliverNext = next
  }

  /** Returns the function that acknowledges a message on the connection it arrived on, or not at all. */
  function acknowledgement({ qos, messageId }: DeliveredMessage): (isStored: boolean) => void {
    const { stream } = client
    return (isStored) => {
      inFlight--
      if (isStored && qos > 0 && client.stream === stream && !stream.destroyed) {
        acknowledged++
        stream.write(pubackBytes([messageId!]))
      }
      const next = deliverNext
      deliverNext = undefined
      next?.()
    }
  }

  /** Makes the subscriptions of the session those that are wanted. */
  function sync(): void {
    if (!isUp) return
    const known = subscribed ?? new Set()
    const added = [...wanted].filter((topic) => !known.has(topic))
    const removed = [...known].filter((topic) => !wanted.has(topic))
    if (removed.length > 0) client.unsubscribe(removed)
    subscribed = new Set(wanted)
    if (added.length === 0) return
    client.subscribe(added, { qos: 1 }, (error) => {
      if (error === null) return
      for (const topic of added) subscribed?.delete(topic)
      ports.refused(error.message)
    })
  }

  client.on('connect', ({ sessionPresent }) => {
    isUp = true
    connectedAt = clock.monotonic()
    ports.connected(sessionPresent)
    // Subscribing again would deliver all retained messages again, but the topics may have changed before the
    // first connection.
    if (!sessionPresent) subscribed = undefined
    sync()
  })
  // Runs before the library's own listener, which starts the pause.
  client.prependListener('close', () => {
    if (isUp) {
      if (!isClosing) ports.lost(inFlight)
      if (clock.monotonic() - connectedAt > stableMs) pauseMs = leastMs
    }
    isUp = false
    // Half of the pause is random, so that gateways do not reconnect all at once.
    client.options.reconnectPeriod = pauseMs * (0.5 + ports.random() / 2)
    pauseMs = Math.min(pauseMs * 2, limits.bridgeRetryMsMax.value)
  })
  client.on('error', (error) => ports.refused(messageOf(error)))

  return Object.freeze({
    subscribe(topics) {
      wanted = new Set(topics)
      sync()
    },
    stats: () => ({ connected: isUp, inFlight, acknowledged }),
    async close(deadlineMs) {
      isClosing = true
      const deadline = clock.monotonic() + deadlineMs
      while (inFlight > 0 && clock.monotonic() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      // A graceful end would wait for messages that the library holds; here only stored ones matter.
      await new Promise<void>((resolve) => client.end(true, {}, () => resolve()))
    },
  } satisfies Subscriber)
}

/** Prevents the library from sending its own PUBACK. */
const manual = Object.freeze({ name: 'manual', message: 'acknowledged when stored' })

function clientOptions(settings: SubscriberSettings, reconnectPeriod: number): IClientOptions {
  const { clientId, username, password, ca } = settings
  const { protocol, hostname, port } = new URL(settings.url)
  return {
    protocol: protocol.slice(0, -1) as 'mqtt' | 'mqtts',
    // An IPv6 address without brackets.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === '' ? {} : { port: Number(port) }),
    protocolVersion: 4,
    clean: false,
    clientId,
    reconnectPeriod,
    connectTimeout: 10_000,
    keepalive: 30,
    resubscribe: false,
    reconnectOnConnackError: true,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(ca === undefined ? {} : { ca: ca as string | string[] }),
  }
}
