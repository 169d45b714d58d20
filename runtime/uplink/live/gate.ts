/**
 * Whether and how fast an uplink may use its way now: pauses, windows, bytes of the day, and the pace of its lanes. No day has
 * more bytes than are allowed, but for a little by each lane, and history takes none of those that what is live may still need. What
 * was sent is counted here as it was handed to the connection, packed and with its headers, and the day's sum is part of
 * the state, so it survives a restart. Every request of the uplink goes through here.
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

/** Why nothing is sent although it could be. */
export type ClosedReason = 'paused' | 'clock' | 'window' | 'bytes-per-day'

export interface Gate {
  closedBy(lane: Lane): ClosedReason | undefined
  /** The way of a lane, which waits for its pace. Settles with a failure as soon as the uplink is closed. */
  peer(lane: Lane): Peer
  /** What a lane had taken. */
  accepted(lane: Lane, observations: number): void
}

export interface GatePorts {
  readonly peer: Peer
  readonly clock: Clock
  readonly windows: Windows
  readonly state: UplinkState
  readonly connectivity: () => Connectivity
  /** Whether times wait to be put right because the clock was not set. */
  readonly isHeld: () => boolean
}

export function createGate(
  { peer, clock, windows, state, connectivity, isHeld }: GatePorts,
  options: UplinkOptions,
): Gate {
  const { bytesPerDay } = options
  const rateLimit = createRateLimit(clock.monotonic, options)
  /** Bytes of requests that the day has no room for. */
  const pendingBytes: Record<Lane, number | undefined> = { live: undefined, backfill: undefined }

  function spentToday(): number {
    const date = new Date(clock.now()).toISOString().slice(0, 10)
    if (state.day.date !== date) state.day = { date, bytes: 0 }
    return state.day.bytes
  }

  /**
   * Whether a day has room for so many bytes by a lane: history leaves a share to what is live, evenly spread over the rest of the
   * day. A little goes each day by each lane, and one request after it, so that a day that is too small for what there is to tell, or
   * for what the other lane tells, ends nothing for ever.
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

  /** Settles when the pace of a lane allows a request, or when the uplink is closed; with whether it had to wait. */
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

  /** The same when the day has room for so many bytes. */
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

  const heldUp = { failure: 'unreachable', reason: 'it waited for its turn', isHeldUp: true } as const
  const closed = { failure: 'unreachable', reason: 'the uplink is closed' } as const

  function exchange(request: PeerRequest): Promise<PeerAnswer> {
    if (connectivity().isClosed()) return Promise.resolve(closed)
    return connectivity().unlessClosed<PeerAnswer>(peer.exchange(request), closed)
  }

  return Object.freeze({
    closedBy,
    peer: (lane) => ({
      async exchange(request) {
        const bytes = bytesOf(request)
        const startedAt = clock.monotonic()
        const wasThrottled = await awaitRate(lane)
        if (lane === 'backfill') await concurrency.acquire()
        let tookMs: number | undefined
        try {
          // Who was held up asks again, and it is his turn: where nothing was in the way he is never held up.
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
    accepted: (lane, observations) => rateLimit.consume(lane, observations, 0),
  } satisfies Gate)
}

const dayMs = 86_400_000

/** About what a request is on the wire: the line, the headers, the body. */
function bytesOf({ method, url, headers, body }: PeerRequest): number {
  const head = Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    80,
  )
  return head + method.length + url.length + (body === undefined ? 0 : Buffer.byteLength(body))
}
