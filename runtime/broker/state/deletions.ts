/**
 * The attribute instances and scopes that were deleted from an entity, derived from its change records and
 * tombstones. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { timesKey } from './entity-view.ts'

/**
 * A deleted attribute instance ('' is the default instance), or the deleted scope in the form of an
 * attribute.
 */
export interface DeletedInstance {
  /** `name` or `name datasetId`. */
  readonly key: string
  readonly name: string
  readonly dataset: string
  readonly via: string | undefined
  /** Commit time of the deletion, ms. */
  readonly at: number
}

/** The members of a change record that describe deletions. */
export interface DeletingChange {
  readonly kind: string
  readonly at: number
  readonly scope?: Entity['scope'] | null
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
    ...others: unknown[],
  ])[]
  readonly via?: Readonly<Record<string, string>>
}

export const deletionsBy = (changes: readonly DeletingChange[]): readonly DeletedInstance[] =>
  changes.flatMap(({ kind, instances, scope, via, at }) => {
    if (kind !== 'updated') return []
    const deleted = instances.flatMap(([name, dataset, instance]) => {
      const key = timesKey(name, dataset)
      return instance === null ? [{ key, name, dataset, at, via: via?.[key] }] : []
    })
    return scope === null ? [...deleted, deletedScope(at, undefined)] : deleted
  })

/** A change record does not contain the Via chain of a scope. */
const deletedScope = (at: number, via: string | undefined): DeletedInstance => ({
  key: 'scope',
  name: 'scope',
  dataset: '',
  at,
  via,
})

export function deletionsWith({ doc, at, via }: TombstoneRow): readonly DeletedInstance[] {
  const was = JSON.parse(doc) as Entity
  const deleted = attributeNames(was).flatMap((name) =>
    instancesOf(was, name).map(({ datasetId: dataset = '' }) => {
      const key = timesKey(name, dataset)
      return { key, name, dataset, at, via: via ?? undefined }
    }),
  )
  return was.scope === undefined ? deleted : [...deleted, deletedScope(at, via ?? undefined)]
}
