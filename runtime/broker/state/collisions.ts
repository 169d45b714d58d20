/**
 * Detects gateways that write the same attribute of the same entity. Entity ids derive from devices, so this
 * means one device at two sites or a copied data folder, and each gateway overwrites the other's values.
 * Collisions are recorded in memory by pair of origins, within bounds, and expire when they stop. A single
 * origin over two paths is no collision. No write is refused.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { chainOf } from '#ngsi-ld/federation/via.ts'

/** Two origins, and how many entities both wrote. */
export interface Collision {
  readonly origins: readonly [string, string]
  /** Bounded by a limit per pair. */
  readonly entities: number
  /** The latest one. */
  readonly entity: string
}

export interface Collisions {
  /** Records that a value with one Via chain was replaced by a value with another. */
  note(rid: number, before: string | undefined, now: string | undefined): void
  /** The collisions of an origin. */
  of(origin: string): readonly Collision[]
}

export interface CollisionsPorts {
  readonly idOf: (rid: number) => string | undefined
  readonly clock: Pick<Clock, 'monotonic'>
  readonly noted: Counter
  readonly log: Log
}

interface Pair {
  readonly origins: readonly [string, string]
  readonly rids: Set<number>
  last: number
  /** Monotonic, ms. */
  lastAt: number
}

export function createCollisions({ idOf, clock, noted, log }: CollisionsPorts): Collisions {
  const pairs = new Map<string, Pair>()

  function forgetOld(): void {
    const since = clock.monotonic() - limits.collisionKeptMs.value
    for (const [key, { lastAt }] of pairs) if (lastAt < since) pairs.delete(key)
  }

  function pairOf(a: string, b: string): Pair | undefined {
    const origins = a < b ? ([a, b] as const) : ([b, a] as const)
    const key = origins.join(' ')
    forgetOld()
    const known = pairs.get(key)
    if (known !== undefined) return known
    if (pairs.size >= limits.collisionPairsMax.value) return undefined
    const fresh = { origins, rids: new Set<number>(), last: 0, lastAt: clock.monotonic() }
    pairs.set(key, fresh)
    return fresh
  }

  return Object.freeze({
    note(rid, before, now) {
      if (before === now || before === undefined || now === undefined) return
      const [a, b] = [chainOf(before)[0]!, chainOf(now)[0]!]
      if (a === b) return
      noted.value++
      const pair = pairOf(a, b)
      if (pair === undefined) return
      if (pair.rids.size === 0)
        log.warn('entity.two-origins', { entity: idOf(rid) ?? '', origins: pair.origins.join(' ') })
      if (pair.rids.size < limits.collisionEntitiesMax.value) pair.rids.add(rid)
      pair.last = rid
      pair.lastAt = clock.monotonic()
    },
    of(origin) {
      forgetOld()
      return [...pairs.values()]
        .filter(({ origins }) => origins.includes(origin))
        .map(({ origins, rids, last }) => ({ origins, entities: rids.size, entity: idOf(last) ?? '' }))
    },
  } satisfies Collisions)
}
