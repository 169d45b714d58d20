/**
 * Adds `join` to queries on linked entities, which other brokers require (CIM 009, 5.7.2.4). The client did
 * not request the linked entities, so they are removed from the response. In simplified form they replace the
 * ids and cannot be removed; such requests stay unchanged.
 */
import type { Json } from '#contract'
import { linkedDepthOf } from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { isList, isObject, type JsonObject } from '#ngsi-ld/values/json.ts'

/** @returns parameters with `join`; undefined if not needed or not possible. */
export function joined(parameters: URLSearchParams): URLSearchParams | undefined {
  const q = parameters.get('q')
  const forms = `${parameters.get('options') ?? ''},${parameters.get('format') ?? ''}`
  if (q === null || parameters.has('join') || /keyValues|simplified/.test(forms)) return undefined
  const depth = linkedDepthOf(parseQuery(q, (name) => name))
  if (depth === 0) return undefined
  const all = new URLSearchParams(parameters)
  all.set('join', 'inline')
  all.set('joinLevel', String(depth))
  return all
}

/** Returns an entity or feature without the entities that were joined to it. */
export const unjoined = (item: JsonObject): JsonObject => without(item) as JsonObject

function without(json: Json): Json {
  if (isList(json)) return json.map(without)
  if (!isObject(json)) return json
  const isLink = 'object' in json || 'objectList' in json
  const members = Object.entries(json)
    .filter(([name]) => !isLink || (name !== 'entity' && name !== 'entityList'))
    // Values are user data and stay unchanged.
    .map(([name, member]) => [name, name === 'value' ? member : without(member)] as const)
  return Object.fromEntries(members)
}
