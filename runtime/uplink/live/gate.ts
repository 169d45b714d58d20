/**
 * Whether and how fast an uplink may use its way now: pauses, windows, bytes of the day, and the pace of its lanes. No day has
 * more bytes than are allowed, but for a little by each lane, and history takes none of those that what is live may still need. What
 * was sent is counted here as it was handed to the connection, packed and with its headers, and the day's sum is part of
 * the state, so it survives a restart. Every request of the uplink goes through here.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Peer, PeerAnswer, PeerRequest } from '#federation/peer.ts'
import type { UplinkWishes } from '#ngsi-ld/subscription/uplink-options.ts'
import type { Link } from '#uplink/centre/connectivity.ts'
import { createBreadth } from '#uplink/connection/concurrency.ts'
import { createPace, type Lane } from '#uplink/connection/rate-limit.ts'
import type { Windows } from '#uplink/connection/windows.ts'
import type { UplinkState } from '#uplink/progress/uplink-state.ts'

/** Why nothing is sent although it could be. */
export type Shut = 'paused' | 'clock' | 'window' | 'bytes-per-day'

export interface Gate {
  shut(lane: Lane): Shut | undefined
  /** The way of a lane, which waits for its pace. Settles with a failure as soon as the uplink is closed. */
  peer(lane: Lane): Peer
  /** What a lane had taken. */
  taken(lane: Lane, observations: number): void
}

export interface GatePorts {
  readonly peer: Peer
  readonly clock: Clock
  readonly windows: Windows
  readonly state: UplinkState
  readonly link: () => Link
  /** Whether times wait to be put right because the clock was not set. */
  readonly isHeld: () => boolean
}

export function createGate(
  { peer, clock, windows, state, link, isHeld }: GatePorts,
  wishes: UplinkWishes,
): Gate {
  const { bytesPerDay } = wishes
  const pace = createPace(clock.monotonic, wishes)
  /** Bytes of requests that the day has no room for. */
  const waiting: Record<Lane, number | undefined> = { live: undefined, backfill: undefined }

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

  function shut(lane: Lane): Shut | undefined {
    if (state.isPaused || wishes.isPaused) return 'paused'
    if (isHeld()) return 'clock'
    if (!windows.isOpen(clock.now())) return 'window'
    return hasRoom(lane, waiting[lane] ?? 1) ? undefined : 'bytes-per-day'
  }

  /** Settles when the pace of a lane allows a request, or when the uplink is closed; with whether it had to wait. */
  async function paced(lane: Lane): Promise<boolean> {
    let waits = false
    for (let wait = pace.waitMs(lane); wait > 0 && !link().isClosed(); wait = pace.waitMs(lane)) {
      waits = true
      await link().rest(wait)
    }
    return waits
  }

  /** The same when the day has room for so many bytes. */
  async function admitted(lane: Lane, bytes: number): Promise<boolean> {
    if (hasRoom(lane, bytes)) return false
    do {
      waiting[lane] = bytes
      await link().rest(limits.uplinkPauseCheckMs.value)
    } while (!link().isClosed() && (shut(lane) !== undefined || !hasRoom(lane, bytes)))
    waiting[lane] = undefined
    return true
  }

  function spend(lane: Lane, bytes: number): void {
    pace.spend(lane, 0, bytes)
    state.day.bytes += bytes
    state.day[lane] = (state.day[lane] ?? 0) + bytes
  }

  const breadth = createBreadth(clock.monotonic)

  const heldUp = { failure: 'unreachable', reason: 'it waited for its turn', isHeldUp: true } as const
  const closed = { failure: 'unreachable', reason: 'the uplink is closed' } as const

  function exchange(request: PeerRequest): Promise<PeerAnswer> {
    if (link().isClosed()) return Promise.resolve(closed)
    return link().unlessClosed<PeerAnswer>(peer.exchange(request), closed)
  }

  return Object.freeze({
    shut,
    peer: (lane) => ({
      async exchange(request) {
        const bytes = bytesOf(request)
        const begunAt = clock.monotonic()
        const isPaced = await paced(lane)
        if (lane === 'backfill') await breadth.enter()
        let tookMs: number | undefined
        try {
          // Who was held up asks again, and it is his turn: where nothing was in the way he is never held up.
          const waited = (await admitted(lane, bytes)) || isPaced
          const { heldMs = Number.POSITIVE_INFINITY } = request
          if (waited && clock.monotonic() - begunAt > heldMs) return heldUp
          spend(lane, bytes)
          const sentAt = clock.monotonic()
          const answer = await exchange(request)
          if (!('failure' in answer)) tookMs = clock.monotonic() - sentAt
          return answer
        } finally {
          if (lane === 'backfill') breadth.leave(tookMs)
        }
      },
      close: () => undefined,
    }),
    taken: (lane, observations) => pace.spend(lane, observations, 0),
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
