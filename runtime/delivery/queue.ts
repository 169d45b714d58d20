/**
 * The deliveries of an endpoint in memory, in sending order: strictly sequential within each pair of
 * subscription and entity, round-robin between pairs. A failed pair keeps only its first delivery in memory,
 * so that it does not fill the memory of the endpoint (`limits.deliveriesWindow`). It also selects the
 * deliveries of one batch operation that share a notification, up to `limits.notificationEntitiesMax`;
 * `broker/subscriptions/notification.ts` applies the limit of 128 KB. The queue is independent of clock and
 * table.
 */
import { limits } from '#base/limits/limits.ts'
import type { Delivery, DeliveryHead } from '#store/tables/delivery-rows.ts'

/** The deliveries of a subscription for one entity. */
export interface EntityQueue {
  readonly key: string
  /** In order of d, without the delivery in flight. */
  readonly waiting: Delivery[]
  isFlying: boolean
  /** Later deliveries of the pair are only in the table. */
  isBehind: boolean
  /** Its first delivery failed and is sent in a request of its own until it succeeds. */
  isAlone: boolean
  /** When its first delivery last failed, monotonic ms. */
  failedAt: number | undefined
  /** Consecutive failures attributed to this pair, and the time of the first, monotonic ms. */
  failures: number
  failingSince: number
  /** Consecutive responses that reject its first delivery. */
  poisonTries: number
  pausedUntil: number
}

/** A delivery in flight. */
export interface Flight {
  readonly delivery: Delivery
  readonly pair: EntityQueue
  readonly startedAt: number
  readonly generation: number
  /** The delivery shares the request of another flight. */
  readonly isCompanion: boolean
}

const overheadBytes = 256
const weigh = (delivery: Delivery): number =>
  overheadBytes + (delivery.body?.length ?? 0) + (delivery.value?.length ?? 0) + delivery.entity.length
const keyOf = (delivery: Pick<Delivery, 'sub' | 'entity'>): string => `${delivery.sub} ${delivery.entity}`

/** A class, because thousands of endpoints have one each: closures would take several kB per endpoint. */
export class DeliveryQueue {
  private readonly pairs = new Map<string, EntityQueue>()
  private readonly held = new Set<number>()
  private readonly flying = new Set<number>()
  private ready: EntityQueue[] = []
  private pausing: EntityQueue[] = []
  private weight = 0
  private generation = 0
  private companionCount = 0

