/**
 * Divides a client's history write (GS CIM 009, 5.6.11 and 5.6.12). Its newest instances become current
 * values if they are newer than the entity's own. All others are added to its past. Pure.
 */

import type { DocumentDraft } from '#broker/state/document-drafts.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Fragment } from '#ngsi-ld/entity/entity.ts'
import { findInstance } from '#ngsi-ld/entity/entity-draft.ts'
import { isEnded } from '#ngsi-ld/history/past-deletion.ts'
import type { TemporalFragment } from '#ngsi-ld/history/temporal-entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isSame } from './known-past.ts'

/** A fragment without the instances that become current values, by attribute name. */
export function without(
  fragment: TemporalFragment,
  current: (name: string) => readonly AttributeInstance[],
): TemporalFragment {
  const attributes = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of fragment.attributes) {
    const ofDataset = new Map(current(name).map((one) => [one.datasetId, one]))
    attributes.set(
      name,
      instances.filter((one) => !isSame(one, ofDataset.get(one.datasetId))),
    )
  }
  return { ...fragment, attributes }
}

export function byDataset(instances: readonly AttributeInstance[]): Map<string, AttributeInstance[]> {
  return Map.groupBy(instances, ({ datasetId }) => datasetId ?? '')
}

/**
 * The members of a fragment that change the entity, with its newest instances unless the entity has newer
 * ones. An instance that the history already contains changes no current value. It adds an attribute that the
 * entity lacks, unless the fragment only repeats history.
 */
export function newerThan(
  { entity }: DocumentDraft,
  given: TemporalFragment,
  unknown: TemporalFragment,
): Fragment {
  const { types, scope, expiresAt, attributes, deletions = [], isReplay = false } = given
  const members: Record<string, Attribute> = {}
  for (const [name, instances] of attributes) {
    const left = new Set(unknown.attributes.get(name))
    const newer = [...byDataset(instances)].flatMap(([dataset, ofDataset]) => {
      const newest = ofDataset.findLast((one) => !isEnded(deletions, name, one))
      if (newest === undefined) return []
      const current = findInstance(entity, name, dataset === '' ? undefined : dataset)
      const mayAdd = left.has(newest) || (current === undefined && !isReplay)
      return mayAdd && isNewer(newest, current) ? [newest] : []
    })
    if (newer.length > 0) members[name] = newer.length === 1 ? newer[0]! : newer
  }
  return {
    ...(types === undefined ? {} : { type: types }),
    ...(scope === undefined ? {} : { scope }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...members,
  }
}

function isNewer(given: AttributeInstance, current: AttributeInstance | undefined): boolean {
  if (current === undefined) return true
  const [givenAt, currentAt] = [given, current].map((one) => dateTimeToMs(one.observedAt ?? ''))
  if (givenAt === undefined) return currentAt === undefined
  return currentAt === undefined || givenAt >= currentAt
}
