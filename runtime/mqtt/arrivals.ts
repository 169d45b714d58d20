/**
 * What happens to a message that a client publishes. What its frame means, the retained message, the copies owed to
 * persistent sessions, a QoS 2 receipt and the end of a will are one work at the door; when it is on disk the message
 * goes to those who subscribe now, and then it is acknowledged. A message with none of these costs no commit.
 *
 * Where the disk refuses, messages wait for some seconds and are tried again; then the connection is closed without
 * an acknowledgement, so that the client keeps them. QoS 0 is dropped and counted. What can never be stored is
 * acknowledged, counted and logged, because the client would send it forever.
 */
import type { Clock } from '#base/clock.ts'
import { GatewayError, toGatewayError } from '#base/errors.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import type { Stage } from '#broker/stage.ts'
import type { Frame } from '#contract'
import type { Admission, Offered } from './admission.ts'
import type { Flow } from './flow.ts'
import type { Incoming } from './incoming.ts'
import type { Link } from './link.ts'
import type { Taken } from './order.ts'
import type { Receipt, Receipts } from './receipts.ts'
import type { Retained } from './retained.ts'
import type { Route, Routes } from './routes.ts'
import type { SessionQueues } from './session-queue.ts'
import type { Will, Wills } from './wills.ts'
import { asQos, type Message } from './wire.ts'

/** What a frame means, decoded: part of a commit. */
export interface Intent {
  /** Bytes it holds in memory while it waits. */
  readonly bytes: number
  decide(stage: Stage): void
}

/**
 * The intake: what a claimed frame means, or undefined when no bridge claims its topic. The payload of a frame is a
 * view of the bytes received; whoever keeps it after the decision copies it.
 */
export interface IntakePort {
  accept(frame: Frame): Intent | undefined
}

