/**
 * The endpoints to which something is owed, each a lane, grouped by the host and port they share. A lane exists from
 * the first delivery owed until the last is settled; a host as long as it has lanes. When a host cannot be reached
 * its lanes free their memory and wait for the breaker.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Deliveries } from '#store/tables/delivery-rows.ts'
import { type Backlog, createBacklog } from './backlog.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { createPace, type Pace } from './pace.ts'
import { originOf, probe, shownUri } from './probe.ts'

/** Scheme, host and port: what connections are made to. */
export interface Host {
  readonly key: string
  readonly breaker: Breaker
  readonly lanes: Set<Lane>
  inFlight: number
}

/** One endpoint URI. */
export interface Lane {
  readonly endpoint: string
  /** The endpoint as it may be shown. */
  readonly name: string
  readonly host: Host
  readonly backlog: Backlog
  readonly pace: Pace
  /** Since when all goes well, wall-clock ms. */
  wellSince: number
  lastError: string | undefined
  /** The log says that it fails. */
  isReported: boolean
  /** Wakes the lane when a pause ends. */
  timer: NodeJS.Timeout | undefined
}

export interface LanesPorts {
  readonly reads: Deliveries
  /** Settled deliveries whose rows still stand. */
  readonly pending: ReadonlySet<number>
  readonly clock: Clock
  readonly log: Log
  /** The host of a lane can be reached again. */
  wake(lane: Lane): void
}

export interface Lanes {
  all(): Iterable<Lane>
  /** The lane of an endpoint; a new one is told that all up to `after` is settled. */
  open(endpoint: string, after: number): Lane
  /** Forgets a lane that owes nothing. */
  closeIfIdle(lane: Lane): void
  /** No connection to the lane's host could be made. */
  hostFailed(lane: Lane): void
  /** Ends all timers and probes. */
  stop(): void
}

export function createLanes(ports: LanesPorts): Lanes {
  const { clock, log } = ports
  const lanes = new Map<string, Lane>()
  const hosts = new Map<string, Host>()

  function openHost(endpoint: string): Host {
    const origin = originOf(endpoint)
    const key = origin?.key ?? shownUri(endpoint)
    const known = hosts.get(key)
    if (known !== undefined) return known
    const breaker = createBreaker({
      clock,
      probe: () => (origin === undefined ? Promise.resolve(true) : probe(origin.address)),
      closed(downMs) {
        log.info('delivery.endpoint-up', { endpoint: key, downMs: Math.round(downMs) })
        for (const lane of host.lanes) {
          lane.wellSince = clock.now()
          ports.wake(lane)
        }
      },
    })
    const host: Host = { key, breaker, lanes: new Set(), inFlight: 0 }
    hosts.set(key, host)
    return host
  }

  return Object.freeze({
    all: () => lanes.values(),
    open(endpoint, after) {
      const known = lanes.get(endpoint)
      if (known !== undefined) return known
      const lane: Lane = {
        endpoint,
        name: shownUri(endpoint),
        host: openHost(endpoint),
        backlog: createBacklog({ endpoint, reads: ports.reads, pending: ports.pending }, after),
        pace: createPace(clock, Math.random),
        wellSince: clock.now(),
        lastError: undefined,
        isReported: false,
        timer: undefined,
      }
      lane.host.lanes.add(lane)
      lanes.set(endpoint, lane)
      return lane
    },
    closeIfIdle(lane) {
      const { host, backlog, endpoint } = lane
      if (backlog.waiting() !== 0 || backlog.queue.size > 0 || lanes.get(endpoint) !== lane) return
      clearTimeout(lane.timer)
      lanes.delete(endpoint)
      host.lanes.delete(lane)
      if (host.lanes.size > 0) return
      host.breaker.stop()
      hosts.delete(host.key)
    },
    hostFailed({ host, lastError }) {
      if (!host.breaker.trip()) return
      let waiting = 0
      for (const lane of host.lanes) {
        lane.backlog.unload()
        waiting += lane.backlog.waiting()
      }
      log.warn('delivery.endpoint-down', { endpoint: host.key, error: lastError, waiting })
    },
    stop() {
      for (const lane of lanes.values()) clearTimeout(lane.timer)
      for (const host of hosts.values()) host.breaker.stop()
    },
  } satisfies Lanes)
}
