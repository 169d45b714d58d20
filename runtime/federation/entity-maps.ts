/**
 * Entity maps (GS CIM 009, 5.2.39 and 5.14): which entities a query found, and where each of them is held, so that its
 * pages can be had later without asking everybody again. They live in memory, for a while and up to a bound.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'

export interface EntityMap {
  readonly id: string
  /** Ids of registrations, or `@none` for what is held here, by entity id; in the order of the query. */
  readonly origins: ReadonlyMap<string, readonly string[]>
  /** Milliseconds UTC. */
  readonly expiresAt: number
}

export interface EntityMaps {
  create(tenant: string, origins: EntityMap['origins'], lifetimeMs: number): EntityMap
  get(tenant: string, id: string): EntityMap | undefined
  /** False when there is none. */
  extend(tenant: string, id: string, expiresAt: number): boolean
  delete(tenant: string, id: string): boolean
}

export function createEntityMaps(clock: Clock): EntityMaps {
  /** Oldest first. */
  const maps = new Map<string, EntityMap>()
  const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`
  function get(tenant: string, id: string): EntityMap | undefined {
    const found = maps.get(keyOf(tenant, id))
    if (found === undefined || found.expiresAt > clock.now()) return found
    maps.delete(keyOf(tenant, id))
    return undefined
  }

  return Object.freeze({
    create(tenant, origins, lifetimeMs) {
      if (maps.size >= limits.entityMapsMax.value) maps.delete(maps.keys().next().value!)
      const id = `urn:ngsi-ld:EntityMap:${randomUUID()}`
      const map = { id, origins, expiresAt: clock.now() + lifetimeMs }
      maps.set(keyOf(tenant, id), map)
      return map
    },
    get,
    extend(tenant, id, expiresAt) {
      const found = get(tenant, id)
      if (found === undefined) return false
      maps.set(keyOf(tenant, id), { ...found, expiresAt })
      return true
    },
    delete: (tenant, id) => get(tenant, id) !== undefined && maps.delete(keyOf(tenant, id)),
  } satisfies EntityMaps)
}
