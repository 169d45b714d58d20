/**
 * When entities and attributes expire (GS CIM 009, `expiresAt`, since 1.9), and what is left of an entity then.
 * Sub-attributes do not expire by themselves.
 */
import { dateTimeToMs } from './datetime.ts'
import { type Attribute, type AttributeInstance, attributeNames, type Entity, instancesOf } from './entity.ts'
import { createDraft, type Merged } from './entity-draft.ts'

/** The first instant (ms) at which something of an entity expires; undefined where nothing ever does. */
export function firstExpiryOf(entity: Entity): number | undefined {
  let first = dateTimeToMs(entity.expiresAt ?? '') ?? Number.POSITIVE_INFINITY
  for (const name in entity) {
    const attribute = entity[name] as Attribute | string
    if (typeof attribute === 'string') continue
    if (Array.isArray(attribute)) {
      for (const instance of attribute as readonly AttributeInstance[])
        first = Math.min(first, expiryOf(instance))
    } else first = Math.min(first, expiryOf(attribute as AttributeInstance))
  }
  return first === Number.POSITIVE_INFINITY ? undefined : first
}

/** Whether the entity as a whole has expired at an instant. */
export const isExpired = (entity: Entity, atMs: number): boolean =>
  (dateTimeToMs(entity.expiresAt ?? '') ?? Number.POSITIVE_INFINITY) <= atMs

/** The entity without the attribute instances that have expired at an instant. */
export function withoutExpired(entity: Entity, atMs: number): Merged {
  const draft = createDraft(entity)
  for (const name of attributeNames(entity)) {
    for (const instance of instancesOf(entity, name)) {
      if (expiryOf(instance) <= atMs) draft.remove(name, instance.datasetId)
    }
  }
  return draft.finish()
}

function expiryOf({ expiresAt }: AttributeInstance): number {
  if (typeof expiresAt !== 'string') return Number.POSITIVE_INFINITY
  return dateTimeToMs(expiresAt) ?? Number.POSITIVE_INFINITY
}
