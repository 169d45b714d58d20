/**
 * Converts request bodies to an earlier version of the standard [NGSI-LD 4.3.6.8]: applies conformance.ts to
 * entities and fragments as they are sent, with names in any @context.
 */
import type { Json } from '#contract/pipeline.ts'
import { inferKind } from '#ngsi-ld/entity/attribute-kind.ts'
import { isList, isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { type Amendment, createAmendment } from './conformance.ts'

const own: ReadonlySet<string> = new Set([
  ...['id', '@id', '@context', 'createdAt', 'modifiedAt', 'deletedAt'],
])
/** Scopes were added in 1.4, several types and instances in 1.3. */
const scopesSince = 4
const severalSince = 3

/** `path` determines the kind of body; a Query and a subscription need no conversion. */
export function amendBody(path: string, body: Json, minor: number): Json {
  const [place = ''] = path.split('?')
  if (/\/(?:query|subscriptions)$/.test(place)) return body
  const amendment = createAmendment(minor)
  if (isList(body)) return body.map((item) => (isObject(item) ? amendEntity(item, amendment, minor) : item))
  if (/\/attrs\/[^/]+$/.test(place)) return amendAttribute(body, amendment, minor)
  return isObject(body) ? amendEntity(body, amendment, minor) : body
}

function amendEntity(entity: JsonObject, amendment: Amendment, minor: number): JsonObject {
  const members = Object.entries(entity).flatMap(([name, value]): [string, Json][] => {
    if (own.has(name)) return [[name, value]]
    if (name === 'type' || name === '@type')
      return [[name, minor < severalSince ? listOf<Json>(value)[0]! : value]]
    if (name === 'scope') return minor < scopesSince ? [] : [[name, value]]
    if (name === 'expiresAt') return []
    return [[name, amendAttribute(value, amendment, minor)]]
  })
  return Object.fromEntries(members)
}

function amendAttribute(attribute: Json, amendment: Amendment, minor: number): Json {
  if (!isList(attribute)) return amendInstance(attribute, amendment)
  const isMultiple = attribute.every(isObject)
  if (!isMultiple || minor >= severalSince) return attribute.map((one) => amendInstance(one, amendment))
  const first = attribute.find((one) => one['datasetId'] === undefined) ?? attribute[0]
  return first === undefined ? attribute : amendInstance(first, amendment)
}

/** Converts one instance after adding its kind; a bare value is unchanged. */
function amendInstance(one: Json, amendment: Amendment): Json {
  if (!isObject(one)) return one
  const type = typeof one['type'] === 'string' ? one['type'] : inferKind(one)?.name
  if (type === undefined) return one
  return amendment.instance({ ...one, type }, (name) => name)
}
