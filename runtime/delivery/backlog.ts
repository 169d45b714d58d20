/**
 * The backlog of an endpoint: a bounded window in memory, the rest in the table, read in order of d. No
 * delivery is in memory twice, and settled rows that are not yet deleted are not read again. A read may find
 * rows before their commit is announced; the delivery is still added only once.
 */
import { limits } from '#base/limits/limits.ts'
import type { Deliveries, Delivery, DeliveryHead } from '#store/tables/delivery-rows.ts'
import { DeliveryQueue, type EntityQueue, type Flight } from './queue.ts'

/** Shared by the backlogs of all endpoints. */
export interface BacklogPorts {
  readonly reads: Deliveries
  /** Settled deliveries whose rows still exist. */
  readonly pending: ReadonlySet<number>
}

const catchUpCount = 64

/** A class, because thousands of endpoints have one each. */
export class Backlog {
  private readonly ports: BacklogPorts
  private readonly endpoint: string
  /** The deliveries in memory; absent without any, so that an unreachable endpoint takes no memory for it. */
  private queue: DeliveryQueue | undefined = undefined
  private unsettled = 0
  /** Highest d counted in `unsettled`. */
  private counted: number
  /** Highest d that was read or added to memory. */
  private cursor: number
  /** Whether the table has rows above the cursor. */
  private hasMore = false
  /** No delivery at or below it can be dropped any more. */
  private floor = 0

  /** `after`: all deliveries up to this number are settled or belong to other endpoints. */
  constructor(ports: BacklogPorts, endpoint: string, after: number) {
    this.ports = ports
    this.endpoint = endpoint
    this.counted = after
    this.cursor = after
  }

  /** Number of unsettled deliveries, in memory or not. */
  waiting(): number {
    return this.unsettled
  }
  /** Deliveries in memory, including those in flight. */
  held(): number {
    return this.queue?.size() ?? 0
  }
  /** Requests in flight. */
  flights(): number {
    return this.queue?.flights() ?? 0
  }
  /** Earliest time of the next request, monotonic ms: 0 is now, Infinity is not before a change. */
  dueAt(): number {
    return this.queue?.dueAt() ?? Number.POSITIVE_INFINITY
  }
  /**
   * Announces a committed delivery. It is added to memory if all earlier ones are there and there is room.
   */
  announce(delivery: Delivery, mayHold: boolean): void {
    if (delivery.d > this.counted) {
      this.unsettled++
      this.counted = delivery.d
    }
    if (delivery.d <= this.cursor || !this.isNew(delivery)) return
    if (this.hasMore || !mayHold || !this.hasRoom()) {
      this.hasMore = true
      return
    }
    this.opened().add(delivery)
    this.cursor = delivery.d
  }
  /**
   * Takes the next delivery that may be sent at `now` (monotonic ms) and those that may share its request;
   * empty if there is none. Reads from the table when the window runs low.
   */
  next(now: number): readonly Flight[] {
    if (this.isReading()) this.read()
    const flight = this.queue?.take(now)
    return flight === undefined ? [] : [flight, ...this.opened().companions(flight)]
  }
  /** Whether the window can be refilled now, so that `next` should be called again. */
  isReading(): boolean {
    if (!this.hasMore || !this.hasRoom()) return false
    return this.held() - (this.queue?.paused() ?? 0) <= limits.deliveriesWindow.value / 2
  }
  /** Ends a settled flight (delivered, dead letter or void), whose number is already pending. */
  finish(flight: Flight): void {
    this.unsettled--
    const queue = this.opened()
    this.catchUp(queue.finish(flight), flight.delivery)
    if (queue.isStale(flight)) this.count()
  }
  /** Ends a failed flight; the delivery is the next of its pair again, after `pausedUntil` if given. */
  putBack(flight: Flight, pausedUntil?: number): void {
    if (this.opened().putBack(flight, pausedUntil)) return
    // The delivery may belong to another endpoint now, so the table is read again.
    this.unload()
    this.count()
  }
  /** Drops the oldest deliveries until at most `max` wait, except those in flight, and returns them. */
  dropOldest(max: number): DeliveryHead[] {
    const { reads, pending } = this.ports
    const dropped: DeliveryHead[] = []
    while (this.unsettled > max) {
      const heads = reads.heads({
        endpoint: this.endpoint,
        after: this.floor,
        count: this.unsettled - max + limits.deliveriesInFlightMax.value,
      })
      if (heads.length === 0) break
      for (const head of heads) {
        if (this.unsettled <= max) break
        this.floor = head.d
        if (pending.has(head.d) || this.queue?.isFlying(head.d) === true) continue
        this.catchUp(this.queue?.remove(head), head)
        dropped.push(head)
        this.unsettled--
      }
    }
    return dropped
  }
  /** Empties the window; `next` reads it again. Flights continue. */
  unload(): void {
    this.queue?.clear()
    // Flights remember their queue's generation, so it stays until they end.
    if (this.held() === 0) this.queue = undefined
    this.cursor = 0
    this.hasMore = true
  }
  /** Empties the window and counts again, after rows were moved or deleted elsewhere. */
  reread(): void {
    this.queue?.invalidateFlights()
    this.unload()
    this.count()
    this.floor = 0
  }

  private opened(): DeliveryQueue {
    this.queue ??= new DeliveryQueue()
    return this.queue
  }
  private isNew({ d }: Delivery): boolean {
    return !this.ports.pending.has(d) && this.queue?.has(d) !== true
  }
  private hasRoom(): boolean {
    return (
      this.held() < limits.deliveriesWindow.value &&
      (this.queue?.bytes() ?? 0) < limits.deliveriesWindowBytes.value
    )
  }
  private read(): void {
    const queue = this.opened()
    const count = limits.deliveriesWindow.value - queue.size()
    const bytes = limits.deliveriesWindowBytes.value - queue.bytes()
    const rows = this.ports.reads.next({ endpoint: this.endpoint, after: this.cursor, count }, bytes)
    for (const row of rows) if (this.isNew(row)) queue.add(row)
    this.hasMore = rows.length > 0
    this.cursor = rows.at(-1)?.d ?? this.cursor
  }
  /** Reads the deliveries of a pair that were skipped while it kept only its first one in memory. */
  private catchUp(pair: EntityQueue | undefined, head: DeliveryHead): void {
    if (pair === undefined) return
    let last = head.d
    let rows: Delivery[]
    let isBehind: boolean
    do {
      const span = { endpoint: this.endpoint, after: last, count: catchUpCount }
      const read = this.ports.reads.nextOfPair(span, this.cursor, head)
      rows = read.filter((row) => this.isNew(row))
      isBehind = read.length === catchUpCount
      last = read.at(-1)?.d ?? last
    } while (rows.length === 0 && isBehind)
    this.opened().catchUp(pair, rows, isBehind)
  }
  private count(): void {
    const rows = this.ports.reads.backlog(this.endpoint, [...this.ports.pending])
    this.unsettled = rows.count
    this.counted = Math.max(this.counted, rows.last)
  }
}
