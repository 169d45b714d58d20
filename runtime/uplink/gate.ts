/**
 * Whether and how fast an uplink may use its way now: pauses, windows, bytes of the day, and the pace of its lanes. What
 * was sent is counted here as it was handed to the connection, packed and with its headers, and the day's sum is part of
 * the state, so it survives a restart. Every request of the uplink goes through here.
 */
import type { Clock } from '#base/clock.ts'
import type { Peer, PeerAnswer, PeerRequest } from '#federation/peer.ts'
import type { UplinkWishes } from '#ngsi-ld/uplink-wishes.ts'
import { createBreadth } from './breadth.ts'
import type { Link } from './link.ts'
import { createPace, type Lane } from './pace.ts'
import type { UplinkState } from './state.ts'
import type { Windows } from './windows.ts'

/** Why nothing is sent although it could be. */
export type Shut = 'paused' | 'clock' | 'window' | 'bytes-per-day'

export interface Gate {
  shut(): Shut | undefined
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
  const { bytesPerDay = Number.POSITIVE_INFINITY } = wishes
  const pace = createPace(clock.monotonic, wishes)
  const today = (): string => new Date(clock.now()).toISOString().slice(0, 10)

  function count(lane: Lane, request: PeerRequest): void {
    const bytes = bytesOf(request)
    pace.spend(lane, 0, bytes)
    const date = today()
    if (state.day.date !== date) state.day = { date, bytes: 0 }
    state.day.bytes += bytes
  }

  const breadth = createBreadth(clock.monotonic)

  const closed = { failure: 'unreachable', reason: 'the uplink is closed' } as const

  function exchange(lane: Lane, request: PeerRequest): Promise<PeerAnswer> {
    if (link().isClosed()) return Promise.resolve(closed)
    count(lane, request)
    return link().unlessClosed<PeerAnswer>(peer.exchange(request), closed)
  }

  return Object.freeze({
    shut() {
      if (state.isPaused || wishes.isPaused) return 'paused'
      if (isHeld()) return 'clock'
      if (!windows.isOpen(clock.now())) return 'window'
      return state.day.bytes >= bytesPerDay && state.day.date === today() ? 'bytes-per-day' : undefined
    },
    peer: (lane) => ({
      async exchange(request) {
        for (let wait = pace.waitMs(lane); wait > 0 && !link().isClosed(); wait = pace.waitMs(lane))
          await link().rest(wait)
        if (lane === 'live') return exchange(lane, request)
        await breadth.enter()
        const sentAt = clock.monotonic()
        let tookMs: number | undefined
        try {
          const answer = await exchange(lane, request)
          if (!('failure' in answer)) tookMs = clock.monotonic() - sentAt
          return answer
        } finally {
          breadth.leave(tookMs)
        }
      },
      close: () => undefined,
    }),
    taken: (lane, observations) => pace.spend(lane, observations, 0),
  } satisfies Gate)
}

/** About what a request is on the wire: the line, the headers, the body. */
function bytesOf({ method, url, headers, body }: PeerRequest): number {
  const head = Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    80,
  )
  return head + method.length + url.length + (body === undefined ? 0 : Buffer.byteLength(body))
}
