/**
 * The dispatcher of a tenant: sends every pending delivery at least once.
 *
 * - Deliveries of the same subscription and entity are sent in commit order.
 * - Endpoints never wait for each other.
 * - After a start, pending deliveries are sent without waiting for new traffic.
 *
 * Matching and rendering are elsewhere.
 */

import { limits } from '#base/limits/limits.ts'
import { inNextTurn } from '#base/load/yielding.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Deliveries, Delivery } from '#store/tables/delivery-rows.ts'
import { createLanes, type EndpointLane, type Lanes } from './delivery-lanes.ts'
import { shownUri } from './probe.ts'
import { type AttemptOutcome, createPump, type PumpPorts } from './pump.ts'
import { createSettlement } from './settlement.ts'

export interface DispatcherPorts extends Pick<PumpPorts, 'render' | 'send'>, Instruments {
  readonly door: Pick<Door, 'submit'>
  readonly reads: Deliveries
  readonly subscriptions: {
    /** Records an attempt for a subscription, successful or not. */
    outcome(sub: number, outcome: AttemptOutcome): void
    /** Records that deliveries of a subscription were dropped at the ceiling of their endpoint. */
    dropped(sub: number, count: number): void
    /**
     * Statistics of a subscription as JSON text, stored at most once a second; undefined if it was deleted.
     */
    statistics(sub: number): string | undefined
  }
}

export interface DispatcherSettings {
  /** Prometheus labels of the gauge, such as `{tenant="a"}`. */
  readonly labels?: string
  /** Ceiling of an endpoint; overrides the default. */
  readonly deliveriesPerEndpointMax?: number
}

export interface EndpointStatus {
  /** URI without user, password and query. */
  readonly endpoint: string
  /** Deliveries not yet settled, including those in flight. */
  readonly waiting: number
  /** Those of them in memory. */
  readonly held: number
  readonly inFlight: number
  /** down: no connection is possible, the host is probed; backing-off: responses fail or time out. */
  readonly state: 'up' | 'down' | 'backing-off'
  /** Start of this state, wall-clock ms. */
  readonly since: number
  readonly lastError?: string | undefined
}

export type Dispatcher = ReturnType<typeof createDispatcher>

export function createDispatcher(ports: DispatcherPorts, settings: DispatcherSettings = {}) {
  const { reads, clock, log, metrics, subscriptions } = ports
  const perEndpointMax = settings.deliveriesPerEndpointMax ?? limits.deliveriesPerEndpointMax.value
  const dropped = metrics.counter('selvedge_deliveries_dropped_total')
  const settlement = createSettlement({ door: ports.door, clock, statistics: subscriptions.statistics })
  const lanes: Lanes = createLanes({
    reads,
    pending: settlement.pending,
    clock,
    log,
    wake: (lane) => pump.wake(lane),
  })
  /** Committed deliveries not yet announced to their lanes, by commit, in order of d. */
  const unannounced: Delivery[][] = []
  /** Lanes to which part of a batch was announced. */
  const growing = new Set<EndpointLane>()
  /**
   * Lanes without pending deliveries that may have read unannounced rows; they must remember what they sent.
   */
  const idle = new Set<EndpointLane>()
  const closeIfIdle = (lane: EndpointLane): void => {
    if (unannounced.length === 0) lanes.closeIfIdle(lane)
    else idle.add(lane)
  }
  const pump = createPump({
    render: ports.render,
    send: ports.send,
    outcome: subscriptions.outcome,
    lanes: { ...lanes, closeIfIdle },
    settlement,
    clock,
    log,
    counters: {
      sent: metrics.counter('selvedge_deliveries_sent_total'),
      failed: metrics.counter('selvedge_deliveries_failed_total'),
      dead: metrics.counter('selvedge_deliveries_dead_total'),
    },
  })
  let isClosed = false
  metrics.gauge(
    'selvedge_deliveries_waiting',
    () => [...lanes.all()].reduce((sum, lane) => sum + lane.backlog.waiting(), 0),
    settings.labels,
  )

  /** Called when a lane received deliveries: drops the oldest beyond the ceiling and wakes the lane. */
  function grown(lane: EndpointLane): void {
    for (const { d, sub } of lane.backlog.dropOldest(perEndpointMax)) {
      dropped.value++
      subscriptions.dropped(sub, 1)
      settlement.settle([d])
      settlement.touch(sub)
    }
    pump.wake(lane)
  }
  /**
   * Announces a portion of the committed deliveries, since one change may match thousands of subscriptions.
   * Lanes with deliveries of a batch are woken after the whole commit was announced, so that the entities
   * share a request.
   */
  function announce(): void {
    if (isClosed) return
    const touched = new Set<EndpointLane>()
    let left = limits.deliveriesAnnouncedAtOnce.value
    for (let commit = unannounced[0]; commit !== undefined && left > 0; commit = unannounced[0]) {
      const portion = commit.splice(0, left)
      left -= portion.length
      for (const delivery of portion) {
        const lane = lanes.open(delivery.endpoint, delivery.d - 1)
        lane.backlog.announce(delivery, lane.host.breaker.downSince() === undefined)
        if (delivery.batch === null) touched.add(lane)
        else growing.add(lane)
      }
      if (commit.length > 0) break
      unannounced.shift()
      for (const lane of growing) grown(lane)
      growing.clear()
    }
    for (const lane of touched) grown(lane)
    if (unannounced.length > 0) inNextTurn(announce)
    else for (const lane of idle) pump.wake(lane)
    if (unannounced.length === 0) idle.clear()
  }
  function reread(endpoint: string): void {
    if (isClosed) return
    const lane = lanes.open(endpoint, 0)
    lane.backlog.reread()
    grown(lane)
  }

  return Object.freeze({
    /** Starts sending the deliveries in the table. Must be called once, before the first commit. */
    start(): void {
      for (const endpoint of reads.endpoints()) reread(endpoint)
    },
    /** Announces deliveries that are on disk, in order of d. */
    committed(deliveries: readonly Delivery[]): void {
      if (isClosed) return
      const isAnnouncing = unannounced.length > 0
      unannounced.push([...deliveries])
      if (!isAnnouncing) announce()
    },
    /** Reads the rows of an endpoint again, after a subscription was deleted or redirected. */
    reread,
    /** Status of all endpoints with pending deliveries. */
    stats: (): EndpointStatus[] => [...lanes.all()].map((lane) => statusOf(lane, clock.monotonic())),
    /** Stops sending, waits for requests in flight for half the time, then settles. Never rejects. */
    async close(deadlineMs: number): Promise<void> {
      isClosed = true
      const drained = pump.stop()
      lanes.stop()
      await within(deadlineMs / 2, drained)
      pump.abandon()
      await within(deadlineMs / 2, settlement.flush())
    },
  })
}

function statusOf({ endpoint, host, backlog, pace, ...lane }: EndpointLane, now: number): EndpointStatus {
  const downSince = host.breaker.downSince()
  const isPaused = pace.failures() > 0 || pace.pausedUntil() > now
  return {
    endpoint: shownUri(endpoint),
    waiting: backlog.waiting(),
    held: backlog.held(),
    inFlight: backlog.flights(),
    state: downSince === undefined ? (isPaused ? 'backing-off' : 'up') : 'down',
    since: downSince ?? pace.failingSince() ?? lane.upSince,
    lastError: lane.lastError,
  }
}

/** Waits for a promise, at most `ms`. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise, time])
  clearTimeout(timer)
}
