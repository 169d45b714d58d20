/**
 * When entities and attributes expire (GS CIM 009 V1.9.1, 4.22: `expiresAt`), what is left of an entity then, and when one
 * expires of which there are several versions.
 * Sub-attributes do not expire by themselves.
 */

import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { Attribute, AttributeInstance } from './attribute.ts'
import { attributeNames, type Entity, instancesOf } from './entity.ts'
import { createDraft, type Merged } from './entity-draft.ts'

/**
 * Whether the text of an entity mentions an expiry; it may be mentioned in a value. The search leaves out the first letter: V8 looks for
 * the first character of what it searches, and finds an x forty times sooner than a quote or an e among those of a document.
 */
export const mentionsExpiry = (text: string): boolean => text.includes('xpiresAt"')

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

/**
 * Versions of one entity as they add up, and when that expires [V1.9.1, 4.5.5.2 and 4.5.5.3]: never, where one of them
 * never does; else with the last. Where they do not all say the same, what each has of the entity ends no later than that
 * version does, so that it is gone in time although the entity stays.
 */
export function transient<Version extends { readonly entity: Entity }>(
  versions: readonly Version[],
): { readonly versions: readonly Version[]; readonly expiresAt: string | undefined } {
  const ends = versions.map(({ entity }) => entity.expiresAt)
  if (ends.every((one) => one === ends[0])) return { versions, expiresAt: ends[0] }
  const isLater = (one: string, other: string): boolean => dateTimeToMs(one)! > dateTimeToMs(other)!
  const last = ends.reduce((a, b) => (a === undefined || b === undefined ? undefined : isLater(b, a) ? b : a))
  return {
    versions: versions.map((version) => ({ ...version, entity: endingWithIt(version.entity) })),
    expiresAt: last,
  }
}

/** An entity whose attributes expire no later than it does as a whole. */
function endingWithIt(entity: Entity): Entity {
  const { expiresAt } = entity
  const end = dateTimeToMs(expiresAt ?? '')
  if (expiresAt === undefined || end === undefined) return entity
  const draft = createDraft(entity)
  for (const name of attributeNames(entity)) {
    for (const instance of instancesOf(entity, name)) {
      if (expiryOf(instance) > end) draft.put(name, { ...instance, expiresAt })
    }
  }
  return draft.finish().entity
}

function expiryOf({ expiresAt }: AttributeInstance): number {
  if (typeof expiresAt !== 'string') return Number.POSITIVE_INFINITY
  return dateTimeToMs(expiresAt) ?? Number.POSITIVE_INFINITY
}
