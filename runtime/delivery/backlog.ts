/**
 * The backlog of an endpoint: a bounded window in memory, the rest in the table, read in order of d. No
 * delivery is in memory twice, and settled rows that are not yet deleted are not read again. A read may find
 * rows before their commit is announced; the delivery is still added only once.
 */
import { limits } from '#base/limits/limits.ts'
import type { Deliveries, Delivery, DeliveryHead } from '#store/tables/delivery-rows.ts'
import { createQueue, type EntityQueue, type Flight } from './queue.ts'

export interface BacklogPorts {
  readonly endpoint: string
  readonly reads: Deliveries
  /** Settled deliveries whose rows still exist. */
  readonly pending: ReadonlySet<number>
}

const catchUpCount = 64

export type Backlog = ReturnType<typeof createBacklog>

/** `after`: all deliveries up to this number are settled or belong to other endpoints. */
export function createBacklog(ports: BacklogPorts, after: number) {
  const { endpoint, reads, pending } = ports
  const queue = createQueue()
  let waiting = 0
  /** Highest d counted in `waiting`. */
  let counted = after
  /** Highest d that was read or added to memory. */
  let cursor = after
  /** Whether the table has rows above the cursor. */
  let hasMore = false
  /** No delivery at or below it can be dropped any more. */
  let floor = 0

  const isNew = ({ d }: Delivery): boolean => !pending.has(d) && !queue.has(d)
  const hasRoom = (): boolean =>
    queue.size() < limits.deliveriesWindow.value && queue.bytes() < limits.deliveriesWindowBytes.value
  const isReading = (): boolean =>
    hasMore && hasRoom() && queue.size() - queue.paused() <= limits.deliveriesWindow.value / 2

  function read(): void {
    const count = limits.deliveriesWindow.value - queue.size()
    const bytes = limits.deliveriesWindowBytes.value - queue.bytes()
    const rows = reads.next({ endpoint, after: cursor, count }, bytes)
    for (const row of rows) if (isNew(row)) queue.add(row)
    hasMore = rows.length > 0
    cursor = rows.at(-1)?.d ?? cursor
  }
  /** Reads the deliveries of a pair that were skipped while it kept only its first one in memory. */
  function catchUp(pair: EntityQueue | undefined, head: DeliveryHead): void {
    if (pair === undefined) return
    let last = head.d
    let rows: Delivery[]
    let isBehind: boolean
    do {
      const read = reads.nextOfPair({ endpoint, after: last, count: catchUpCount }, cursor, head)
      rows = read.filter(isNew)
      isBehind = read.length === catchUpCount
      last = read.at(-1)?.d ?? last
    } while (rows.length === 0 && isBehind)
    queue.catchUp(pair, rows, isBehind)
  }
  function unload(): void {
    queue.clear()
    cursor = 0
    hasMore = true
  }
  function count(): void {
    const rows = reads.backlog(endpoint, [...pending])
    waiting = rows.count
    counted = Math.max(counted, rows.last)
  }

  return Object.freeze({
    queue,
    /** Number of unsettled deliveries, in memory or not. */
    waiting: () => waiting,
    /**
     * Announces a committed delivery. It is added to memory if all earlier ones are there and there is room.
     */
    announce(delivery: Delivery, mayHold: boolean): void {
      if (delivery.d > counted) {
        waiting++
        counted = delivery.d
      }
      if (delivery.d <= cursor || !isNew(delivery)) return
      if (hasMore || !mayHold || !hasRoom()) {
        hasMore = true
        return
      }
      queue.add(delivery)
      cursor = delivery.d
    },
    /**
     * Takes the next delivery that may be sent at `now` (monotonic ms) and those that may share its request;
     * empty if there is none. Reads from the table when the window runs low.
     */
    next(now: number): readonly Flight[] {
      if (isReading()) read()
      const flight = queue.take(now)
      return flight === undefined ? [] : [flight, ...queue.companions(flight)]
    },
    /** Whether the window can be refilled now, so that `next` should be called again. */
    isReading,
    /** Ends a settled flight (delivered, dead letter or void), whose number is already pending. */
    finish(flight: Flight): void {
      waiting--
      catchUp(queue.finish(flight), flight.delivery)
      if (queue.isStale(flight)) count()
    },
    /** Ends a failed flight; the delivery is the next of its pair again, after `pausedUntil` if given. */
    putBack(flight: Flight, pausedUntil?: number): void {
      if (queue.putBack(flight, pausedUntil)) return
      // The delivery may belong to another endpoint now, so the table is read again.
      unload()
      count()
    },
    /** Drops the oldest deliveries until at most `max` wait, except those in flight, and returns them. */
    dropOldest(max: number): DeliveryHead[] {
      const dropped: DeliveryHead[] = []
      while (waiting > max) {
        const heads = reads.heads({
          endpoint,
          after: floor,
          count: waiting - max + limits.deliveriesInFlightMax.value,
        })
        if (heads.length === 0) break
        for (const head of heads) {
          if (waiting <= max) break
          floor = head.d
          if (pending.has(head.d) || queue.isFlying(head.d)) continue
          catchUp(queue.remove(head), head)
          dropped.push(head)
          waiting--
        }
      }
      return dropped
    },
    /** Empties the window; `next` reads it again. */
    unload,
    /** Empties the window and counts again, after rows were moved or deleted elsewhere. */
    reread(): void {
      queue.invalidateFlights()
      unload()
      count()
      floor = 0
    },
  })
}
