/**
 * Sends deliveries: takes the lanes in turn, starts the requests that may be sent, and applies the
 * consequence of each attempt. Rendering is bounded per turn of the event loop; requests in flight are
 * bounded per endpoint, per host and in total. So neither a slow endpoint nor a large backlog delays other
 * endpoints.
 */

import { limits } from '#base/limits/limits.ts'
import { inNextTurn } from '#base/load/yielding.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import type { EndpointLane, Lanes } from './delivery-lanes.ts'
import { shownUri } from './probe.ts'
import type { Flight } from './queue.ts'
import type { Outgoing } from './sender.ts'
import type { Settlement } from './settlement.ts'
import { consequenceOf, type Failure, type Sent } from './verdict.ts'

/** Deliveries rendered as a request, with the options of their subscription. */
export interface RenderedRequest extends Outgoing {
  /** Minimum time between a failure and the next attempt at this endpoint, ms. */
  readonly cooldownMs?: number | undefined
  /** Number of deliveries in the request, counted from the first one passed to `render`. */
  readonly count: number
}

/** The result of an attempt, for the statistics of its subscription. */
export interface AttemptOutcome {
  readonly ok: boolean
  /** Wall-clock ms. */
  readonly at: number
  readonly error?: string | undefined
}

export interface PumpPorts extends ClockAndLog {
  /**
   * Renders deliveries of one subscription as one request, which may contain only the first ones. Undefined
   * if there is nothing to send: the subscription was deleted, or the deliveries contain nothing to report
   * any more.
   */
  render(deliveries: readonly Delivery[]): RenderedRequest | undefined
  /** Never rejects. */
  send(request: Outgoing): Promise<Sent>
  outcome(sub: number, outcome: AttemptOutcome): void
  readonly lanes: Pick<Lanes, 'closeIfIdle' | 'hostFailed'>
  readonly settlement: Settlement
  readonly counters: Readonly<Record<'sent' | 'failed' | 'dead', Counter>>
}

/** Consecutive failures before the failure of an endpoint is logged. */
const reportFailures = 3

export function createPump(ports: PumpPorts) {
  const { clock, lanes } = ports
  const consequences = createConsequences(ports)
  /** Lanes that may be able to send, in round-robin order. */
  const runnable = new Set<EndpointLane>()
  let inFlight = 0
  let isScheduled = false
  let state: 'running' | 'stopping' | 'abandoned' = 'running'
  let drained = (): void => undefined

  function schedule(): void {
    if (isScheduled || state !== 'running' || runnable.size === 0) return
    isScheduled = true
    inNextTurn(run)
  }
  function run(): void {
    isScheduled = false
    const until = clock.monotonic() + limits.deliveryTurnMs.value
    for (const lane of runnable) {
      if (state !== 'running' || inFlight >= limits.deliveriesInFlightTotalMax.value) return
      const now = clock.monotonic()
      if (now >= until) break
      runnable.delete(lane)
      // Iterating a set also visits elements added meanwhile, so lanes take turns.
      const count = startNext(lane, now)
      if (count > 0) runnable.add(lane)
      else rest(lane, now)
    }
    schedule()
  }
  /** Returns the number of deliveries taken, at least 1 if the lane may be able to continue at once. */
  function startNext(lane: EndpointLane, now: number): number {
    const { host, backlog, pace } = lane
    if (host.breaker.downSince() !== undefined || now < pace.pausedUntil()) return 0
    if (host.inFlight >= limits.deliveriesInFlightHostMax.value || backlog.flights() >= pace.width()) return 0
    const flights = backlog.next(now)
    if (flights.length === 0) return backlog.isReading() ? 1 : 0
    const rendered = consequences.render(lane, flights)
    if (rendered !== undefined) void fly(lane, flights.slice(0, rendered.count), rendered)
    return flights.length
  }
  async function fly(
    lane: EndpointLane,
    flights: readonly Flight[],
    rendered: RenderedRequest,
  ): Promise<void> {
    inFlight++
    lane.host.inFlight++
    const sent = await ports.send(rendered)
    inFlight--
    const wasFull = lane.host.inFlight-- >= limits.deliveriesInFlightHostMax.value
    if (state === 'abandoned') return
    if (sent.ok) consequences.delivered(lane, flights)
    else consequences.failed(lane, flights, { failure: sent, rendered })
    for (const other of wasFull ? lane.host.lanes : []) runnable.add(other)
    runnable.add(lane)
    schedule()
    if (inFlight === 0) drained()
  }
  /** Lets a lane sleep until the end of its pause, if there is one. Other changes wake the lane by `wake`. */
  function rest(lane: EndpointLane, now: number): void {
    clearTimeout(lane.timer)
    const ms = Math.max(lane.pace.pausedUntil(), lane.backlog.dueAt()) - now
    if (ms > 0 && ms < Number.POSITIVE_INFINITY) lane.timer = setTimeout(() => wake(lane), Math.ceil(ms))
    else lanes.closeIfIdle(lane)
  }
  function wake(lane: EndpointLane): void {
    runnable.add(lane)
    schedule()
  }

  return Object.freeze({
    /** Schedules a lane that may be able to send. */
    wake,
    /** Starts no more requests; resolves when none is in flight. */
    async stop(): Promise<void> {
      state = 'stopping'
      if (inFlight > 0) {
        await new Promise<void>((resolve) => {
          drained = resolve
        })
      }
    },
    /**
     * Ignores the results of requests still in flight; their deliveries are sent again after the next start.
     */
    abandon(): void {
      state = 'abandoned'
    },
  })
}

