/**
 * All that is owed to one endpoint: a bounded window of it in memory, the rest in the table, read in order of d.
 * Nothing is in memory twice, and nothing that is settled but not yet deleted is read again. Rows may be seen by a
 * read before their commit is announced; both ways lead to one delivery.
 */
import { limits } from '#base/limits/limits.ts'
import type { Deliveries, Delivery, DeliveryHead } from '#store/tables/delivery-rows.ts'
import { createQueue, type Flight, type Pair, type Queue } from './queue.ts'

export interface BacklogPorts {
  readonly endpoint: string
  readonly reads: Deliveries
  /** Deliveries whose rows are about to be deleted. */
  readonly pending: ReadonlySet<number>
}

export interface Backlog {
  readonly queue: Queue
  /** Unsettled deliveries, in memory or not. */
  waiting(): number
  /** A delivery was committed. It is kept in memory when all before it are there and there is room. */
  announce(delivery: Delivery, mayHold: boolean): void
  /**
   * The next one that may leave at `now` (monotonic ms), followed by those that may share its request; none when nothing
   * may leave. Reads from the table when memory runs low.
   */
  next(now: number): readonly Flight[]
  /** There is more to read at once: call `next` again soon. */
  isReading(): boolean
  /** It is settled: delivered, buried or void. Its number is pending already. */
  finish(flight: Flight): void
  /** It failed and is the next of its pair again, after `pausedUntil` if that is given. */
  putBack(flight: Flight, pausedUntil?: number): void
  /** Gives up the oldest until at most `max` wait, and says which. Those in flight are spared. */
  dropOldest(max: number): DeliveryHead[]
  /** Frees the memory; all is read again when `next` is called. */
  unload(): void
  /** The same, and counts again: rows were moved or deleted by somebody else. */
  reread(): void
}

const catchUpCount = 64

/** `after`: all deliveries up to this number are settled or known to be of other endpoints. */
export function createBacklog(ports: BacklogPorts, after: number): Backlog {
  const { endpoint, reads, pending } = ports
  const queue = createQueue()
  let waiting = 0
  /** Highest d that `waiting` includes. */
  let counted = after
  /** Highest d that was read or taken into memory. */
  let cursor = after
  /** The table has rows above the cursor. */
  let hasMore = false
  /** Nothing at or below it is left to drop. */
  let floor = 0

  const isNew = ({ d }: Delivery): boolean => !pending.has(d) && !queue.has(d)
  const hasRoom = (): boolean =>
    queue.size < limits.deliveriesWindow.value && queue.bytes < limits.deliveriesWindowBytes.value
  const isReading = (): boolean =>
    hasMore && hasRoom() && queue.size - queue.paused <= limits.deliveriesWindow.value / 2

  function read(): void {
    const count = limits.deliveriesWindow.value - queue.size
    const bytes = limits.deliveriesWindowBytes.value - queue.bytes
    const rows = reads.next({ endpoint, after: cursor, count }, bytes)
    for (const row of rows) if (isNew(row)) queue.add(row)
    hasMore = rows.length > 0
    cursor = rows.at(-1)?.d ?? cursor
  }
  /** A failing pair held its head only; what the cursor has passed meanwhile is read now. */
  function catchUp(pair: Pair | undefined, head: DeliveryHead): void {
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
    waiting: () => waiting,
    announce(delivery, mayHold) {
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
    next(now) {
      if (isReading()) read()
      const flight = queue.take(now)
      return flight === undefined ? [] : [flight, ...queue.companions(flight)]
    },
    isReading,
    finish(flight) {
      waiting--
      catchUp(queue.finish(flight), flight.delivery)
      if (queue.isDisowned(flight)) count()
    },
    putBack(flight, pausedUntil) {
      if (queue.putBack(flight, pausedUntil)) return
      // Whether it is still owed here, only the table knows.
      unload()
      count()
    },
    dropOldest(max) {
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
    unload,
    reread() {
      queue.disown()
      unload()
      count()
      floor = 0
    },
  } satisfies Backlog)
}
