/**
 * Handles a message that a client publishes. A single work at the door covers all of its parts: its frame's
 * observations, the retained message, copies for persistent sessions, a QoS 2 receipt and the deletion of a
 * will. When that is on disk, the message is sent to current subscribers and then acknowledged. A message
 * without such parts needs no commit.
 *
 * When the disk refuses, messages wait for some seconds and are retried. After that the connection is closed
 * without an acknowledgement, so that the client keeps them. QoS 0 is dropped and counted. A message that can
 * never be stored is acknowledged, counted and logged, because the client would otherwise re-send it forever.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { type GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Frame } from '#contract'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { Incoming } from '#mqtt/link/incoming.ts'
import type { SessionQueues } from '#mqtt/sessions/session-queue.ts'
import type { Will, Wills } from '#mqtt/sessions/wills.ts'
import type { Flow } from '#mqtt/wire/flow.ts'
import type { OrderedMessage } from '#mqtt/wire/message-order.ts'
import { fault, type PacketFault, reasons } from '#mqtt/wire/reasons.ts'
import type { Message } from '#mqtt/wire/wire.ts'
import type { Offered, PublishQueue } from './publish-queue.ts'
import type { Receipt, Receipts } from './receipts.ts'
import type { RetainedMessages } from './retained.ts'
import { type Departure, deliveryTo, type Routes, type TopicRoute } from './topic-routes.ts'

/** The decoded content of a frame, as part of a commit. */
export interface Intent {
  /** Bytes it holds in memory until the commit. */
  readonly bytes: number
  decide(stage: Stage): void
}

/**
 * The intake. `accept` returns undefined when no bridge claims the topic. The payload of a frame is a view of
 * the received bytes; code that keeps it after the decision must copy it.
 */
export interface IntakePort {
  accept(frame: Frame): Intent | undefined
}

export interface ArrivalsPorts extends Instruments {
  /** How long a message is retried when the disk refuses. */
  readonly holdMs: number
  /** Bytes on the way to disk; connections count theirs themselves. */
  readonly flow: Flow
  readonly admission: PublishQueue
  readonly intake: IntakePort
  readonly routes: Routes
  readonly retained: RetainedMessages
  readonly queues: SessionQueues
  readonly receipts: Receipts
  readonly wills: Wills
}

/** The parts of a message on its way to disk. */
interface Parts extends Departure {
  /** The connection it arrived on; a will has none. */
  readonly link: Link | undefined
  readonly route: TopicRoute
  readonly id: number
  readonly intent: Intent | undefined
  readonly receipt: Receipt | undefined
  readonly will: Will | undefined
  /** Called when a message of this gateway is stored for all sessions, or could not be stored. */
  readonly done?: (isStored: boolean) => void
  /** True when nobody subscribes to it and no bridge reads it; MQTT 5 reports that to the publisher. */
  readonly hasNoSubscribers: boolean
}

const overheadBytes = 256
/** A copy is a row, weighted by the time it takes in a commit, so that no group takes long. */
const copyBytes = 1024

