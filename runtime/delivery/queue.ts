/**
 * The deliveries of one endpoint that are in memory, in the order they may leave: strictly one after the other for
 * each pair of subscription and entity, pairs in turn. A pair that has failed holds its head only, so that it never
 * fills the window against the others. Knows no clock and no table.
 */
import { limits } from '#base/limits/limits.ts'
import type { Delivery, DeliveryHead } from '#store/tables/delivery-rows.ts'

/** One subscription and one entity of it. */
export interface Pair {
  readonly key: string
  /** In order of d, without the one in flight. */
  readonly waiting: Delivery[]
  isFlying: boolean
  /** Later deliveries of it were left in the table. */
  isBehind: boolean
  /** Its head failed: it is sent alone until it succeeds. */
  isAlone: boolean
  /** When its head failed last, monotonic ms. */
  failedAt: number | undefined
  /** Failures in a row that are its own doing, and since when, monotonic ms. */
  failures: number
  failingSince: number
  /** Answers in a row that call its head wrong. */
  poisonTries: number
  pausedUntil: number
}

/** A delivery on its way. */
export interface Flight {
  readonly delivery: Delivery
  readonly pair: Pair
  readonly startedAt: number
  readonly generation: number
  /** It shares the request of another flight. */
  readonly isCompanion: boolean
}

export interface Queue {
  /** Takes a delivery in; one of a pair that is behind is left to `catchUp`. */
  add(delivery: Delivery): void
  /** The next one that may leave at `now`. */
  take(now: number): Flight | undefined
  /** Takes the heads of other ready pairs that may share the request of `flight`: same subscription, same mark. */
  companions(flight: Flight): Flight[]
  /** It is settled; the next one of its pair may leave. Returns the pair when the rest of it is in the table only. */
  finish(flight: Flight): Pair | undefined
  /** It failed and stays first of its pair. False when it was disowned; then it is let go. */
  putBack(flight: Flight, pausedUntil?: number): boolean
  /** Lets go of a waiting delivery. Returns its pair when the rest of it is in the table only. */
  remove(delivery: DeliveryHead): Pair | undefined
  /** Takes in the next deliveries of a pair that was behind; `isBehind` when the table has still more. */
  catchUp(pair: Pair, deliveries: readonly Delivery[], isBehind: boolean): void
  /** Lets go of all that wait. What is in flight stays so. */
  clear(): void
  /** What is in flight now may no longer belong here: it does not come back when it fails. */
  disown(): void
  isDisowned(flight: Flight): boolean
  has(d: number): boolean
  isFlying(d: number): boolean
  /** Earliest monotonic ms at which one may leave: 0 now, Infinity never without a change. */
  dueAt(): number
  /** All in memory: waiting and in flight. */
  readonly size: number
  /** Those that failed alone and wait for their pause to end. */
  readonly paused: number
  /** Requests under way. */
  readonly flights: number
  readonly bytes: number
}

const overheadBytes = 256
const weigh = (delivery: Delivery): number =>
  overheadBytes + (delivery.body?.length ?? 0) + (delivery.value?.length ?? 0) + delivery.entity.length
const keyOf = (delivery: Pick<Delivery, 'sub' | 'entity'>): string => `${delivery.sub} ${delivery.entity}`

