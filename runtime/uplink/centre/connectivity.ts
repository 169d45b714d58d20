/**
 * Whether the other broker may be asked now. While nobody can be reached the way is probed every second, so that sending
 * begins within a second of its return without anything new to send; who answers with failures is left alone for growing
 * pauses. A cut is one for both lanes; what is answered to one of them holds up that one only, so that a broker that fails at what
 * is past is told all the same what is current. Only monotonic time counts here.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from '#delivery/backoff.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import type { Outcome } from './outcome.ts'

export interface LinkPorts {
  readonly clock: Clock
  /** Whether a connection can be made. */
  readonly probe: () => Promise<boolean>
  /** Numbers in [0, 1), to spread pauses. */
  readonly dice: () => number
  /** What goes live gets through, or not; of the backfill lane that is told where it fails alone. */
  readonly onChange: (lane: Lane, isUp: boolean, reason: string) => void
  /** Whether the way is not to be used by a lane now, although it may be there. */
  readonly isShut: (lane: Lane) => boolean
}

/** Since when (wall-clock ms) and why nothing gets through. */
export interface Trouble {
  readonly since: number
  readonly reason: string
}

export interface Link {
  /** Settles when a lane may send something; false when the link was closed. */
  ready(lane: Lane): Promise<boolean>
  succeeded(lane: Lane): void
  failed(lane: Lane, outcome: Outcome & { kind: 'later' }): void
  trouble(lane: Lane): Trouble | undefined
  /** Waits, at most until it is closed. */
  rest(ms: number): Promise<void>
  isClosed(): boolean
  /** Settles with an answer, or with `otherwise` when it is closed before. */
  unlessClosed<T>(answer: Promise<T>, otherwise: T): Promise<T>
  close(): void
}

interface LaneState {
  trouble: { readonly since: number; reason: string; isUnreachable: boolean } | undefined
  /** Monotonic time (ms) at which the trouble began. */
  begunAt: number
  tries: number
  pausedUntil: number
}

const untroubled: LaneState = { trouble: undefined, begunAt: 0, tries: 0, pausedUntil: 0 }

export function createLink({ clock, probe, dice, onChange, isShut }: LinkPorts): Link {
  const lanes: Record<Lane, LaneState> = { live: { ...untroubled }, backfill: { ...untroubled } }
  const isTold: Record<Lane, boolean> = { live: false, backfill: false }
  /** When (monotonic ms) it could not be reached any more; undefined as soon as somebody answers. */
  let cutAt: number | undefined
  let mustProbe = false
  let probing: Promise<boolean> | undefined
  let isClosed = false
  const resting = new Set<() => void>()

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (isClosed) return resolve()
      const end = (): void => {
        clearTimeout(timer)
        resting.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      resting.add(end)
    })

  /** Both lanes wait for one probe. */
  const probed = (): Promise<boolean> => (probing ??= probe().finally(() => (probing = undefined)))

  async function ready(lane: Lane): Promise<boolean> {
    while (!isClosed) {
      const pause = lanes[lane].pausedUntil - clock.monotonic()
      if (isShut(lane)) await rest(limits.uplinkPauseCheckMs.value)
      else if (pause > 0) await rest(pause)
      else if (!mustProbe) return true
      else if (await probed()) mustProbe = false
      else await rest(probeIntervalMs(clock.monotonic() - (cutAt ?? clock.monotonic())))
    }
    return false
  }

  const trouble = (lane: Lane): Trouble | undefined =>
    lanes[lane].trouble ?? (cutAt === undefined ? undefined : (lanes.live.trouble ?? lanes.backfill.trouble))

  function tell(): void {
    const down: Record<Lane, Trouble | undefined> = { live: trouble('live'), backfill: undefined }
    // A cut is told once for both.
    if (down.live === undefined || isTold.backfill) down.backfill = lanes.backfill.trouble
    for (const lane of ['live', 'backfill'] as const) {
      const isDown = down[lane] !== undefined
      if (isDown === isTold[lane]) continue
      isTold[lane] = isDown
      onChange(lane, !isDown, down[lane]?.reason ?? '')
    }
  }

  return Object.freeze({
    ready,
    rest,
    succeeded(lane) {
      const other = lane === 'live' ? 'backfill' : 'live'
      // What was wrong for what is current was wrong for all; who takes what is past can be reached.
      const isOver = lane === 'live' ? lanes.live.trouble !== undefined : lanes.live.trouble?.isUnreachable
      if (isOver === true) lanes[other] = { ...untroubled }
      lanes[lane] = { ...untroubled }
      cutAt = undefined
      tell()
    },
    failed(lane, { reason, isUnreachable, retryAfterMs }) {
      const now = clock.monotonic()
      const one = lanes[lane]
      one.tries++
      if (one.trouble === undefined) one.begunAt = now
      one.trouble = { since: one.trouble?.since ?? clock.now(), reason, isUnreachable }
      if (isUnreachable) mustProbe = true
      cutAt = isUnreachable ? (cutAt ?? now) : undefined
      // The first time it is only probed; who accepts connections and does not answer is left alone, too.
      const pause = isUnreachable && one.tries === 1 ? 0 : backoffMs(one.tries, now - one.begunAt, dice())
      one.pausedUntil = Math.max(one.pausedUntil, now + Math.max(retryAfterMs ?? 0, pause))
      tell()
    },
    trouble,
    isClosed: () => isClosed,
    unlessClosed: (answer, otherwise) =>
      new Promise<typeof otherwise>((resolve, reject) => {
        const end = (): void => resolve(otherwise)
        resting.add(end)
        answer.finally(() => resting.delete(end)).then(resolve, reject)
        if (isClosed) end()
      }),
    close() {
      isClosed = true
      for (const end of [...resting]) end()
    },
  } satisfies Link)
}
