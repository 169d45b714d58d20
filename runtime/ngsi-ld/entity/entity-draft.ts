/**
 * The working copy of an entity during one write: reads return the changes made so far, the original entity
 * is not modified, and every changed instance is recorded.
 */

import { listOf } from '#ngsi-ld/values/json.ts'
import type { Attribute, AttributeInstance } from './attribute.ts'
import { attributeNames, type Entity, type Fragment, instancesOf } from './entity.ts'

/** The change of one instance: a creation has no `before`, a deletion has no `after`. */
export interface AttributeChange {
  readonly name: string
  readonly datasetId?: string | undefined
  readonly before?: AttributeInstance | undefined
  readonly after?: AttributeInstance | undefined
  /** Time (ms) of the first write, if another gateway reports it. */
  readonly at?: number | undefined
}

/** Why an attribute was not written, for the body of a 207 (GS CIM 009, 5.2.19); the name is canonical. */
export interface AttributeRefusal {
  readonly attributeName: string
  readonly reason: string
}

export interface Merged {
  /** The original object if nothing changed. */
  readonly entity: Entity
  /** Names of all attributes written, even if unchanged; may include `scope` and `expiresAt`. */
  readonly updated: readonly string[]
  readonly notUpdated: readonly AttributeRefusal[]
  readonly changes: readonly AttributeChange[]
}

export interface EntityDraft {
  /** The instance in its current state. */
  find(name: string, datasetId: string | undefined): AttributeInstance | undefined
  /** Replaces the instance with the same datasetId, or adds a new one. */
  put(name: string, instance: AttributeInstance): void
  remove(name: string, datasetId: string | undefined): void
  refuse(attributeName: string, reason: string): void
  /** Types are only added, never removed (4.5.1, since 1.5). */
  addTypes(types: string | readonly string[] | undefined): void
  setScope(scope: string | readonly string[] | undefined): void
  setExpiry(expiresAt: string | undefined): void
  finish(): Merged
}

export function createDraft(original: Entity): EntityDraft {
  const members: Record<string, Attribute | string | readonly string[] | undefined> = { ...original }
  const updated = new Set<string>()
  const notUpdated: AttributeRefusal[] = []
  const changes: AttributeChange[] = []
  let typesAdded = false

  const replace = (
    name: string,
    datasetId: string | undefined,
    after: AttributeInstance | undefined,
  ): void => {
    const instances = [...instancesOf(members, name)]
    const found = instances.findIndex((instance) => instance.datasetId === datasetId)
    changes.push({ name, datasetId, before: instances[found], after })
    instances.splice(found < 0 ? instances.length : found, 1, ...(after === undefined ? [] : [after]))
    if (instances.length === 0) delete members[name]
    else members[name] = instances.length === 1 ? instances[0]! : instances
    updated.add(name)
  }

  return {
    find: (name, datasetId) => findInstance(members, name, datasetId),
    put: (name, instance) => replace(name, instance.datasetId, instance),
    remove: (name, datasetId) => replace(name, datasetId, undefined),
    refuse: (attributeName, reason) => {
      notUpdated.push({ attributeName, reason })
    },
    addTypes(types) {
      const present = listOf(original.type)
      const all = [...new Set([...present, ...listOf(types ?? [])])]
      if (all.length === present.length) return
      members['type'] = all
      typesAdded = true
    },
    setScope(scope) {
      updated.add('scope')
      if (scope === undefined) delete members['scope']
      else members['scope'] = Array.isArray(scope) && scope.length === 1 ? (scope[0] as string) : scope
    },
    setExpiry(expiresAt) {
      updated.add('expiresAt')
      if (expiresAt === undefined) delete members['expiresAt']
      else members['expiresAt'] = expiresAt
    },
    finish: () => ({
      entity: typesAdded || updated.size > 0 ? (members as Entity) : original,
      updated: [...updated],
      notUpdated,
      changes,
    }),
  }
}

export const findInstance = (
  entity: Entity | Fragment,
  name: string,
  datasetId: string | undefined,
): AttributeInstance | undefined =>
  instancesOf(entity, name).find((instance) => instance.datasetId === datasetId)

/**
 * The changes that turn one entity into another; without `before` those of a creation, without `after` those
 * of a deletion.
 */
export function changesBetween(before: Entity | undefined, after: Entity | undefined): AttributeChange[] {
  const present = entries(after).map(
    ([name, instance]): AttributeChange => ({
      name,
      datasetId: instance.datasetId,
      before: before && findInstance(before, name, instance.datasetId),
      after: instance,
    }),
  )
  const deleted = entries(before)
    .filter(
      ([name, { datasetId }]) => after === undefined || findInstance(after, name, datasetId) === undefined,
    )
    .map(([name, instance]): AttributeChange => ({ name, datasetId: instance.datasetId, before: instance }))
  return [...present, ...deleted]
}

const entries = (entity: Entity | undefined): (readonly [string, AttributeInstance])[] =>
  entity === undefined
    ? []
    : attributeNames(entity).flatMap((name) =>
        instancesOf(entity, name).map((instance) => [name, instance] as const),
      )
