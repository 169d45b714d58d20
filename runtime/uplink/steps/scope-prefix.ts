/**
 * Where the entities of this gateway stand at the other broker: below a scope of their own, where one is wished, so that a
 * centre of many sites tells them apart. What has no scope stands at that scope itself. What came from over there has
 * its place there already, and is told without one. Pure.
 */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'

export interface ScopePrefix {
  /** The scope below which all is; undefined where things stand as they do here. */
  readonly prefix: string | undefined
  /** The scope to tell of an entity; undefined where none is to be told. */
  scope(here: Entity['scope'], isFromCentre: boolean): Entity['scope']
  /** An entity as it is over there. */
  entity(here: Entity): Entity
}

/** @param prefix a path such as /site-7, without a slash at its end */
export function createScopePrefix(prefix: string | undefined): ScopePrefix {
  const scope = (here: Entity['scope'], isFromCentre: boolean): Entity['scope'] => {
    if (prefix === undefined) return here
    if (isFromCentre) return undefined
    if (here === undefined) return prefix
    return typeof here === 'string' ? prefix + here : here.map((one) => prefix + one)
  }
  return Object.freeze({
    prefix,
    scope,
    entity(here) {
      const placed = scope(here.scope, false)
      return placed === undefined ? here : { ...here, scope: placed }
    },
  } satisfies ScopePrefix)
}

/** Whether scopes are the same, in whatever order. */
export const isSameScope = (one: Entity['scope'], other: Entity['scope']): boolean =>
  textOf(one) === textOf(other)

const textOf = (scope: Entity['scope'] = []): string => [...listOf(scope)].toSorted().join()

/** Whether all of it is at or below a prefix that was told before. */
export const isBelow = (scope: Entity['scope'], prefix: string): boolean =>
  listOf(scope ?? []).every((one) => one === prefix || one.startsWith(`${prefix}/`))
