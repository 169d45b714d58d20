/**
 * Receives frames from an existing MQTT broker. It subscribes there with QoS 1 and a session of its own, and
 * acknowledges a frame only when the frame is on disk here. A frame delivered with RETAIN is marked as
 * retained. Frames that no bridge reads are acknowledged at once.
 *
 * A lost connection is opened again after a pause that grows with each attempt. The other broker then
 * re-sends unacknowledged messages.
 */

import { connect, type IClientOptions } from 'mqtt'
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { type GatewayError, toGatewayError } from '#base/register/errors.ts'
import { messageOf } from '#base/time/certificate-time.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { IntakePort } from '#mqtt/publish/arrivals.ts'
import { createPublishQueue } from '#mqtt/publish/publish-queue.ts'
import { createFilterTree, plainGrant } from '#mqtt/wire/filter-tree.ts'
import { pubackBytes } from '#mqtt/wire/wire.ts'

export interface BridgeInPorts extends Instruments {
  readonly door: Pick<Door, 'submit' | 'whenRoom'>
  readonly intake: IntakePort
  /** A random number from 0 up to 1, for the jitter of reconnecting. */
  readonly random: () => number
}

export interface BridgeInSettings {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string
  readonly topics: readonly string[]
  /** Identifies the session at the other broker; must be stable and unique there. */
  readonly clientId: string
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** Certificate authorities in PEM, for mqtts; the system's when left out. */
  readonly ca?: string | undefined
  /** First pause before reconnecting, ms; it doubles up to the limit. */
  readonly retryMs?: number | undefined
}

export interface BridgeIn {
  stats(): { readonly connected: boolean; readonly inFlight: number; readonly acknowledged: number }
  /**
   * Stops accepting frames, acknowledges frames stored within the deadline, and disconnects; the session
   * remains.
   */
  close(deadlineMs: number): Promise<void>
}

/** A message as the MQTT library delivers it. */
interface Delivery {
  readonly topic: string
  readonly payload: Buffer | string
  readonly qos: number
  readonly retain: boolean
  readonly dup: boolean
  readonly messageId?: number | undefined
}

const firstRetryMs = 1000
/** A connection that lasted this long resets the pause when it is lost. */
const stableMs = 60_000

