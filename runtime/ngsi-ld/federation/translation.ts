/**
 * Translates requests about entities to another @context [NGSI-LD 4.3.6.6]: names of types and attributes,
 * and the values of VocabProperties, at any position. Everything else remains unchanged, well-formed or not:
 * the receiver validates it.
 */

import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { kindsByMember, plainMembers } from '#ngsi-ld/entity/attribute-kind.ts'
import { isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { parseTypeSelection, printTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { printQuery } from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { isList, isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'

export interface Translation {
  readonly from: Pick<Context, 'expand'>
  readonly to: Pick<Context, 'compact'>
  /** Values are bare, so that they contain no names. */
  readonly simplified?: boolean
}

const translateName = ({ from, to }: Translation, name: string): string => to.compact(from.expand(name))

/** Translates a name or a list of names; returns any other value unchanged. */
function translateNames(value: Json, translation: Translation): Json {
  if (typeof value === 'string') return translateName(translation, value)
  return isList(value) ? value.map((item) => translateNames(item, translation)) : value
}

/** Members of an entity that are not attributes; types are translated separately. */
const entityMembers: ReadonlySet<string> = new Set([
  'id',
  '@id',
  'scope',
  'createdAt',
  'modifiedAt',
  'deletedAt',
  'expiresAt',
])

/** Translates an entity or a fragment; removes its @context, which no longer matches the names. */
function translateEntity(entity: JsonObject, translation: Translation): JsonObject {
  const members = Object.entries(entity).flatMap(([name, value]): [string, Json][] => {
    if (name === '@context') return []
    if (entityMembers.has(name)) return [[name, value]]
    if (name === 'type' || name === '@type') return [[name, translateNames(value, translation)]]
    return [[translateName(translation, name), translateAttribute(value, translation)]]
  })
  return Object.fromEntries(members)
}

/** Members whose values are names. */
const namingMembers: ReadonlySet<string> = new Set(['vocab', 'objectType', 'valueType', 'entityTypeSealed'])
const systemMembers: ReadonlySet<string> = new Set([
  'type',
  '@type',
  'instanceId',
  'createdAt',
  'modifiedAt',
  'deletedAt',
])

/** Translates an attribute in any representation: its instances, or a bare value. */
function translateAttribute(attribute: Json, translation: Translation): Json {
  if (isList(attribute)) return attribute.map((one) => translateAttribute(one, translation))
  if (!isObject(attribute) || isGeometry(attribute)) return attribute
  if (translation.simplified === true && !Object.hasOwn(attribute, 'vocab')) return attribute
  const isInstance =
    Object.hasOwn(attribute, 'type') || Object.keys(attribute).some((name) => kindsByMember.has(name))
  if (!isInstance) return attribute
  const members = Object.entries(attribute).flatMap(([name, value]): [string, Json][] => {
    if (name === '@context') return []
    if (namingMembers.has(name)) return [[name, translateNames(value, translation)]]
    if (kindsByMember.has(name) || plainMembers.has(name) || systemMembers.has(name)) return [[name, value]]
    return [[translateName(translation, name), translateAttribute(value, translation)]]
  })
  return Object.fromEntries(members)
}

/** Translates a Query in a body [5.2.23]. */
function translateQuery(query: JsonObject, translation: Translation): JsonObject {
  const members = Object.entries(query).flatMap(([name, value]): [string, Json][] => {
    if (name === '@context') return []
    if (name === 'entities')
      return [[name, listOf<Json>(value).map((one) => (isObject(one) ? selector(one, translation) : one))]]
    if (name === 'geoQ' && isObject(value)) {
      const { geoproperty } = value
      return [
        [
          name,
          geoproperty === undefined
            ? value
            : { ...value, geoproperty: translateNames(geoproperty, translation) },
        ],
      ]
    }
    return [[name, translateValue(name, value, translation)]]
  })
  return Object.fromEntries(members)
}

/** Translates a forwarded subscription; its filters are those of a query. */
function translateSubscription(
  { notification, watchedAttributes, type, ...filters }: JsonObject,
  translation: Translation,
): JsonObject {
  const attributes = isObject(notification) ? notification['attributes'] : undefined
  return {
    ...(type === undefined ? {} : { type }),
    ...translateQuery(filters, translation),
    ...(watchedAttributes === undefined
      ? {}
      : { watchedAttributes: translateNames(watchedAttributes, translation) }),
    ...(isObject(notification)
      ? {
          notification: {
            ...notification,
            ...(attributes === undefined ? {} : { attributes: translateNames(attributes, translation) }),
          },
        }
      : {}),
  }
}

function selector(one: JsonObject, translation: Translation): JsonObject {
  const { type } = one
  return type === undefined ? one : { ...one, type: translateValue('type', type, translation) }
}

/** Parameters that are lists of names, with those of linked entities in braces. */
const listing: ReadonlySet<string> = new Set([
  ...['attrs', 'pick', 'omit', 'keep', 'drop', 'expandValues', 'jsonKeys'],
  ...['geoproperty', 'geometryProperty'],
])

/** Translates a parameter, or the equivalent member of a Query. */
function translateValue(name: string, value: Json, translation: Translation): Json {
  if (isList(value)) return value.map((item) => translateValue(name, item, translation))
  if (typeof value !== 'string') return value
  const { expand } = translation.from
  const { compact } = translation.to
  if (name === 'type') return printTypeSelection(parseTypeSelection(value, expand), compact)
  if (name === 'q') return printQuery(parseQuery(value, expand), compact)
  if (listing.has(name)) return value.replaceAll(/[^,|{}\s]+/g, (term) => compact(expand(term)))
  return value
}

/** Translates a path starting at /ngsi-ld/v1, with its query: the names in it, and its parameters. */
export function translatePath(path: string, translation: Translation): string {
  const [place, before] = partsOf(path)
  const segments = place.split('/')
  const translated = segments.map((segment, index) => {
    const isName = index > 0 && segment !== '' && namingSegments.has(segments[index - 1]!)
    return isName ? encodeURIComponent(translateName(translation, decodeURIComponent(segment))) : segment
  })
  if (before === '') return translated.join('/')
  const pairs = [...new URLSearchParams(before)].map(
    ([name, value]) => `${name}=${encodeURIComponent(translateValue(name, value, translation) as string)}`,
  )
  return `${translated.join('/')}?${pairs.join('&')}`
}

/** In a path, the segment after one of these is a name. */
const namingSegments: ReadonlySet<string> = new Set(['attrs', 'types', 'attributes'])

/** Translates the body of a request, depending on its path; each item of a list has its own context. */
export function translateBody(path: string, body: Json, given: readonly Translation[]): Json {
  const [place, parameters] = partsOf(path)
  const simplified = /(?:^|&)(?:options|format)=[^&]*(?:keyValues|simplified)/.test(parameters)
  const translations = given.map((translation) => ({ ...translation, simplified }))
  const first = translations[0]!
  if (isList(body)) {
    return body.map((item, index) =>
      isObject(item) ? translateEntity(item, translations[index] ?? first) : item,
    )
  }
  if (/\/attrs\/[^/]+$/.test(place)) return translateAttribute(body, first)
  if (!isObject(body)) return body
  if (place.endsWith('/subscriptions')) return translateSubscription(body, first)
  return place.endsWith('/query') ? translateQuery(body, first) : translateEntity(body, first)
}