export function createArrivals(ports: ArrivalsPorts) {
  const { flow, admission, intake, routes, retained, queues, receipts, wills, clock, log } = ports
  const published = ports.metrics.counter('selvedge_mqtt_publishes_total')
  const dropped = ports.metrics.counter('selvedge_mqtt_dropped_total')
  const refused = ports.metrics.counter('selvedge_mqtt_refused_total')
  let isHolding = false

  function accept(
    { topic, payload, qos }: Message,
    source: string,
    { dup, contentType }: Pick<Incoming, 'dup' | 'contentType'>,
  ): Intent | undefined {
    published.value++
    try {
      return intake.accept({
        topic,
        payload,
        contentType,
        receivedAt: clock.now(),
        retained: false,
        // A QoS 2 message is accepted only once, so this one was not accepted before.
        isResent: dup && qos < 2,
        transport: 'mqtt',
        source,
      })
    } catch (error) {
      noteRefused(topic, toGatewayError(error))
      return undefined
    }
  }

  function noteRefused(topic: string, error: GatewayError): void {
    refused.value++
    const { code, message, details } = error
    log.error('mqtt.frame-refused', { topic, code, error: message, ...details })
  }

  const isKept = (route: TopicRoute, { qos, payload }: Message, retain: boolean): boolean =>
    (retain && (payload.length > 0 || retained.has(route.topic))) || routes.storedCopies(route, qos) > 0

  /** A message on its way to disk; a class, because the instances of a busy broker share its methods. */
  class Arrival implements Offered, OrderedMessage {
    readonly parts: Parts
    readonly bytes: number
    readonly urgent = false
    intent: Intent | undefined
    /** The message with a payload of its own, created when it is stored. */
    kept: Message | undefined = undefined
    heldAt = 0
    place: number | undefined = undefined
    isDropped = false
    state: OrderedMessage['state'] = 'waiting'

    constructor(parts: Parts) {
      const { payload, qos, properties } = parts.message
      const copies = routes.storedCopies(parts.route, qos)
      const size = payload.length + (properties?.length ?? 0)
      this.parts = parts
      this.intent = parts.intent
      this.bytes = overheadBytes + size + (parts.intent?.bytes ?? 0) + copies * (copyBytes + size)
    }

    decide(stage: Stage): void {
      const { route, message, retain, receipt, will } = this.parts
      admission.assertTurn()
      this.intent?.decide(stage)
      if (isKept(route, message, retain)) keep(stage, this)
      if (receipt !== undefined) receipts.decide(stage, receipt)
      if (will !== undefined) wills.decide(stage, will)
    }

    answer(error?: GatewayError): void {
      if (error === undefined) {
        isHolding = false
        settle(this, 'stored')
      } else if (error.entry.fault === 'resource') {
        hold(this, error)
      } else if (error.code === 'store.closed') {
        settle(this, 'refused')
      } else {
        refuse(this, error)
      }
    }

    finish(): void {
      const { link, route, message, id, receipt, hasNoSubscribers } = this.parts
      if (!this.isDropped) routes.fanOut(route, this.parts)
      if (message.qos === 0 || link === undefined) return
      const code = hasNoSubscribers ? reasons.noMatchingSubscribers : reasons.success
      if (receipt !== undefined) receipts.settle(receipt)
      link.acknowledge({ type: receipt === undefined ? 'puback' : 'pubrec', id, code })
    }
  }

  function keep(stage: Stage, arrival: Arrival): void {
    const { route, message, retain } = arrival.parts
    const { topic, payload, qos, properties, expiresAt } = message
    // Rows are sent to another thread with the whole buffer behind a view, so the payload is copied. An
    // expiry time by an unset clock could pass at any moment, so a message stored then does not expire.
    const lasting = clock.trust?.stretch() === undefined ? expiresAt : undefined
    const kept = arrival.kept ?? {
      topic,
      payload: new Uint8Array(payload),
      qos,
      properties,
      expiresAt: lasting,
    }
    arrival.kept = kept
    if (retain) retained.decide(stage, kept)
    if (qos === 0) return
    for (const [session, grant] of routes.sessionsOf(route)) {
      const delivery = deliveryTo(session.client, grant, arrival.parts)
      if (delivery !== undefined && delivery.qos > 0)
        queues.enqueue(stage, session, { message: kept, delivery })
    }
  }

  function hold(arrival: Arrival, error: GatewayError): void {
    if (!isHolding) log.error('mqtt.held', { error: error.message })
    isHolding = true
    const now = clock.monotonic()
    if (arrival.heldAt === 0) arrival.heldAt = now
    if (arrival.parts.message.qos === 0) drop(arrival)
    else if (now - arrival.heldAt < ports.holdMs) admission.hold(arrival, error)
    else settle(arrival, 'refused')
  }

  /** The door accepts no more works. */
  const rejectUnqueued = (arrival: Arrival): void =>
    arrival.parts.message.qos === 0 ? drop(arrival) : settle(arrival, 'refused')

  /** QoS 0 promises nothing: the message is dropped. */
  function drop(arrival: Arrival): void {
    dropped.value++
    arrival.isDropped = true
    settle(arrival, 'stored')
  }

  /** The intent can never be stored; the other parts are offered without it. */
  function refuse(arrival: Arrival, error: GatewayError): void {
    noteRefused(arrival.parts.route.topic, error)
    const { intent } = arrival
    arrival.intent = undefined
    if (intent === undefined || !admission.offer(arrival, true)) settle(arrival, 'stored')
  }

  function settle(arrival: Arrival, state: 'stored' | 'refused'): void {
    arrival.state = state
    const { link, will, receipt } = arrival.parts
    if (receipt !== undefined && state === 'refused') receipts.refuse(receipt)
    if (link !== undefined) {
      link.advance()
      return
    }
    flow.remove(arrival.bytes)
    if (state === 'stored') arrival.finish()
    else if (will !== undefined) wills.postpone(will)
    arrival.parts.done?.(state === 'stored')
  }

  /** Answers a re-sent QoS 2 message ([MQTT-4.3.3-2]); false when it is new. */
  function isKnown(link: Link, id: number): boolean {
    const found = receipts.find(link.id(), id)
    if (found === undefined) return false
    const acknowledge = (): void => link.acknowledge({ type: 'pubrec', id, code: reasons.success })
    if (found.state === 'stored') acknowledge()
    else {
      found.waiting.push((isStored) => {
        if (isStored) acknowledge()
        else link.fail('a message could not be stored', reasons.quotaExceeded)
      })
    }
    return true
  }

  /** Accepts a message with a well-formed topic. */
  function take(link: Link, route: TopicRoute, incoming: Incoming): void {
    const { payload, qos, retain, id, properties, expirySeconds } = incoming
    const source = link.id()
    const expiresAt = expirySeconds === undefined ? undefined : clock.now() + expirySeconds * 1000
    const message: Message = { topic: route.topic, payload, qos, properties, expiresAt }
    const intent = accept(message, source, incoming)
    const receipt = qos === 2 ? receipts.begin(source, id) : undefined
    const isUnread = intent === undefined && !isKept(route, message, retain)
    // A message that clears its topic may follow one that is not decided yet.
    const isNothing = isUnread && !retain
    const hasNoSubscribers = isUnread && qos > 0 && link.isFive() && routes.hasNoSubscribers(route)
    if (isNothing && receipt === undefined && !link.hasPending()) {
      routes.fanOut(route, { message, retain, source })
      const code = hasNoSubscribers ? reasons.noMatchingSubscribers : reasons.success
      if (qos === 1) link.acknowledge({ type: 'puback', id, code })
      return
    }
    const arrival = new Arrival({
      link,
      route,
      message,
      retain,
      source,
      id,
      intent,
      receipt,
      will: undefined,
      hasNoSubscribers,
    })
    link.add(arrival)
    if (isNothing) settle(arrival, 'stored')
    else if (!admission.offer(arrival, qos > 0)) rejectUnqueued(arrival)
  }

  return Object.freeze({
    /** Handles a PUBLISH from a connection; returns a fault if it is invalid. */
    receive(link: Link, incoming: Incoming): PacketFault | undefined {
      const route = routes.find(incoming.topic)
      if (route.problem !== undefined) return route.problem
      if (incoming.qos === 2) {
        if (isKnown(link, incoming.id)) return undefined
        if (receipts.count(link.id()) >= limits.qos2InFlightMax.value) {
          return fault(reasons.quotaExceeded, 'too many QoS 2 messages are waiting for PUBREL')
        }
      }
      take(link, route, incoming)
      return undefined
    },
    /** Publishes a message of this gateway itself. No bridge reads it. Calls `done` when it is stored. */
    publish(message: Message, done: (isStored: boolean) => void): void {
      const route = routes.ofTopic(message.topic)
      const departure = { message, retain: false, source: '' }
      published.value++
      if (!isKept(route, message, false)) {
        routes.fanOut(route, departure)
        setImmediate(done, true)
        return
      }
      const nothing = { link: undefined, intent: undefined, receipt: undefined, will: undefined }
      const arrival = new Arrival({ ...departure, ...nothing, route, id: 0, hasNoSubscribers: false, done })
      flow.add(arrival.bytes)
      if (!admission.offer(arrival, true)) rejectUnqueued(arrival)
    },
    /** Publishes the will of a client that disconnected without DISCONNECT. */
    receiveWill(will: Will): void {
      const { client: source, retain, expirySeconds } = will
      const expiresAt = expirySeconds === undefined ? undefined : clock.now() + expirySeconds * 1000
      const message: Message = { ...will.message, expiresAt }
      const route = routes.ofTopic(message.topic)
      const intent = accept(message, source, { dup: false, contentType: undefined })
      const arrival = new Arrival({
        link: undefined,
        route,
        message,
        retain,
        source,
        id: 0,
        intent,
        receipt: undefined,
        will,
        hasNoSubscribers: false,
      })
      flow.add(arrival.bytes)
      if (!admission.offer(arrival, true)) rejectUnqueued(arrival)
    },
  })
}