/** Applies the consequence of an attempt to the delivery, its pair, its endpoint and its subscription. */
function createConsequences({ settlement, lanes, clock, log, counters, ...ports }: PumpPorts) {
  function report(delivery: Delivery, error?: string): void {
    ports.outcome(delivery.sub, { ok: error === undefined, at: clock.now(), error })
    settlement.touch(delivery.sub)
  }
  function deadLetter(lane: EndpointLane, flight: Flight, letter: { reason: string; body: string }): void {
    const { d, sub, entity } = flight.delivery
    counters.dead.value++
    log.warn('delivery.dead', {
      d,
      subscription: sub,
      endpoint: shownUri(lane.endpoint),
      entity,
      reason: letter.reason,
    })
    settlement.deadLetter(flight.delivery, letter.reason, letter.body)
    lane.backlog.finish(flight)
  }
  function settle(lane: EndpointLane, flights: readonly Flight[]): void {
    settlement.settle(flights.map(({ delivery }) => delivery.d))
    for (const flight of flights) lane.backlog.finish(flight)
  }
  /** Sends deliveries that failed together one by one, so that one of them does not block the others. */
  function separate(lane: EndpointLane, flights: readonly Flight[], pausedUntil?: number): void {
    for (const flight of flights) {
      flight.pair.isAlone = true
      lane.backlog.putBack(flight, pausedUntil)
    }
  }
  function retry(lane: EndpointLane, flights: readonly Flight[], failure: Failure): void {
    const [first] = flights as [Flight]
    const until = lane.pace.failed(first, failure)
    for (const { pair } of flights) pair.failedAt = first.pair.failedAt
    // If other requests succeed, one of these entities may be the cause, so the first one is sent alone.
    first.pair.isAlone = true
    if (until !== undefined) separate(lane, flights, until)
    else for (const flight of flights) lane.backlog.putBack(flight)
  }
  function isGivenUp(flight: Flight, failure: Failure): boolean {
    const consequence = consequenceOf(failure)
    if (consequence === 'poison') flight.pair.poisonTries++
    return consequence === 'dead-letter' || flight.pair.poisonTries >= limits.deliveryPoisonTries.value
  }
  return {
    /**
     * Returns the request, or undefined if there is none to send. Deliveries not in it wait for the next one.
     */
    render(lane: EndpointLane, flights: readonly Flight[]): RenderedRequest | undefined {
      try {
        const rendered = ports.render(flights.map(({ delivery }) => delivery))
        if (rendered === undefined) settle(lane, flights)
        else for (const flight of flights.slice(rendered.count)) lane.backlog.putBack(flight)
        return rendered
      } catch (error) {
        if (flights.length > 1) {
          separate(lane, flights)
          return undefined
        }
        const [flight] = flights as [Flight]
        const reason = `could not be rendered: ${error instanceof Error ? error.message : String(error)}`
        report(flight.delivery, reason)
        deadLetter(lane, flight, { reason, body: flight.delivery.body ?? JSON.stringify(flight.delivery) })
        return undefined
      }
    },
    delivered(lane: EndpointLane, flights: readonly Flight[]): void {
      failpoint('delivery:after-send')
      counters.sent.value++
      if (lane.pace.failures() > 0) lane.upSince = clock.now()
      lane.pace.succeeded()
      if (lane.isReported) log.info('delivery.endpoint-up', { endpoint: shownUri(lane.endpoint) })
      lane.isReported = false
      lane.lastError = undefined
      report(flights[0]!.delivery)
      settle(lane, flights)
    },
    failed(
      lane: EndpointLane,
      flights: readonly Flight[],
      { failure, rendered }: { failure: Failure; rendered: RenderedRequest },
    ): void {
      const [first] = flights as [Flight]
      counters.failed.value++
      lane.lastError = failure.reason
      report(first.delivery, failure.reason)
      if (rendered.cooldownMs !== undefined) lane.pace.hold(rendered.cooldownMs)
      if (consequenceOf(failure) === 'down') {
        for (const flight of flights) lane.backlog.putBack(flight)
        lanes.hostFailed(lane)
      } else if (flights.length > 1 && consequenceOf(failure) !== 'retry') {
        separate(lane, flights)
      } else if (isGivenUp(first, failure)) {
        deadLetter(lane, first, { reason: failure.reason, body: rendered.body.toString() })
      } else {
        retry(lane, flights, failure)
        if (lane.pace.failures() < reportFailures || lane.isReported) return
        lane.isReported = true
        const waiting = lane.backlog.waiting()
        log.warn('delivery.endpoint-down', {
          endpoint: shownUri(lane.endpoint),
          error: failure.reason,
          waiting,
        })
      }
    },
  }
}
