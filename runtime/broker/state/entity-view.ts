/**
 * Reading an entity: the stored document overlaid with newer observed values. The work is lazy: without newer
 * values the stored text is returned unchanged, and newer values are patched into the text where possible.
 */

import type { Json } from '#contract/pipeline.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type StoredTimes, storedTimes } from '#store/entities/attribute-times.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import { patchText } from './document-patch.ts'
import type { EntityView } from './stored-entity.ts'
import type { LiveEntity, LiveStream } from './unwritten.ts'

/** The times of a value written now, with its Via chain if it has one. */
export const timesNow = (created: number, modified: number, via: string | undefined): StoredTimes[string] =>
  via === undefined ? [created, modified] : [created, modified, via]

export const timesKey = (name: string, dataset: string): string =>
  dataset === '' ? name : `${name} ${dataset}`

export function createView(row: EntityRow, live: LiveEntity | undefined, mayExpire = true): EntityView {
  const newer = live?.dirtySince === undefined ? [] : live.streams.filter((stream) => stream.number > row.n)
  return {
    id: row.id,
    text: () => patchedText(row.doc, newer) ?? JSON.stringify(overlay(JSON.parse(row.doc) as Entity, newer)),
    entity: () => overlay(JSON.parse(row.doc) as Entity, newer),
    times: () => timesOf(row, newer),
    version: () => newer.reduce((version, { number }) => Math.max(version, number), row.n),
    mayExpire,
  }
}

/** The text with published values; undefined if patching requires parsing. */
function patchedText(doc: string, streams: readonly LiveStream[]): string | undefined {
  let text: string | undefined = doc
  for (const stream of streams) text = text === undefined ? undefined : patchText(text, stream)
  return text
}

/** Overlays published values on a freshly parsed document, which is changed and returned. */
export function overlay(entity: Entity, streams: readonly LiveStream[]): Entity {
  for (const stream of streams) overlayValue(entity, stream, stream.time, stream.value)
  return entity
}

/**
 * Sets value and observedAt of one stream's instance, and the attribute rendered from it, in a freshly parsed
 * document.
 */
export function overlayValue(
  entity: Entity,
  stream: Pick<LiveStream, 'name' | 'dataset' | 'mirror'>,
  time: number,
  value: Json,
): void {
  const target = entity as Record<string, Attribute>
  const attribute = target[stream.name]
  if (attribute === undefined) return
  const observedAt = msToDateTime(time)
  const overlaid = (instance: AttributeInstance): AttributeInstance =>
    (instance.datasetId ?? '') === stream.dataset ? { ...instance, value, observedAt } : instance
  target[stream.name] = Array.isArray(attribute)
    ? (attribute as AttributeInstance[]).map(overlaid)
    : overlaid(attribute as AttributeInstance)
  const mirror = stream.mirror === undefined ? undefined : target[stream.mirror]
  if (mirror === undefined || Array.isArray(mirror)) return
  target[stream.mirror!] = { ...(mirror as AttributeInstance), value: observedAt }
}

/**
 * Sets the modification time and Via chain of a stream, and of the attribute rendered from it, in an entity's
 * times.
 */
export function overlayTimes(
  times: StoredTimes,
  stream: Pick<LiveStream, 'name' | 'dataset' | 'mirror'>,
  { modified, via }: { readonly modified: number; readonly via: string | undefined },
): void {
  const key = timesKey(stream.name, stream.dataset)
  times[key] = timesNow(times[key]?.[0] ?? modified, modified, via)
  const mirror = stream.mirror === undefined ? undefined : times[stream.mirror]
  if (mirror !== undefined) times[stream.mirror!] = timesNow(mirror[0], modified, via)
}

function timesOf(row: EntityRow, newer: readonly LiveStream[]): SystemTimes {
  const attributes = storedTimes(row)
  let modified = row.modified
  for (const stream of newer) {
    overlayTimes(attributes, stream, stream)
    modified = Math.max(modified, stream.modified)
  }
  return { created: row.created, modified, attributes }
}
