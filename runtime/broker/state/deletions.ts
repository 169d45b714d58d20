/**
 * What went of an entity, by its change records and by its tombstones: attribute instances, and its scope. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { timesKey } from './entity-view.ts'

/** An attribute instance that is gone ('' is the default instance), or the scope, named as an attribute. */
export interface Dropped {
  /** `name` or `name datasetId`. */
  readonly key: string
  readonly name: string
  readonly dataset: string
  readonly heard: string | undefined
  /** When that was committed, ms. */
  readonly at: number
}

/** What a change record says of it. */
export interface DroppingChange {
  readonly kind: string
  readonly at: number
  readonly scope?: Entity['scope'] | null
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
    ...others: unknown[],
  ])[]
  readonly heard?: Readonly<Record<string, string>>
}

export const droppedBy = (changes: readonly DroppingChange[]): readonly Dropped[] =>
  changes.flatMap(({ kind, instances, scope, heard, at }) => {
    if (kind !== 'updated') return []
    const gone = instances.flatMap(([name, dataset, instance]) => {
      const key = timesKey(name, dataset)
      return instance === null ? [{ key, name, dataset, at, heard: heard?.[key] }] : []
    })
    return scope === null ? [...gone, droppedScope(at, undefined)] : gone
  })

/** Scopes do not tell by themselves through whom they came. */
const droppedScope = (at: number, heard: string | undefined): Dropped => ({
  ...{ key: 'scope', name: 'scope', dataset: '', at, heard },
})

export function droppedWith({ doc, at, heard }: TombstoneRow): readonly Dropped[] {
  const was = JSON.parse(doc) as Entity
  const gone = attributeNames(was).flatMap((name) =>
    instancesOf(was, name).map(({ datasetId: dataset = '' }) => {
      const key = timesKey(name, dataset)
      return { key, name, dataset, at, heard: heard ?? undefined }
    }),
  )
  return was.scope === undefined ? gone : [...gone, droppedScope(at, heard ?? undefined)]
}
