/**
 * Lanes: one per endpoint with pending deliveries, grouped by host and port. A lane exists from its first
 * pending delivery until the last is settled; a host exists as long as it has lanes. If a host is
 * unreachable, its lanes free their memory and wait for the circuit breaker.
 */

import type { ClockAndLog } from '#base/process/instruments.ts'
import { Backlog, type BacklogPorts } from './backlog.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { Pace } from './pace.ts'
import { originOf, probe, shownUri } from './probe.ts'

/** Scheme, host and port of connections. */
export interface RemoteHost {
  readonly key: string
  readonly breaker: Breaker
  readonly lanes: Set<EndpointLane>
  inFlight: number
}

/** The deliveries of an endpoint URI. */
export interface EndpointLane {
  readonly endpoint: string
  readonly host: RemoteHost
  readonly backlog: Backlog
  readonly pace: Pace
  /** When the endpoint last recovered, wall-clock ms. */
  upSince: number
  lastError: string | undefined
  /** Whether its failure was logged. */
  isReported: boolean
  /** Wakes the lane when a pause ends. */
  timer: NodeJS.Timeout | undefined
}

export interface LanesPorts extends ClockAndLog, BacklogPorts {
  /** Called when the host of a lane is reachable again. */
  wake(lane: EndpointLane): void
}

export type Lanes = ReturnType<typeof createLanes>

export function createLanes(ports: LanesPorts) {
  const { clock, log } = ports
  const pacing = { clock, random: Math.random }
  const lanes = new Map<string, EndpointLane>()
  const hosts = new Map<string, RemoteHost>()

  function openHost(endpoint: string): RemoteHost {
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
          lane.upSince = clock.now()
          ports.wake(lane)
        }
      },
    })
    const host: RemoteHost = { key, breaker, lanes: new Set(), inFlight: 0 }
    hosts.set(key, host)
    return host
  }

  return Object.freeze({
    all: (): Iterable<EndpointLane> => lanes.values(),
    /** Returns the lane of an endpoint. For a new one, all deliveries up to `after` are known as settled. */
    open(endpoint: string, after: number): EndpointLane {
      const known = lanes.get(endpoint)
      if (known !== undefined) return known
      const lane: EndpointLane = {
        endpoint,
        host: openHost(endpoint),
        backlog: new Backlog(ports, endpoint, after),
        pace: new Pace(pacing),
        upSince: clock.now(),
        lastError: undefined,
        isReported: false,
        timer: undefined,
      }
      lane.host.lanes.add(lane)
      lanes.set(endpoint, lane)
      return lane
    },
    /** Closes a lane without pending deliveries. */
    closeIfIdle(lane: EndpointLane): void {
      const { host, backlog, endpoint } = lane
      if (backlog.waiting() !== 0 || backlog.held() > 0 || lanes.get(endpoint) !== lane) return
      clearTimeout(lane.timer)
      lanes.delete(endpoint)
      host.lanes.delete(lane)
      if (host.lanes.size > 0) return
      host.breaker.stop()
      hosts.delete(host.key)
    },
    /** Records that no connection to the host of the lane could be made. */
    hostFailed({ host, lastError }: EndpointLane): void {
      if (!host.breaker.trip()) return
      let waiting = 0
      for (const lane of host.lanes) {
        lane.backlog.unload()
        waiting += lane.backlog.waiting()
      }
      log.warn('delivery.endpoint-down', { endpoint: host.key, error: lastError, waiting })
    },
    /** Stops all timers and probes. */
    stop(): void {
      for (const lane of lanes.values()) clearTimeout(lane.timer)
      for (const host of hosts.values()) host.breaker.stop()
    },
  })
}
