/**
 * The scopes of this gateway's entities at the centre: below a configured prefix, so that a centre of many
 * sites can distinguish them. An entity without a scope gets the prefix itself. An entity that originates at
 * the centre already has its scope there, and is sent without one. Pure.
 */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'

export type ScopePrefix = ReturnType<typeof createScopePrefix>

/** @param prefix a path such as /site-7, without a slash at its end */
export function createScopePrefix(prefix: string | undefined) {
  const scope = (here: Entity['scope'], isFromCentre: boolean): Entity['scope'] => {
    if (prefix === undefined) return here
    if (isFromCentre) return undefined
    if (here === undefined) return prefix
    return typeof here === 'string' ? prefix + here : here.map((one) => prefix + one)
  }
  return Object.freeze({
    /** The prefix; undefined if scopes are sent unchanged. */
    prefix,
    /** The scope to send for an entity; undefined if none is to be sent. */
    scope,
    /** The entity as the centre holds it. */
    entity(here: Entity): Entity {
      const placed = scope(here.scope, false)
      return placed === undefined ? here : { ...here, scope: placed }
    },
  })
}

/** Whether scopes are equal, in any order. */
export const isSameScope = (one: Entity['scope'], other: Entity['scope']): boolean =>
  textOf(one) === textOf(other)

const textOf = (scope: Entity['scope'] = []): string => [...listOf(scope)].toSorted().join()

/** Whether all scopes are at or below a prefix that was sent before. */
export const isBelow = (scope: Entity['scope'], prefix: string): boolean =>
  listOf(scope ?? []).every((one) => one === prefix || one.startsWith(`${prefix}/`))
