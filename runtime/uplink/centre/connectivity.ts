/**
 * Tracks whether the centre can be reached. While it is unreachable, it is probed every second, so that
 * sending resumes within a second without new data. A centre that responds with failures is retried after
 * growing pauses. An outage affects both lanes; a failed response affects only its lane, so a centre that
 * fails on past values still gets current ones. Uses monotonic time.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from '#delivery/backoff.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import type { SendOutcome } from './outcome.ts'

export interface ConnectivityPorts {
  readonly clock: Clock
  /** Whether a connection can be made. */
  readonly probe: () => Promise<boolean>
  /** Random numbers in [0, 1), to spread pauses. */
  readonly random: () => number
  /** Called when a lane recovers or fails; for the backfill lane, only when it fails alone. */
  readonly onChange: (lane: Lane, isUp: boolean, reason: string) => void
  /** Whether the gate keeps a lane from sending. */
  readonly isGateClosed: (lane: Lane) => boolean
}

/** Since when (wall-clock ms) and why nothing can be sent. */
export interface ConnectionTrouble {
  readonly since: number
  readonly reason: string
}

interface LaneState {
  trouble: { readonly since: number; reason: string; isUnreachable: boolean } | undefined
  /** Monotonic time (ms) at which the trouble began. */
  startedAt: number
  tries: number
  pausedUntil: number
}

const untroubled: LaneState = { trouble: undefined, startedAt: 0, tries: 0, pausedUntil: 0 }

export type Connectivity = ReturnType<typeof createConnectivity>

export function createConnectivity({ clock, probe, random, onChange, isGateClosed }: ConnectivityPorts) {
  const lanes: Record<Lane, LaneState> = { live: { ...untroubled }, backfill: { ...untroubled } }
  const isReportedDown: Record<Lane, boolean> = { live: false, backfill: false }
  /** Monotonic time (ms) since which the centre is unreachable; undefined after any response. */
  let unreachableSince: number | undefined
  let mustProbe = false
  let probing: Promise<boolean> | undefined
  let isClosed = false
  const sleeping = new Set<() => void>()
  const resting = new Set<() => void>()

  const sleep = (ms: number, all = sleeping): Promise<void> =>
    new Promise((resolve) => {
      if (isClosed) return resolve()
      const end = (): void => {
        clearTimeout(timer)
        all.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      all.add(end)
    })
  const wake = (): void => {
    for (const end of [...resting]) end()
  }

  /** Both lanes share one probe. */
  const probed = (): Promise<boolean> => (probing ??= probe().finally(() => (probing = undefined)))

  async function ready(lane: Lane): Promise<boolean> {
    while (!isClosed) {
      const pause = lanes[lane].pausedUntil - clock.monotonic()
      if (isGateClosed(lane)) await sleep(limits.uplinkPauseCheckMs.value)
      else if (pause > 0) await sleep(pause)
      else if (!mustProbe) return true
      else if (await probed()) mustProbe = false
      else await sleep(probeIntervalMs(clock.monotonic() - (unreachableSince ?? clock.monotonic())))
    }
    return false
  }

  const trouble = (lane: Lane): ConnectionTrouble | undefined =>
    lanes[lane].trouble ??
    (unreachableSince === undefined ? undefined : (lanes.live.trouble ?? lanes.backfill.trouble))

  function reportChanges(): void {
    const down: Record<Lane, ConnectionTrouble | undefined> = { live: trouble('live'), backfill: undefined }
    // An outage is reported once for both lanes.
    if (down.live === undefined || isReportedDown.backfill) down.backfill = lanes.backfill.trouble
    for (const lane of ['live', 'backfill'] as const) {
      const isDown = down[lane] !== undefined
      if (isDown === isReportedDown[lane]) continue
      isReportedDown[lane] = isDown
      onChange(lane, !isDown, down[lane]?.reason ?? '')
    }
  }

  return Object.freeze({
    /** Resolves when a lane may send; false when closed. */
    ready,
    /** Waits, but no longer than until it is closed. */
    sleep: (ms: number) => sleep(ms),
    /** Waits, but no longer than until `wake` is called or it is closed. */
    rest: (ms: number) => sleep(ms, resting),
    wake,
    succeeded(lane: Lane): void {
      const other = lane === 'live' ? 'backfill' : 'live'
      // A problem of live requests affects both lanes; a successful past request proves that the centre is
      // reachable.
      const isOver = lane === 'live' ? lanes.live.trouble !== undefined : lanes.live.trouble?.isUnreachable
      if (isOver === true) lanes[other] = { ...untroubled }
      lanes[lane] = { ...untroubled }
      unreachableSince = undefined
      reportChanges()
    },
    failed(lane: Lane, { reason, isUnreachable, retryAfterMs }: SendOutcome & { kind: 'later' }): void {
      const now = clock.monotonic()
      const one = lanes[lane]
      one.tries++
      if (one.trouble === undefined) one.startedAt = now
      one.trouble = { since: one.trouble?.since ?? clock.now(), reason, isUnreachable }
      if (isUnreachable) mustProbe = true
      unreachableSince = isUnreachable ? (unreachableSince ?? now) : undefined
      // After the first failure a probe suffices; a server that accepts connections but does not respond gets
      // pauses.
      const pause = isUnreachable && one.tries === 1 ? 0 : backoffMs(one.tries, now - one.startedAt, random())
      one.pausedUntil = Math.max(one.pausedUntil, now + Math.max(retryAfterMs ?? 0, pause))
      reportChanges()
    },
    trouble,
    isClosed: () => isClosed,
    /** Resolves with the response, or with `otherwise` if closed before. */
    unlessClosed: <T>(answer: Promise<T>, otherwise: T): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const end = (): void => resolve(otherwise)
        sleeping.add(end)
        answer.finally(() => sleeping.delete(end)).then(resolve, reject)
        if (isClosed) end()
      }),
    close(): void {
      isClosed = true
      wake()
      for (const end of [...sleeping]) end()
    },
  })
}
