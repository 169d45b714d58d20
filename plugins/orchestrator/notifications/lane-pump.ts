/**
 * Sends the notifications of lanes in the order of their arrival, many at once. Lanes take turns and never
 * wait for each other: each has at most three times as much in flight as it leaves for the others.
 *
 * A rejected notification pauses its lane, which then sends again from that one on; a lost connection does
 * the same to all lanes.
 */

import { limits } from '#base/limits/limits.ts'
import { inNextTurn } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { NotificationOutbox } from './notification-outbox.ts'
import type { StoredNotification } from './notification-statements.ts'

/** The result of sending a notification. */
export type LaneOutcome = 'confirmed' | 'rejected' | 'lost'

export interface SendingLane {
  readonly subscription: string
  readonly name: string
}

export interface LanePumpPorts {
  readonly outbox: Pick<NotificationOutbox, 'next' | 'through' | 'advance'>
  /** Sends a notification. Calls `done` once, not before it returns. */
  readonly send: (
    lane: SendingLane,
    notification: StoredNotification,
    done: (outcome: LaneOutcome) => void,
  ) => void
  readonly clock: Pick<Clock, 'monotonic'>
  /** An error of the outbox, after which all lanes pause. */
  readonly failed: (error: unknown) => void
}

interface Flight {
  readonly n: number
  readonly bytes: number
  /** Monotonic clock, ms. */
  readonly sentAt: number
  isConfirmed: boolean
}

interface Lane extends SendingLane {
  /** Number of the last notification sent. */
  sentTo: number
  /** Sent and not yet confirmed up to the first of them, in order. */
  flights: Flight[]
  /** Whether the target is ready for it. */
  isReady: boolean
  /** Whether one was rejected, so that the others in flight must end first. */
  isRejected: boolean
  rejections: number
  timer: NodeJS.Timeout | undefined
}