export function createQueue(): Queue {
  const pairs = new Map<string, Pair>()
  const held = new Set<number>()
  const flying = new Set<number>()
  let ready: Pair[] = []
  let paused: Pair[] = []
  let bytes = 0
  let generation = 0
  let companions = 0

  const letGo = (delivery: Delivery): void => {
    held.delete(delivery.d)
    bytes -= weigh(delivery)
  }
  const land = (flight: Flight): void => {
    flying.delete(flight.delivery.d)
    flight.pair.isFlying = false
    if (flight.isCompanion) companions--
  }
  const depart = (pair: Pair, startedAt: number, isCompanion: boolean): Flight | undefined => {
    const delivery = pair.waiting.shift()
    if (delivery === undefined) return undefined
    pair.isFlying = true
    flying.add(delivery.d)
    if (isCompanion) companions++
    return { delivery, pair, startedAt, generation, isCompanion }
  }
  /** A pair that can go on is ready; one with nothing left is forgotten, or returned when the table has more of it. */
  const settleDown = (pair: Pair): Pair | undefined => {
    if (pair.waiting.length > 0) ready.push(pair)
    else if (pair.isBehind) return pair
    else pairs.delete(pair.key)
    return undefined
  }
  const hold = (pair: Pair, delivery: Delivery): void => {
    held.add(delivery.d)
    bytes += weigh(delivery)
    if (pair.waiting.push(delivery) === 1 && !pair.isFlying) ready.push(pair)
  }

  return Object.freeze({
    add(delivery) {
      const pair = pairs.get(keyOf(delivery)) ?? newPair(pairs, keyOf(delivery))
      if (!pair.isBehind) hold(pair, delivery)
    },
    take(now) {
      if (paused.length > 0) {
        ready.push(...paused.filter((pair) => pair.pausedUntil <= now))
        paused = paused.filter((pair) => pair.pausedUntil > now)
      }
      const pair = ready.shift()
      return pair && depart(pair, now, false)
    },
    companions({ delivery, pair, startedAt }) {
      if (delivery.batch === null || pair.isAlone) return []
      const { sub, batch } = delivery
      const joining = ready
        .filter(({ waiting: [head], isAlone }) => !isAlone && head?.sub === sub && head.batch === batch)
        .slice(0, limits.notificationEntitiesMax.value - 1)
      const left = new Set(joining)
      ready = ready.filter((other) => !left.has(other))
      return joining.map((other) => depart(other, startedAt, true)!)
    },
    finish(flight) {
      const { pair } = flight
      land(flight)
      letGo(flight.delivery)
      Object.assign(pair, untroubled)
      return settleDown(pair)
    },
    putBack(flight, pausedUntil) {
      const { pair, delivery } = flight
      land(flight)
      if (flight.generation !== generation) {
        letGo(delivery)
        settleDown(pair)
        return false
      }
      const rest = pair.waiting.splice(0, Number.POSITIVE_INFINITY, delivery)
      for (const later of rest) letGo(later)
      pair.isBehind ||= rest.length > 0
      pair.pausedUntil = pausedUntil ?? 0
      if (pausedUntil === undefined) ready.push(pair)
      else paused.push(pair)
      return true
    },
    remove(delivery) {
      const pair = pairs.get(keyOf(delivery))
      const index = pair?.waiting.findIndex(({ d }) => d === delivery.d) ?? -1
      if (pair === undefined || index < 0) return undefined
      for (const removed of pair.waiting.splice(index, 1)) letGo(removed)
      if (pair.waiting.length > 0 || pair.isFlying) return undefined
      ready = ready.filter((other) => other !== pair)
      paused = paused.filter((other) => other !== pair)
      return settleDown(pair)
    },
    catchUp(pair, deliveries, isBehind) {
      pair.isBehind = isBehind
      for (const delivery of deliveries) hold(pair, delivery)
      if (pair.waiting.length === 0 && !isBehind) pairs.delete(pair.key)
    },
    clear() {
      ready = []
      paused = []
      for (const pair of pairs.values()) {
        for (const delivery of pair.waiting.splice(0)) letGo(delivery)
        pair.isBehind = false
        if (!pair.isFlying) pairs.delete(pair.key)
      }
    },
    disown() {
      generation++
    },
    isDisowned: (flight) => flight.generation !== generation,
    has: (d) => held.has(d),
    isFlying: (d) => flying.has(d),
    dueAt: () =>
      ready.length > 0 ? 0 : paused.reduce((least, pair) => Math.min(least, pair.pausedUntil), Infinity),
    get size() {
      return held.size
    },
    get paused() {
      return paused.length
    },
    get flights() {
      return flying.size - companions
    },
    get bytes() {
      return bytes
    },
  } satisfies Queue)
}

const untroubled = {
  isAlone: false,
  failedAt: undefined,
  failures: 0,
  failingSince: 0,
  poisonTries: 0,
  pausedUntil: 0,
} as const

function newPair(pairs: Map<string, Pair>, key: string): Pair {
  const pair: Pair = { key, waiting: [], isFlying: false, isBehind: false, ...untroubled }
  pairs.set(key, pair)
  return pair
}