export function createBridgeIn(ports: BridgeInPorts, settings: BridgeInSettings): BridgeIn {
  const { intake, clock, log, metrics } = ports
  const url = withoutCredentials(settings.url)
  const admission = createPublishQueue(ports.door)
  const dropped = metrics.counter('selvedge_mqtt_dropped_total')
  const refused = metrics.counter('selvedge_mqtt_refused_total')
  const received = metrics.counter('selvedge_bridge_in_frames_total')
  const leastMs = settings.retryMs ?? firstRetryMs
  let pauseMs = leastMs
  let connectedAt = 0
  let isUp = false
  let isSubscribed = false
  let isClosing = false
  let inFlight = 0
  let acknowledged = 0
  /** The library delivers the next packet only after this is called. */
  let deliverNext: (() => void) | undefined

  const filters = createFilterTree<true>()
  for (const topic of settings.topics)
    filters.add(topic.replace(/^\$share\/[^/]+\//, ''), true, plainGrant(1))

  const client = connect(clientOptions(settings, leastMs))
  client.handleMessage = handleMessage

  /**
   * Handles one message. The library delivers the next one when `done` is called, and sends its own PUBACK
   * only when `done` gets no error. So `done` always gets one, and this code sends PUBACK when the frame is
   * on disk.
   */
  function handleMessage(packet: unknown, done: (error?: Error) => void): void {
    if (isClosing) return
    received.value++
    inFlight++
    take(packet as Delivery, acknowledgement(packet as Delivery))
    const next = (): void => done(manual)
    if (inFlight < limits.bridgeInFlightMax.value) next()
    else deliverNext = next
  }

  /** Returns the function that acknowledges a message on the connection it arrived on, or not at all. */
  function acknowledgement({ qos, messageId }: Delivery): (isStored: boolean) => void {
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

  function take({ topic, payload, qos, retain, dup }: Delivery, settle: (isStored: boolean) => void): void {
    // The session may still hold subscriptions that were removed from the settings.
    const isSubscribedTo = filters.match(topic).size > 0
    const intent = isSubscribedTo ? accept(topic, Buffer.from(payload as Buffer), retain, dup) : undefined
    if (intent === undefined) {
      settle(true)
      return
    }
    const work = {
      urgent: false,
      bytes: intent.bytes,
      place: undefined,
      decide(stage: Stage) {
        admission.assertTurn()
        intent.decide(stage)
      },
      answer(error?: GatewayError) {
        if (error === undefined) settle(true)
        else if (error.entry.fault === 'resource' && qos > 0) admission.hold(work, error)
        else if (error.entry.fault === 'resource') drop()
        else settle(error.code !== 'store.closed' && refuse(topic, error))
      },
    }
    const drop = (): void => {
      dropped.value++
      settle(false)
    }
    if (!admission.offer(work, qos > 0)) drop()
  }

  function accept(topic: string, payload: Buffer, retained: boolean, isResent: boolean) {
    try {
      const receivedAt = clock.now()
      const transport = 'bridge-in'
      return intake.accept({ topic, payload, receivedAt, retained, isResent, transport, source: url })
    } catch (error) {
      refuse(topic, toGatewayError(error))
      return undefined
    }
  }

  /** Acknowledges a frame that can never be stored, because the broker would otherwise re-send it forever. */
  function refuse(topic: string, error: GatewayError): true {
    refused.value++
    log.error('mqtt.frame-refused', { topic, source: url, code: error.code, error: error.message })
    return true
  }

  function subscribe(): void {
    client.subscribe([...settings.topics], { qos: 1 }, (error) => {
      if (error === null) isSubscribed = true
      else log.error('bridge-in.refused', { url, reason: error.message })
    })
  }

  client.on('connect', ({ sessionPresent }) => {
    isUp = true
    connectedAt = clock.monotonic()
    log.info('bridge-in.connected', { url, sessionPresent })
    // Subscribing again would deliver all retained messages again, but the topics may have changed before the
    // first connection.
    if (!sessionPresent || !isSubscribed) subscribe()
  })
  // Runs before the library's own listener, which starts the pause.
  client.prependListener('close', () => {
    if (isUp) {
      if (!isClosing) log.warn('bridge-in.lost', { url, inFlight })
      if (clock.monotonic() - connectedAt > stableMs) pauseMs = leastMs
    }
    isUp = false
    // Half of the pause is random, so that gateways do not reconnect all at once.
    client.options.reconnectPeriod = pauseMs * (0.5 + ports.random() / 2)
    pauseMs = Math.min(pauseMs * 2, limits.bridgeRetryMsMax.value)
  })
  client.on('error', (error) => log.warn('bridge-in.refused', { url, reason: messageOf(error) }))

  return Object.freeze({
    stats: () => ({ connected: isUp, inFlight, acknowledged }),
    async close(deadlineMs) {
      isClosing = true
      const deadline = clock.monotonic() + deadlineMs
      while (inFlight > 0 && clock.monotonic() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      admission.close()
      // A graceful end would wait for messages that the library holds; here only stored frames matter.
      await new Promise<void>((resolve) => client.end(true, {}, () => resolve()))
    },
  } satisfies BridgeIn)
}

/** The broker's address without credentials, for logs and for `source` of frames. */
function withoutCredentials(address: string): string {
  const { protocol, host } = new URL(address)
  return `${protocol}//${host}`
}

/** Prevents the library from sending its own PUBACK. */
const manual = Object.freeze({ name: 'manual', message: 'acknowledged when stored' })

function clientOptions(settings: BridgeInSettings, reconnectPeriod: number): IClientOptions {
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
    ...(ca === undefined ? {} : { ca }),
  }
}
