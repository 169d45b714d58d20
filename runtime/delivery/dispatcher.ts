/**
 * The dispatcher of one tenant: sends what is owed, at least once, and accounts for every delivery. For each pair of
 * subscription and entity the order of commits is kept strictly; endpoints never wait for each other. What was
 * committed before a start is sent after it; nothing needs new traffic to move. It does not decide who is notified,
 * and it does not render.
 */
import type { Clock } from '#base/clock.ts'
import { failpoint } from '#base/failpoints.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import type { Door } from '#broker/door.ts'
import type { Deliveries, Delivery } from '#store/deliveries.ts'
import { type Backlog, createBacklog } from './backlog.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import type { OutgoingRequest } from './http-endpoint.ts'
import { createPace, type Pace } from './pace.ts'
import { originOf, probe } from './probe.ts'
import type { Flight } from './queue.ts'
import { createSettlement, type Settlement } from './settlement.ts'
import { consequenceOf, type Failure, type Sent } from './verdict.ts'

/** A delivery as a request, with the wishes of its subscription. */
export interface Rendered extends OutgoingRequest {
  /** Least time between a failure and the next attempt at this endpoint, ms. */
  readonly cooldownMs?: number | undefined
}

/** What an attempt meant for its subscription. */
export interface Outcome {
  readonly ok: boolean
  /** Wall-clock ms. */
  readonly at: number
  readonly error?: string | undefined
}

export interface DispatcherPorts {
  readonly door: Pick<Door, 'submit'>
  readonly reads: Deliveries
  /** Undefined when the subscription is gone; then the delivery is void. */
  render(delivery: Delivery): Rendered | undefined
  /** Never rejects. */
  send(request: OutgoingRequest): Promise<Sent>
  readonly subscriptions: {
    /** One attempt, delivered or failed. */
    outcome(sub: number, outcome: Outcome): void
    /** So many of its deliveries were given up at the ceiling of the endpoint. */
    dropped(sub: number, count: number): void
    /** Statistics as JSON text, stored at most once a second; undefined when the subscription is gone. */
    statistics(sub: number): string | undefined
  }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface DispatcherSettings {
  /** Prometheus labels of the gauge, such as `{tenant="a"}`. */
  readonly labels?: string
  /** Ceiling per endpoint, if not the usual one. */
  readonly deliveriesPerEndpointMax?: number
}

export interface EndpointStatus {
  readonly endpoint: string
  /** Not yet delivered, in flight included. */
  readonly waiting: number
  readonly inFlight: number
  /** How many of `waiting` are in memory. */
  readonly held: number
  readonly state: 'up' | 'down' | 'backing-off'
  /** Since when it is in this state, wall-clock ms. */
  readonly since: number
  readonly lastError?: string | undefined
}

export interface Dispatcher {
  /** Takes up what is in the table and begins to send. Call it once, before the first commit. */
  start(): void
  /** These deliveries are on disk; in order of d. */
  committed(deliveries: readonly Delivery[]): void
  /** Rows of an endpoint were moved or deleted (subscription deleted or redirected): look at the table again. */
  reread(endpoint: string): void
  /** Endpoints to which something is owed. */
  stats(): EndpointStatus[]
  /** Sends nothing more, waits for what is in flight for half the time, then settles. Never rejects. */
  close(deadlineMs: number): Promise<void>
}

/** Scheme, host and port: what a connection is made to. */
interface Host {
  readonly key: string
  readonly breaker: Breaker
  readonly lanes: Set<Lane>
  inFlight: number
}

/** One endpoint URI. */
interface Lane {
  readonly endpoint: string
  readonly host: Host
  readonly backlog: Backlog
  readonly pace: Pace
  since: number
  lastError: string | undefined
  /** Said in the log that it is in trouble. */
  isReported: boolean
  timer: NodeJS.Timeout | undefined
}

interface Desk {
  readonly ports: DispatcherPorts
  readonly settlement: Settlement
  readonly lanes: Map<string, Lane>
  readonly hosts: Map<string, Host>
  /** Lanes that may have something to send, in turn. */
  readonly hungry: Set<Lane>
  readonly counters: Record<'sent' | 'failed' | 'dead' | 'dropped', { value: number }>
  readonly perEndpointMax: number
  inFlight: number
  isScheduled: boolean
  isClosing: boolean
  /** Called when nothing is in flight any more. */
  landed: () => void
}