export interface ArrivalsPorts {
  /** How long a message may be tried when the disk refuses. */
  readonly holdMs: number
  /** Bytes on the way to disk; connections count theirs themselves. */
  readonly flow: Flow
  readonly admission: Admission
  readonly intake: IntakePort
  readonly routes: Routes
  readonly retained: Retained
  readonly queues: SessionQueues
  readonly receipts: Receipts
  readonly wills: Wills
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** A message that the broker library hands over: QoS 2, or a will. */
export interface Handed {
  readonly client: string
  readonly message: Message & { readonly retain: boolean }
  readonly receipt: Receipt | undefined
  readonly will: Will | undefined
  done(error?: GatewayError): void
}

/** A message on its way to disk. */
interface Arrival extends Offered, Taken {
  readonly link: Link | undefined
  readonly handed: Handed | undefined
  readonly route: Route
  readonly message: Message
  readonly retain: boolean
  readonly id: number
  intent: Intent | undefined
  /** The message with a payload of its own, made when something keeps it. */
  kept: Message | undefined
  heldAt: number
  isDropped: boolean
}

const overheadBytes = 256
/** A copy is a row: weighed by the time it takes in a commit, so that no group takes long. */
const copyBytes = 1024

export function createArrivals(ports: ArrivalsPorts) {
  const { flow, admission, intake, routes, retained, queues, receipts, wills, clock, log } = ports
  const published = ports.metrics.counter('selvedge_mqtt_publishes_total')
  const dropped = ports.metrics.counter('selvedge_mqtt_dropped_total')
  const refused = ports.metrics.counter('selvedge_mqtt_refused_total')
  let isHolding = false

  function accept(topic: string, payload: Uint8Array, source: string, isResent = false): Intent | undefined {
    published.value++
    try {
      return intake.accept({
        topic,
        payload,
        receivedAt: clock.now(),
        retained: false,
        isResent,
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

  const isKept = (route: Route, { qos, payload }: Message, retain: boolean): boolean =>
    (retain && (payload.length > 0 || retained.has(route.topic))) || routes.owedTo(route, qos) > 0

  function decide(this: Arrival, stage: Stage): void {
    admission.assertTurn()
    this.intent?.decide(stage)
    if (isKept(this.route, this.message, this.retain)) keep(stage, this)
    const { receipt, will } = this.handed ?? {}
    if (receipt !== undefined) receipts.decide(stage, receipt)
    if (will !== undefined) wills.decide(stage, will)
  }

  function keep(stage: Stage, arrival: Arrival): void {
    const { topic, payload, qos } = arrival.message
    // Rows travel to another thread with the whole buffer they are a view of.
    const kept = arrival.kept ?? { topic, payload: new Uint8Array(payload), qos }
    arrival.kept = kept
    if (arrival.retain) retained.decide(stage, kept)
    if (qos === 0) return
    for (const [session, granted] of routes.sessionsOf(arrival.route)) {
      if (granted > 0) queues.enqueue(stage, session, { ...kept, qos: asQos(Math.min(qos, granted)) })
    }
  }

  function answer(this: Arrival, error?: GatewayError): void {
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

  function hold(arrival: Arrival, error: GatewayError): void {
    if (!isHolding) log.error('mqtt.held', { error: error.message })
    isHolding = true
    const now = clock.monotonic()
    if (arrival.heldAt === 0) arrival.heldAt = now
    if (arrival.message.qos === 0) drop(arrival)
    else if (now - arrival.heldAt < ports.holdMs) admission.hold(arrival, error)
    else settle(arrival, 'refused')
  }

  /** The door takes no more. */
  const giveUp = (arrival: Arrival): void =>
    arrival.message.qos === 0 ? drop(arrival) : settle(arrival, 'refused')

  /** QoS 0 promises nothing: the message goes no further. */
  function drop(arrival: Arrival): void {
    dropped.value++
    arrival.isDropped = true
    settle(arrival, 'stored')
  }

  /** It will never be stored: the rest of it may be. */
  function refuse(arrival: Arrival, error: GatewayError): void {
    noteRefused(arrival.route.topic, error)
    const { intent } = arrival
    arrival.intent = undefined
    if (intent === undefined || !admission.offer(arrival, true)) settle(arrival, 'stored')
  }

  function settle(arrival: Arrival, state: 'stored' | 'refused'): void {
    arrival.state = state
    if (arrival.link !== undefined) arrival.link.advance()
    else {
      flow.remove(arrival.bytes)
      const isStored = state === 'stored'
      conclude(
        arrival.handed!,
        isStored ? undefined : new GatewayError('store.failed', 'a message could not be stored'),
      )
    }
  }

  function conclude({ receipt, done }: Handed, error: GatewayError | undefined): void {
    if (receipt !== undefined) receipts.settle(receipt, error)
    done(error)
  }

  function finish(this: Arrival): void {
    if (!this.isDropped) routes.fanOut(this.route, this.message)
    if (this.message.qos === 1) this.link!.acknowledge(this.id)
  }

  function createArrival(
    parts: Pick<Arrival, 'link' | 'handed' | 'route' | 'message' | 'retain' | 'id' | 'intent'>,
  ): Arrival {
    const { payload, qos } = parts.message
    const copies = routes.owedTo(parts.route, qos)
    return {
      link: parts.link,
      handed: parts.handed,
      route: parts.route,
      message: parts.message,
      retain: parts.retain,
      id: parts.id,
      intent: parts.intent,
      kept: undefined,
      heldAt: 0,
      place: undefined,
      isDropped: false,
      state: 'waiting',
      urgent: false,
      bytes:
        overheadBytes + payload.length + (parts.intent?.bytes ?? 0) + copies * (copyBytes + payload.length),
      decide,
      answer,
      finish,
    }
  }

  return Object.freeze({
    /** Takes a PUBLISH of QoS 0 or 1 from a connection; returns what is wrong with it, if anything is. */
    receive(link: Link, incoming: Incoming): string | undefined {
      const route = routes.find(incoming.topic)
      if (route.problem !== undefined) return route.problem
      const { topic } = route
      const { payload, qos, retain, dup, id } = incoming
      const intent = accept(topic, payload, link.id(), dup)
      const message: Message = { topic, payload, qos }
      const isNothing = intent === undefined && !isKept(route, message, retain)
      if (isNothing && !link.hasTaken()) {
        routes.fanOut(route, message)
        if (qos === 1) link.acknowledge(id)
        return undefined
      }
      const arrival = createArrival({ link, handed: undefined, route, message, retain, id, intent })
      link.take(arrival)
      if (isNothing) arrival.state = 'stored'
      else if (!admission.offer(arrival, qos > 0)) giveUp(arrival)
      return undefined
    },
    /** Takes a message from the broker library, which sends it on and acknowledges it when `done` is called. */
    receiveHanded(handed: Handed): void {
      const { message } = handed
      const route = routes.ofTopic(message.topic)
      if (route.problem !== undefined) {
        conclude(handed, new GatewayError('mqtt.topic', route.problem))
        return
      }
      const { retain } = message
      const intent = accept(message.topic, message.payload, handed.client)
      const arrival = createArrival({ link: undefined, handed, route, message, retain, id: 0, intent })
      flow.add(arrival.bytes)
      const isNothing = intent === undefined && handed.will === undefined && !isKept(route, message, retain)
      if (isNothing) settle(arrival, 'stored')
      else if (!admission.offer(arrival, true)) giveUp(arrival)
    },
  })
}
