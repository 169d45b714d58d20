/**
 * Entity maps (GS CIM 009, 5.2.39 and 5.14): the entities that a query found and their holders, so that later
 * pages need not query all sources again. Maps live in memory for a limited time. Their number and their
 * total of entities are bounded; the oldest map is evicted first.
 */
import { randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'

export interface EntityMapContent {
  /** Ids of registrations, or `@none` for local data, by entity id; in the order of the query. */
  readonly origins: ReadonlyMap<string, readonly string[]>
  /** Maps that sources created for the same query, by registration id. */
  readonly linked: ReadonlyMap<string, string>
}

export interface EntityMap extends EntityMapContent {
  readonly id: string
  /** Milliseconds UTC. */
  readonly expiresAt: number
}

export type EntityMaps = ReturnType<typeof createEntityMaps>

export function createEntityMaps(clock: Clock) {
  /** Oldest first. */
  const maps = new Map<string, EntityMap>()
  let named = 0
  const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`
  const drop = (key: string): boolean => {
    named -= maps.get(key)?.origins.size ?? 0
    return maps.delete(key)
  }
  function get(tenant: string, id: string): EntityMap | undefined {
    const key = keyOf(tenant, id)
    const found = maps.get(key)
    if (found === undefined || found.expiresAt > clock.now()) return found
    drop(key)
    return undefined
  }
  /** Evicts maps until a map with this number of entities fits. */
  function makeRoom(size: number): void {
    for (const [key, { expiresAt }] of maps) if (expiresAt <= clock.now()) drop(key)
    for (const key of maps.keys()) {
      if (maps.size < limits.entityMapsMax.value && named + size <= limits.entityMapsIdsMax.value) return
      drop(key)
    }
  }

  return Object.freeze({
    create(tenant: string, content: EntityMapContent, lifetimeMs: number): EntityMap {
      makeRoom(content.origins.size)
      const id = `urn:ngsi-ld:EntityMap:${randomUUID()}`
      const map = { id, ...content, expiresAt: clock.now() + lifetimeMs }
      maps.set(keyOf(tenant, id), map)
      named += content.origins.size
      return map
    },
    get,
    /** Changes the expiry, up to the maximum lifetime; false if the map does not exist. */
    extend(tenant: string, id: string, expiresAt: number): boolean {
      const found = get(tenant, id)
      if (found === undefined) return false
      const most = clock.now() + limits.entityMapLifetimeMsMax.value
      maps.set(keyOf(tenant, id), { ...found, expiresAt: Math.min(expiresAt, most) })
      return true
    },
    delete: (tenant: string, id: string) => get(tenant, id) !== undefined && drop(keyOf(tenant, id)),
  })
}
