/**
 * Derives additional facts about entities: last-seen time, places of related entities, and the update
 * interval of their sensors. They are shown as one member with a reserved name, only to clients that request
 * it by header. An entity without such facts has no such member. Entities are identified by id, whichever
 * broker sent them.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Json } from '#contract'
import type { Format } from '#ngsi-ld/representation/representation.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { NodeNumbers } from './conditions.ts'
import { paths } from './entity-kinds.ts'
import type { Seen } from './seen.ts'
import type { QueryStatements } from './statements.ts'

/** Request header that enables derived facts with the value `true`. */
const derivedHeader = 'Selvedge-Index-Derived'
/** @throws ngsi-ld.bad-request-data */
export function isDerivedWanted(headers: Pick<Headers, 'get'>): boolean {
  const wanted = headers.get(derivedHeader) ?? 'false'
  if (wanted !== 'true' && wanted !== 'false') throw badRequestData('is true or false', derivedHeader)
  return wanted === 'true'
}

/** Name of the member. */
export const derivedName = 'urn:selvedge:ns:derived'

/** Derived facts as shown to clients. */
export interface Derived {
  /** DateTime. */
  readonly lastSeen?: string
  /** The attribute qoi:updateinterval of the entity or of its sensor, normalized. */
  readonly updateInterval?: Json
  /** GeoJSON geometries. */
  readonly places?: readonly Json[]
}

export interface DeducingPorts extends Omit<NodeNumbers, 'isValued'> {
  readonly sql: QueryStatements
  readonly seen: Seen
}

/** @param ids at most `limits.indexQuerySlice`; unknown ids are omitted. */
export function deduce({ sql, seen, nodeOf, nameOf }: DeducingPorts, ids: readonly string[]) {
  const numbers = new Map<number, Noted>(ids.flatMap((id) => nodeOf(id) ?? []).map((n) => [n, {}]))
  const slice = JSON.stringify([...numbers.keys()])
  const note = (n: number, at: number): void => {
    const known = numbers.get(n)!
    known.seen = Math.max(known.seen ?? at, at)
  }
  for (const [n, observation, at] of sql.observations(slice)) note(n, seen.of(observation) ?? at)
  for (const [n, at] of sql.seen.all(slice) as [number, number][]) note(n, seen.of(n) ?? at)
  for (const [n, geometry] of sql.geometries.all(slice) as [number, string][]) {
    const known = numbers.get(n)!
    known.places = [...(known.places ?? []), JSON.parse(geometry) as Json]
  }
  const [generatedBy, madeBySensor, belongsTo] = [paths.generatedBy, paths.madeBySensor, paths.belongsTo].map(
    (name) => nameOf(name) ?? 0,
  )
  const hops = [slice, slice, generatedBy, madeBySensor, slice, belongsTo, generatedBy]
  for (const [n, interval] of sql.intervals.all(...hops) as [number, string | null][])
    if (interval !== null) numbers.get(n)!.interval ??= JSON.parse(interval) as Json
  return new Map(
    ids.flatMap((id) => {
      const known = numbers.get(nodeOf(id) ?? 0)
      return known === undefined || Object.keys(known).length === 0 ? [] : [[id, shownOf(known)] as const]
    }),
  )
}

interface Noted {
  /** ms. */
  seen?: number
  interval?: Json
  places?: readonly Json[]
}

const shownOf = ({ seen, interval, places }: Noted): Derived => ({
  ...(seen !== undefined && { lastSeen: msToDateTime(seen) }),
  ...(interval !== undefined && { updateInterval: interval }),
  ...(places !== undefined && { places }),
})

/**
 * Adds the member to the items of an answer.
 * @param ids ids of the items, in the same order.
 */
export async function withDerived(
  items: readonly JsonObject[],
  ids: readonly unknown[],
  { deduce, format }: { deduce: (ids: readonly string[]) => ReadonlyMap<string, Derived>; format: Format },
): Promise<JsonObject[]> {
  const all: JsonObject[] = []
  const step = limits.indexQuerySlice.value
  for (let at = 0; at < items.length; at += step) {
    const slice = ids.slice(at, at + step)
    const derived = deduce(slice.filter((id) => typeof id === 'string'))
    for (const [i, item] of items.slice(at, at + step).entries())
      all.push(decorated(item, derived.get(slice[i] as string), format))
    await nextTurn()
  }
  return all
}

/** Adds the member to the text of a broker's answer; returns a text without entities unchanged. */
export async function textWithDerived(text: string, how: Parameters<typeof withDerived>[2]): Promise<string> {
  const body = parsedJson(text)
  const features = isObject(body) && body['type'] === 'FeatureCollection' ? body['features'] : undefined
  const isOne = isObject(body) && features === undefined
  const items = features ?? (isOne ? [body] : body)
  if (!isList(items) || !items.every(isObject)) return text
  const shown = await withDerived(
    items,
    items.map(({ id }) => id),
    how,
  )
  if (isOne) return JSON.stringify(shown[0])
  return JSON.stringify(features === undefined ? shown : { ...(body as JsonObject), features: shown })
}

/** The entity or feature with the member. */
function decorated(item: JsonObject, derived: Derived | undefined, format: Format): JsonObject {
  if (derived === undefined) return item
  const value = derived as JsonObject
  const member = { simplified: value, concise: { value }, normalized: { type: 'Property', value } }[format]
  const properties = own(item, 'properties')
  return item['type'] === 'Feature' && isObject(properties)
    ? { ...item, properties: { ...properties, [derivedName]: member } }
    : { ...item, [derivedName]: member }
}