export function createLanePump({ outbox, send, clock, failed }: LanePumpPorts) {
  const lanes = new Map<string, Lane>()
  /** Lanes that may have something to send, in turn. */
  const runnable = new Set<Lane>()
  let inFlight = 0
  let inFlightBytes = 0
  let isScheduled = false
  let isClosed = false
  const keyOf = ({ subscription, name }: SendingLane): string => `${name} ${subscription}`
  const hasRoom = (): boolean =>
    inFlight < limits.orchestratorInFlightMax.value && inFlightBytes < limits.orchestratorInFlightBytes.value

  /** How many more notifications a lane may send: three times what it leaves for the others. */
  function shareOf({ flights }: Lane): number {
    const left = limits.orchestratorInFlightMax.value - inFlight
    const more = Math.ceil((3 * left - flights.length) / 4)
    return flights.length === 0 ? Math.max(1, more) : more
  }

  function wake(lane: Lane): void {
    if (!lane.isReady || lane.isRejected || isClosed) return
    runnable.add(lane)
    schedule()
  }

  function schedule(): void {
    if (isScheduled || runnable.size === 0 || !hasRoom()) return
    isScheduled = true
    inNextTurn(run)
  }

  function run(): void {
    isScheduled = false
    const until = clock.monotonic() + limits.deliveryTurnMs.value
    try {
      for (const lane of runnable) {
        if (!hasRoom() || clock.monotonic() >= until) break
        // A set also visits elements added meanwhile, so lanes take turns. A lane that fails stays in it.
        const hasMore = sendNext(lane)
        runnable.delete(lane)
        if (hasMore) runnable.add(lane)
      }
    } catch (error) {
      failed(error)
      const again = setTimeout(schedule, limits.orchestratorPauseMs.value)
      again.unref()
      return
    }
    schedule()
  }

  /** Sends the next notifications of a lane. Returns whether there may be more. */
  function sendNext(lane: Lane): boolean {
    const through = outbox.through(lane.subscription, lane.name)
    if (through === undefined || !lane.isReady || lane.isRejected) return false
    const after = Math.max(through, lane.sentTo)
    // After a rejection one is tried alone.
    const count =
      lane.rejections > 0
        ? 1 - lane.flights.length
        : Math.min(limits.orchestratorReadPage.value, shareOf(lane))
    if (count <= 0) return false
    const rows = outbox.next(lane.subscription, after, count)
    const sentAt = clock.monotonic()
    let ownBytes = lane.flights.reduce((sum, { bytes }) => sum + bytes, 0)
    for (const row of rows) {
      if (!hasRoom()) return true
      // Its next confirmation wakes it.
      if (lane.flights.length > 0 && ownBytes >= 3 * (limits.orchestratorInFlightBytes.value - inFlightBytes))
        return false
      lane.sentTo = row.n
      const flight = { n: row.n, bytes: row.body.length, sentAt, isConfirmed: false }
      lane.flights.push(flight)
      ownBytes += flight.bytes
      inFlight++
      inFlightBytes += flight.bytes
      send(lane, row, (outcome) => ended(lane, flight, outcome))
    }
    return rows.length === count && lane.rejections === 0
  }

  function ended(lane: Lane, flight: Flight, outcome: LaneOutcome): void {
    inFlight--
    inFlightBytes -= flight.bytes
    flight.isConfirmed = outcome === 'confirmed'
    if (outcome === 'rejected') rejected(lane)
    else if (outcome === 'confirmed') confirmed(lane)
    schedule()
  }

  function confirmed(lane: Lane): void {
    let through = 0
    while (lane.flights[0]?.isConfirmed === true) through = lane.flights.shift()!.n
    if (through === 0) return
    outbox.advance(lane.subscription, lane.name, through)
    if (lane.isRejected) return
    lane.rejections = 0
    wake(lane)
  }

  /** Sends from the rejected one on again after a pause that grows with each rejection. */
  function rejected(lane: Lane): void {
    if (lane.isRejected) return
    lane.isRejected = true
    const pauseMs = limits.orchestratorPauseMs.value * 2 ** Math.min(lane.rejections++, 10)
    lane.timer = setTimeout(() => rewind(lane), Math.min(pauseMs, limits.deliveryBackoffMsMax.value))
  }

  function rewind(lane: Lane): void {
    clearTimeout(lane.timer)
    lane.isRejected = false
    lane.flights = []
    lane.sentTo = 0
    wake(lane)
  }

  return Object.freeze({
    /** The target is ready for a lane. It sends from the first unconfirmed notification on. */
    start({ subscription, name }: SendingLane): void {
      const key = keyOf({ subscription, name })
      const known = lanes.get(key)
      const lane = known ?? {
        subscription,
        name,
        sentTo: 0,
        flights: [],
        isReady: true,
        isRejected: false,
        rejections: 0,
        timer: undefined,
      }
      lanes.set(key, lane)
      if (known?.isReady === true) return
      lane.isReady = true
      rewind(lane)
    },
    /** Ends a lane. */
    stop(of: SendingLane): void {
      const lane = lanes.get(keyOf(of))
      if (lane === undefined) return
      clearTimeout(lane.timer)
      lane.isReady = false
      runnable.delete(lane)
      lanes.delete(keyOf(of))
    },
    /**
     * The target is lost for all lanes; `start` continues each. Call it before the outcomes of notifications
     * in flight are reported.
     */
    lost(): void {
      for (const lane of lanes.values()) {
        clearTimeout(lane.timer)
        lane.isReady = false
        lane.flights = []
        lane.sentTo = 0
      }
      runnable.clear()
    },
    /** New notifications can be read. */
    wake(of: SendingLane): void {
      const lane = lanes.get(keyOf(of))
      if (lane !== undefined) wake(lane)
    },
    /** Lanes whose last notification was rejected. */
    paused: () =>
      [...lanes.values()].filter(({ rejections }) => rejections > 0).map(({ subscription }) => subscription),
    /** Subscriptions with a notification that has waited this long for its outcome, ms. */
    late: (ms: number) =>
      [...lanes.values()]
        .filter(({ flights: [first], isRejected }) => {
          return first !== undefined && !isRejected && clock.monotonic() - first.sentAt >= ms
        })
        .map(({ subscription }) => subscription),
    inFlight: () => inFlight,
    close(): void {
      isClosed = true
      runnable.clear()
      for (const { timer } of lanes.values()) clearTimeout(timer)
    },
  })
}
