/**
 * The dispatcher of one tenant: sends what is owed, at least once, and accounts for every delivery. For each pair of
 * subscription and entity the order of commits is kept strictly; endpoints never wait for each other. What was
 * committed before a start is sent after it; nothing needs new traffic to move. It does not decide who is notified,
 * and it does not render.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Deliveries, Delivery } from '#store/tables/delivery-rows.ts'
import { createLanes, type Lane, type Lanes } from './delivery-lanes.ts'
import { createPump, type Outcome, type PumpPorts } from './pump.ts'
import { createSettlement } from './settlement.ts'

export interface DispatcherPorts extends Pick<PumpPorts, 'render' | 'send'> {
  readonly door: Pick<Door, 'submit'>
  readonly reads: Deliveries
  readonly subscriptions: {
    /** One attempt for a subscription, delivered or failed. */
    outcome(sub: number, outcome: Outcome): void
    /** So many of its deliveries were given up at the ceiling of their endpoint. */
    dropped(sub: number, count: number): void
    /** Its statistics as JSON text, stored at most once a second; undefined when the subscription is gone. */
    statistics(sub: number): string | undefined
  }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface DispatcherSettings {
  /** Prometheus labels of the gauge, such as `{tenant="a"}`. */
  readonly labels?: string
  /** Ceiling of an endpoint, if not the usual one. */
  readonly deliveriesPerEndpointMax?: number
}

export interface EndpointStatus {
  /** Its URI without user, password and query. */
  readonly endpoint: string
  /** Not yet delivered, those in flight included. */
  readonly waiting: number
  /** How many of them are in memory. */
  readonly held: number
  readonly inFlight: number
  /** down: no connection can be made, it is probed; backing-off: it answers with failures or not in time. */
  readonly state: 'up' | 'down' | 'backing-off'
  /** Since when it is in this state, wall-clock ms. */
  readonly since: number
  readonly lastError?: string | undefined
}

export interface Dispatcher {
  /** Takes up what is in the table and begins to send. To be called once, before the first commit. */
  start(): void
  /** These deliveries are on disk, in order of d. */
  committed(deliveries: readonly Delivery[]): void
  /** Rows of an endpoint were moved or deleted (a subscription was deleted or redirected): the table counts. */
  reread(endpoint: string): void
  /** Endpoints to which something is owed. */
  stats(): EndpointStatus[]
  /** Sends nothing more, waits for what is in flight for half the time, then settles. Never rejects. */
  close(deadlineMs: number): Promise<void>
}

export function createDispatcher(ports: DispatcherPorts, settings: DispatcherSettings = {}): Dispatcher {
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
  /** Committed deliveries that their lanes do not know yet, by commit, in order of d. */
  const unannounced: Delivery[][] = []
  /** Lanes that know a part of the batch that is being announced. */
  const growing = new Set<Lane>()
  /** Lanes that owe nothing, but may have been read ahead of what is unannounced: they know what they sent already. */
  const idle = new Set<Lane>()
  const closeIfIdle = (lane: Lane): void => {
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

  /** More has come to the lane: the oldest beyond the ceiling go, the rest may leave. */
  function grown(lane: Lane): void {
    for (const { d, sub } of lane.backlog.dropOldest(perEndpointMax)) {
      dropped.value++
      subscriptions.dropped(sub, 1)
      settlement.settle([d])
      settlement.touch(sub)
    }
    pump.wake(lane)
  }
  /**
   * Announces a portion of what was committed, since one change may match thousands of subscriptions. Lanes to which entities
   * of a batch are owed are woken when they know all of the commit, so that these entities leave together.
   */
  function announce(): void {
    if (isClosed) return
    const touched = new Set<Lane>()
    let left = limits.deliveriesAnnouncedAtOnce.value
    for (let [commit] = unannounced; commit !== undefined && left > 0; [commit] = unannounced) {
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
    if (unannounced.length > 0) setImmediate(announce)
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
    start() {
      for (const endpoint of reads.endpoints()) reread(endpoint)
    },
    committed(deliveries) {
      if (isClosed) return
      const isUnderWay = unannounced.length > 0
      unannounced.push([...deliveries])
      if (!isUnderWay) announce()
    },
    reread,
    stats: () => [...lanes.all()].map((lane) => statusOf(lane, clock.monotonic())),
    async close(deadlineMs) {
      isClosed = true
      const landed = pump.stop()
      lanes.stop()
      await within(deadlineMs / 2, landed)
      pump.abandon()
      await within(deadlineMs / 2, settlement.flush())
    },
  } satisfies Dispatcher)
}

function statusOf({ name, host, backlog, pace, ...lane }: Lane, now: number): EndpointStatus {
  const downSince = host.breaker.downSince()
  const isPaused = pace.failures() > 0 || pace.pausedUntil() > now
  return {
    endpoint: name,
    waiting: backlog.waiting(),
    held: backlog.queue.size,
    inFlight: backlog.queue.flights,
    state: downSince === undefined ? (isPaused ? 'backing-off' : 'up') : 'down',
    since: downSince ?? pace.failingSince() ?? lane.wellSince,
    lastError: lane.lastError,
  }
}

/** Waits for a promise, at most so long. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise, time])
  clearTimeout(timer)
}
