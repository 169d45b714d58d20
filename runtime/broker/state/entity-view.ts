/**
 * Reading an entity: the stored document with newer observed values laid over it. What nobody asks for is not
 * computed: where nothing is newer the stored text goes out untouched, and what is newer is laid into it where it can be.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type StoredTimes, storedTimes } from '#store/entities/attribute-times.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import { layText } from './document-patch.ts'
import type { EntityView, SystemTimes } from './stored-entity.ts'
import type { LiveEntity, LiveStream } from './unwritten.ts'

/** The times of something written now, through other brokers or not. */
export const timesNow = (
  created: number,
  modified: number,
  heard: string | undefined,
): StoredTimes[string] => (heard === undefined ? [created, modified] : [created, modified, heard])

export const timesKey = (name: string, dataset: string): string =>
  dataset === '' ? name : `${name} ${dataset}`

export function createView(row: EntityRow, live: LiveEntity | undefined, mayExpire = true): EntityView {
  const newer = live?.dirtySince === undefined ? [] : live.streams.filter((stream) => stream.number > row.n)
  return {
    id: row.id,
    text: () => laidText(row.doc, newer) ?? JSON.stringify(overlay(JSON.parse(row.doc) as Entity, newer)),
    entity: () => overlay(JSON.parse(row.doc) as Entity, newer),
    times: () => timesOf(row, newer),
    version: () => newer.reduce((version, { number }) => Math.max(version, number), row.n),
    mayExpire,
  }
}

/** The text with published values; undefined where they can be laid only over what it says. */
function laidText(doc: string, streams: readonly LiveStream[]): string | undefined {
  let text: string | undefined = doc
  for (const stream of streams) text = text === undefined ? undefined : layText(text, stream)
  return text
}

/** Lays published values over a freshly parsed document (which it changes and returns). */
export function overlay(entity: Entity, streams: readonly LiveStream[]): Entity {
  for (const stream of streams) layValue(entity, stream, stream.time, stream.value)
  return entity
}

/** Sets the value and observedAt of one stream's instance, and the attribute rendered from it, in a fresh document. */
export function layValue(
  entity: Entity,
  stream: Pick<LiveStream, 'name' | 'dataset' | 'mirror'>,
  time: number,
  value: Json,
): void {
  const target = entity as Record<string, Attribute>
  const attribute = target[stream.name]
  if (attribute === undefined) return
  const observedAt = msToDateTime(time)
  const laid = (instance: AttributeInstance): AttributeInstance =>
    (instance.datasetId ?? '') === stream.dataset ? { ...instance, value, observedAt } : instance
  target[stream.name] = Array.isArray(attribute)
    ? (attribute as AttributeInstance[]).map(laid)
    : laid(attribute as AttributeInstance)
  const mirror = stream.mirror === undefined ? undefined : target[stream.mirror]
  if (mirror === undefined || Array.isArray(mirror)) return
  target[stream.mirror!] = { ...(mirror as AttributeInstance), value: observedAt }
}

/** Notes in an entity's attribute times when and through whom a stream, and the attribute rendered from it, changed. */
export function layTimes(
  times: StoredTimes,
  stream: Pick<LiveStream, 'name' | 'dataset' | 'mirror'>,
  { modified, heard }: { readonly modified: number; readonly heard: string | undefined },
): void {
  const key = timesKey(stream.name, stream.dataset)
  times[key] = timesNow(times[key]?.[0] ?? modified, modified, heard)
  const mirror = stream.mirror === undefined ? undefined : times[stream.mirror]
  if (mirror !== undefined) times[stream.mirror!] = timesNow(mirror[0], modified, heard)
}

function timesOf(row: EntityRow, newer: readonly LiveStream[]): SystemTimes {
  const attributes = storedTimes(row)
  let modified = row.modified
  for (const stream of newer) {
    layTimes(attributes, stream, stream)
    modified = Math.max(modified, stream.modified)
  }
  return { created: row.created, modified, attributes }
}
