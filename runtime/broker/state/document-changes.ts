/**
 * What a change makes of the times of an entity and its attribute instances, and what its record says of what is gone.
 * Pure.
 */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { AttributeChange } from '#ngsi-ld/entity/entity-draft.ts'
import type { WrittenTimes } from '#ngsi-ld/federation/uplink-statements.ts'
import { heardFrom } from '#ngsi-ld/federation/via.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { StoredTimes } from '#store/entities/attribute-times.ts'
import type { Collisions } from './collisions.ts'
import { timesKey, timesNow } from './entity-view.ts'

/** The scopes after a change; null when it removed them, undefined when it left them alone. */
export function scopeChange(before: Entity['scope'], after: Entity['scope']): Entity['scope'] | null {
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined
  return after ?? null
}

/** Whether these are the same types, in whatever order. */
export const isSameTypes = (before: Entity['type'], after: Entity['type']): boolean =>
  before === after || new Set(listOf(before)).symmetricDifference(new Set(listOf(after))).size === 0

/** Through whom what is gone had come, by `name` or `name datasetId`; '' is the entity. */
export function heardOfGone(
  times: StoredTimes,
  changes: readonly AttributeChange[],
): Readonly<Record<string, string>> | undefined {
  const gone = changes.filter(({ after }) => after === undefined)
  if (gone.length === 0) return undefined
  const keys = ['', ...gone.map(({ name, datasetId }) => timesKey(name, datasetId ?? ''))]
  const marks = keys.flatMap((key) => (times[key]?.[2] === undefined ? [] : [[key, times[key][2]] as const]))
  return marks.length === 0 ? undefined : Object.fromEntries(marks)
}

/** Changes with the times (ms) at which their instances were written first, where that is stated. */
export const writtenAt = (
  changes: readonly AttributeChange[],
  written: WrittenTimes | undefined,
): readonly AttributeChange[] =>
  written === undefined || written.size === 0
    ? changes
    : changes.map((one) => ({ ...one, at: written.get(timesKey(one.name, one.datasetId ?? '')) }))

/** Notes through whom each instance had come that becomes another one by this hand. */
export const originsNoted =
  (collisions: Pick<Collisions, 'note'>) =>
  (
    { rid, times }: { readonly rid: number; readonly times: StoredTimes },
    changes: readonly AttributeChange[],
    by: string,
  ): void => {
    const heard = heardFrom(by)
    if (heard === undefined) return
    for (const { name, datasetId, after } of changes)
      if (after !== undefined) collisions.note(rid, times[timesKey(name, datasetId ?? '')]?.[2], heard)
  }

export function timesAfter(
  times: StoredTimes,
  changes: readonly AttributeChange[],
  { at, heard }: { readonly at: number; readonly heard: string | undefined },
): StoredTimes {
  const next = { ...times }
  for (const { name, datasetId, after } of changes) {
    const key = timesKey(name, datasetId ?? '')
    if (after === undefined) delete next[key]
    else next[key] = timesNow(next[key]?.[0] ?? at, at, heard)
  }
  return next
}
