/**
 * Controls when and how fast an uplink sends: pauses, windows, the daily byte limit, and the rate limits of
 * its lanes. A day stays within its bytes except for a small minimum per lane; backfill leaves a reserve to
 * live values. Bytes count as passed to the connection, compressed and with headers; the daily sum is stored
 * in the state. Every request of the uplink passes this gate.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Peer, PeerAnswer, PeerRequest } from '#federation/peer.ts'
import type { UplinkOptions } from '#ngsi-ld/subscription/uplink-options.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import { createConcurrency } from '#uplink/connection/concurrency.ts'
import { createRateLimit, type Lane } from '#uplink/connection/rate-limit.ts'
import type { Windows } from '#uplink/connection/windows.ts'
import type { UplinkState } from '#uplink/progress/uplink-state.ts'

/** Why nothing is sent although the centre may be reachable. */
export type ClosedReason = 'paused' | 'clock' | 'window' | 'bytes-per-day'

export interface GatePorts {
  readonly peer: Peer
  readonly clock: Clock
  readonly windows: Windows
  readonly state: UplinkState
  readonly connectivity: () => Connectivity
  /** Whether commit times still need correction because the clock was not set. */
  readonly isHeld: () => boolean
}

export type Gate = ReturnType<typeof createGate>

export function createGate(
  { peer, clock, windows, state, connectivity, isHeld }: GatePorts,
  options: UplinkOptions,
) {
  const { bytesPerDay } = options
  const rateLimit = createRateLimit(clock.monotonic, options)
  /** Sizes of requests for which the day has no room. */
  const pendingBytes: Record<Lane, number | undefined> = { live: undefined, backfill: undefined }

  function spentToday(): number {
    const date = new Date(clock.now()).toISOString().slice(0, 10)
    if (state.day.date !== date) state.day = { date, bytes: 0 }
    return state.day.bytes
  }

  /**
   * Whether the day has room for more bytes of a lane. Backfill leaves a reserve for live values,
   * proportional to the rest of the day. Each lane may send a minimum per day plus one request, so that
   * neither a small limit nor the other lane blocks it forever.
   */
  function hasRoom(lane: Lane, bytes: number): boolean {
    const spent = spentToday()
    if (bytesPerDay === undefined || (state.day[lane] ?? 0) < limits.uplinkDayLeastBytes.value) return true
    const restOfDay = 1 - (clock.now() % dayMs) / dayMs
    const reserved = lane === 'live' ? 0 : (limits.uplinkDayReservePercent.value / 100) * restOfDay
    return spent + bytes <= bytesPerDay * (1 - reserved)
  }

  function closedBy(lane: Lane): ClosedReason | undefined {
    if (state.isPaused || options.isPaused) return 'paused'
    if (isHeld()) return 'clock'
    if (!windows.isOpen(clock.now())) return 'window'
    return hasRoom(lane, pendingBytes[lane] ?? 1) ? undefined : 'bytes-per-day'
  }

  /** Waits for the rate limit of a lane, or until the uplink is closed; returns whether it waited. */
  async function awaitRate(lane: Lane): Promise<boolean> {
    let waits = false
    for (
      let wait = rateLimit.waitMs(lane);
      wait > 0 && !connectivity().isClosed();
      wait = rateLimit.waitMs(lane)
    ) {
      waits = true
      await connectivity().sleep(wait)
    }
    return waits
  }

  /** Same for the daily byte limit. */
  async function awaitDayBudget(lane: Lane, bytes: number): Promise<boolean> {
    if (hasRoom(lane, bytes)) return false
    do {
      pendingBytes[lane] = bytes
      await connectivity().sleep(limits.uplinkPauseCheckMs.value)
    } while (!connectivity().isClosed() && (closedBy(lane) !== undefined || !hasRoom(lane, bytes)))
    pendingBytes[lane] = undefined
    return true
  }

  function spend(lane: Lane, bytes: number): void {
    rateLimit.consume(lane, 0, bytes)
    state.day.bytes += bytes
    state.day[lane] = (state.day[lane] ?? 0) + bytes
  }

  const concurrency = createConcurrency(clock.monotonic)

  const heldUp = {
    failure: 'unreachable',
    reason: 'the request waited too long for the rate limit',
    isHeldUp: true,
  } as const
  const closed = { failure: 'unreachable', reason: 'the uplink is closed' } as const

  function exchange(request: PeerRequest): Promise<PeerAnswer> {
    if (connectivity().isClosed()) return Promise.resolve(closed)
    return connectivity().unlessClosed<PeerAnswer>(peer.exchange(request), closed)
  }

  return Object.freeze({
    closedBy,
    /** The peer of a lane, which applies its rate limit. Requests fail as soon as the uplink is closed. */
    peer: (lane: Lane): Peer => ({
      async exchange(request) {
        const bytes = bytesOf(request)
        const startedAt = clock.monotonic()
        const wasThrottled = await awaitRate(lane)
        if (lane === 'backfill') await concurrency.acquire()
        let tookMs: number | undefined
        try {
          // A delayed request is repeated by its caller and is first in line then; without an obstacle no
          // request is delayed.
          const waited = (await awaitDayBudget(lane, bytes)) || wasThrottled
          const { heldMs = Number.POSITIVE_INFINITY } = request
          if (waited && clock.monotonic() - startedAt > heldMs) return heldUp
          spend(lane, bytes)
          const sentAt = clock.monotonic()
          const answer = await exchange(request)
          if (!('failure' in answer)) tookMs = clock.monotonic() - sentAt
          return answer
        } finally {
          if (lane === 'backfill') concurrency.release(tookMs)
        }
      },
      close: () => undefined,
    }),
    /** Notes observations that the centre accepted from a lane. */
    accepted: (lane: Lane, observations: number) => rateLimit.consume(lane, observations, 0),
  })
}

const dayMs = 86_400_000

/** Approximate bytes of a request on the wire: request line, headers, body. */
function bytesOf({ method, url, headers, body }: PeerRequest): number {
  const head = Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    80,
  )
  return head + method.length + url.length + (body === undefined ? 0 : Buffer.byteLength(body))
}
