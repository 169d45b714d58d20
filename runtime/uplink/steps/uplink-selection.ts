/**
 * The selection of an uplink's subscription, tested against the current entity. Pure.
 */
import { createHash } from 'node:crypto'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { textBudget } from '#ngsi-ld/values/pattern.ts'

export interface UplinkSelection {
  /** Whether an entity is sent; `entity` holds the values to be sent. */
  takes(entity: Entity): boolean
  /** Whether an entity of that id and type can be selected, whatever its values. */
  mayTake(head: Pick<Entity, 'id' | 'type'>): boolean
  /** Whether an attribute is sent. */
  takesAttribute(name: string): boolean
  /** Whether everything is sent. */
  readonly takesAll: boolean
  /** The selected types, if only the type decides. */
  readonly types: readonly string[] | undefined
  /** Whether the selection depends on values and not only on id and type. */
  readonly dependsOnValues: boolean
}

/** Compiles the selecting members of a subscription (GS CIM 009, 5.2.12). */
export function selectionOf(subscription: Subscription): UplinkSelection {
  const { entities, q, geoQ, scopeQ, watchedAttributes, notification } = subscription
  const selectors = entities === undefined || entities.length === 0 ? undefined : entities
  const dependsOnValues = q !== undefined || geoQ !== undefined || scopeQ !== undefined
  const test = compileSearch({ selectors, q, geo: geoQ, scope: scopeQ }, undefined, textBudget)
  const testHead = compileSearch({ selectors }, undefined, textBudget)
  const wanted = notification.attributes ?? notification.pick ?? watchedAttributes
  const names = wanted === undefined ? undefined : new Set(wanted)
  const omitted = new Set(notification.omit)
  return {
    takes: (entity) => test(entity, undefined),
    mayTake: (head) => testHead(head, undefined),
    takesAttribute: (name) => (names === undefined || names.has(name)) && !omitted.has(name),
    takesAll: selectors === undefined && names === undefined && omitted.size === 0 && !dependsOnValues,
    dependsOnValues,
    types: typesOf(selectors),
  }
}

/** A hash of the selection; subscriptions with equal selecting members have the same hash. */
export function selectionHash({
  entities,
  q,
  geoQ,
  scopeQ,
  watchedAttributes,
  notification: { attributes, pick, omit },
}: Subscription): string {
  const members = { entities, q, geoQ, scopeQ, watchedAttributes, attributes, pick, omit }
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url')
}

function typesOf(selectors: Subscription['entities']): readonly string[] | undefined {
  const names = selectors?.map(({ types, ids, idPattern }) =>
    ids === undefined && idPattern === undefined && types?.kind === 'type' ? types.name : undefined,
  )
  return names?.every((name) => name !== undefined) === true ? names : undefined
}