  /** Adds a delivery, unless its pair is behind; `catchUp` adds those. */
  add(delivery: Delivery): void {
    const pair = this.pairs.get(keyOf(delivery)) ?? newPair(this.pairs, keyOf(delivery))
    if (!pair.isBehind) this.hold(pair, delivery)
  }
  /** Takes the next delivery that may be sent at `now`. */
  take(now: number): Flight | undefined {
    if (this.pausing.length > 0) {
      this.ready.push(...this.pausing.filter((pair) => pair.pausedUntil <= now))
      this.pausing = this.pausing.filter((pair) => pair.pausedUntil > now)
    }
    const pair = this.ready.shift()
    return pair && this.startFlight(pair, now, false)
  }
  /**
   * Takes the first deliveries of other ready pairs that may share the request of `flight`: same
   * subscription and batch.
   */
  companions({ delivery, pair, startedAt }: Flight): Flight[] {
    if (delivery.batch === null || pair.isAlone) return []
    const { sub, batch } = delivery
    const joining = this.ready
      .filter(({ waiting: [head], isAlone }) => !isAlone && head?.sub === sub && head.batch === batch)
      .slice(0, limits.notificationEntitiesMax.value - 1)
    const left = new Set(joining)
    this.ready = this.ready.filter((other) => !left.has(other))
    return joining.map((other) => this.startFlight(other, startedAt, true)!)
  }
  /**
   * Ends a settled flight; the next of its pair may be sent. Returns the pair if its rest is only in the
   * table.
   */
  finish(flight: Flight): EntityQueue | undefined {
    const { pair } = flight
    this.endFlight(flight)
    this.release(flight.delivery)
    Object.assign(pair, withoutFailures)
    return this.requeue(pair)
  }
  /**
   * Ends a failed flight; the delivery stays first of its pair. Returns false and releases it if the flight
   * is stale.
   */
  putBack(flight: Flight, pausedUntil?: number): boolean {
    const { pair, delivery } = flight
    this.endFlight(flight)
    if (this.isStale(flight)) {
      this.release(delivery)
      this.requeue(pair)
      return false
    }
    const rest = pair.waiting.splice(0, Number.POSITIVE_INFINITY, delivery)
    for (const later of rest) this.release(later)
    pair.isBehind ||= rest.length > 0
    pair.pausedUntil = pausedUntil ?? 0
    if (pausedUntil === undefined) this.ready.push(pair)
    else this.pausing.push(pair)
    return true
  }
  /** Removes a waiting delivery. Returns its pair if its rest is only in the table. */
  remove(delivery: DeliveryHead): EntityQueue | undefined {
    const pair = this.pairs.get(keyOf(delivery))
    const index = pair?.waiting.findIndex(({ d }) => d === delivery.d) ?? -1
    if (pair === undefined || index < 0) return undefined
    for (const removed of pair.waiting.splice(index, 1)) this.release(removed)
    if (pair.waiting.length > 0 || pair.isFlying) return undefined
    this.ready = this.ready.filter((other) => other !== pair)
    this.pausing = this.pausing.filter((other) => other !== pair)
    return this.requeue(pair)
  }
  /** Adds the next deliveries of a pair that was behind; `isBehind` if the table contains more. */
  catchUp(pair: EntityQueue, deliveries: readonly Delivery[], isBehind: boolean): void {
    pair.isBehind = isBehind
    for (const delivery of deliveries) this.hold(pair, delivery)
    if (pair.waiting.length === 0 && !isBehind) this.pairs.delete(pair.key)
  }
  /** Removes all waiting deliveries; flights continue. */
  clear(): void {
    this.ready = []
    this.pausing = []
    for (const pair of this.pairs.values()) {
      for (const delivery of pair.waiting.splice(0)) this.release(delivery)
      pair.isBehind = false
      if (!pair.isFlying) this.pairs.delete(pair.key)
    }
  }
  /**
   * Marks all flights as stale, because their rows may have been moved or deleted: they are not put back on
   * failure.
   */
  invalidateFlights(): void {
    this.generation++
  }
  isStale(flight: Flight): boolean {
    return flight.generation !== this.generation
  }
  has(d: number): boolean {
    return this.held.has(d)
  }
  isFlying(d: number): boolean {
    return this.flying.has(d)
  }
  /** Earliest time of the next request, monotonic ms: 0 is now, Infinity is not before a change. */
  dueAt(): number {
    if (this.ready.length > 0) return 0
    return this.pausing.reduce((least, pair) => Math.min(least, pair.pausedUntil), Infinity)
  }
  /** Deliveries in memory, including those in flight. */
  size(): number {
    return this.held.size
  }
  /** Pairs that wait for the end of their own pause. */
  paused(): number {
    return this.pausing.length
  }
  /** Requests in flight. */
  flights(): number {
    return this.flying.size - this.companionCount
  }
  bytes(): number {
    return this.weight
  }

  private release(delivery: Delivery): void {
    this.held.delete(delivery.d)
    this.weight -= weigh(delivery)
  }
  private endFlight(flight: Flight): void {
    this.flying.delete(flight.delivery.d)
    flight.pair.isFlying = false
    if (flight.isCompanion) this.companionCount--
  }
  private startFlight(pair: EntityQueue, startedAt: number, isCompanion: boolean): Flight | undefined {
    const delivery = pair.waiting.shift()
    if (delivery === undefined) return undefined
    pair.isFlying = true
    this.flying.add(delivery.d)
    if (isCompanion) this.companionCount++
    return { delivery, pair, startedAt, generation: this.generation, isCompanion }
  }
  /**
   * Makes a pair with waiting deliveries ready; otherwise deletes it, or returns it if the table contains
   * more.
   */
  private requeue(pair: EntityQueue): EntityQueue | undefined {
    if (pair.waiting.length > 0) this.ready.push(pair)
    else if (pair.isBehind) return pair
    else this.pairs.delete(pair.key)
    return undefined
  }
  private hold(pair: EntityQueue, delivery: Delivery): void {
    this.held.add(delivery.d)
    this.weight += weigh(delivery)
    if (pair.waiting.push(delivery) === 1 && !pair.isFlying) this.ready.push(pair)
  }
}

const withoutFailures = {
  isAlone: false,
  failedAt: undefined,
  failures: 0,
  failingSince: 0,
  poisonTries: 0,
  pausedUntil: 0,
} as const

function newPair(pairs: Map<string, EntityQueue>, key: string): EntityQueue {
  const pair: EntityQueue = { key, waiting: [], isFlying: false, isBehind: false, ...withoutFailures }
  pairs.set(key, pair)
  return pair
}
