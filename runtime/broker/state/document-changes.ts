/**
 * Computes the times of an entity and its attribute instances after a change, and what its record contains
 * about deleted instances. Pure.
 */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { AttributeChange } from '#ngsi-ld/entity/entity-draft.ts'
import type { WrittenTimes } from '#ngsi-ld/federation/uplink-statements.ts'
import { viaFrom } from '#ngsi-ld/federation/via.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { StoredTimes } from '#store/entities/attribute-times.ts'
import type { Collisions } from './collisions.ts'
import { timesKey, timesNow } from './entity-view.ts'

/** The scopes after a change; null if it removed them, undefined if it did not touch them. */
export function scopeChange(before: Entity['scope'], after: Entity['scope']): Entity['scope'] | null {
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined
  return after ?? null
}

/** Whether these are the same types, in any order. */
export const isSameTypes = (before: Entity['type'], after: Entity['type']): boolean =>
  before === after || new Set(listOf(before)).symmetricDifference(new Set(listOf(after))).size === 0

/** The Via chains of deleted instances, by `name` or `name datasetId`; '' is the entity. */
export function viaOfDeleted(
  times: StoredTimes,
  changes: readonly AttributeChange[],
): Readonly<Record<string, string>> | undefined {
  const deleted = changes.filter(({ after }) => after === undefined)
  if (deleted.length === 0) return undefined
  const keys = ['', ...deleted.map(({ name, datasetId }) => timesKey(name, datasetId ?? ''))]
  const marks = keys.flatMap((key) => (times[key]?.[2] === undefined ? [] : [[key, times[key][2]] as const]))
  return marks.length === 0 ? undefined : Object.fromEntries(marks)
}

/** Adds to changes the times (ms) at which their instances were first written, as far as they are given. */
export const writtenAt = (
  changes: readonly AttributeChange[],
  written: WrittenTimes | undefined,
): readonly AttributeChange[] =>
  written === undefined || written.size === 0
    ? changes
    : changes.map((one) => ({ ...one, at: written.get(timesKey(one.name, one.datasetId ?? '')) }))

/** Records a possible collision for each instance that this origin replaces. */
export const originsNoted =
  (collisions: Pick<Collisions, 'note'>) =>
  (
    { rid, times }: { readonly rid: number; readonly times: StoredTimes },
    changes: readonly AttributeChange[],
    by: string,
  ): void => {
    const via = viaFrom(by)
    if (via === undefined) return
    for (const { name, datasetId, after } of changes)
      if (after !== undefined) collisions.note(rid, times[timesKey(name, datasetId ?? '')]?.[2], via)
  }

export function timesAfter(
  times: StoredTimes,
  changes: readonly AttributeChange[],
  { at, via }: { readonly at: number; readonly via: string | undefined },
): StoredTimes {
  const next = { ...times }
  for (const { name, datasetId, after } of changes) {
    const key = timesKey(name, datasetId ?? '')
    if (after === undefined) delete next[key]
    else next[key] = timesNow(next[key]?.[0] ?? at, at, via)
  }
  return next
}
