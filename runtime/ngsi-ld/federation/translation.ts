/**
 * Requests about entities said anew for a reader with another @context [NGSI-LD 4.3.6.6]: names of types and
 * attributes, and the values of VocabProperties, go from one context to the other, wherever they stand. All else
 * stays as it is, well-formed or not: whoever gets the request judges it.
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
  /** Values are bare, so that nothing within them is a name. */
  readonly simplified?: boolean
}

const bare = ({ from, to }: Translation, name: string): string => to.compact(from.expand(name))

/** A name, a list of names, or what is neither. */
function named(value: Json, translation: Translation): Json {
  if (typeof value === 'string') return bare(translation, value)
  return isList(value) ? value.map((item) => named(item, translation)) : value
}

/** Members of an entity that are no attributes; its types are translated beside. */
const entityMembers: ReadonlySet<string> = new Set([
  'id',
  '@id',
  'scope',
  'createdAt',
  'modifiedAt',
  'deletedAt',
  'expiresAt',
])

/** An entity or a fragment of one; its @context goes, because it is no longer that of its names. */
function translateEntity(entity: JsonObject, translation: Translation): JsonObject {
  const members = Object.entries(entity).flatMap(([name, value]): [string, Json][] => {
    if (name === '@context') return []
    if (entityMembers.has(name)) return [[name, value]]
    if (name === 'type' || name === '@type') return [[name, named(value, translation)]]
    return [[bare(translation, name), translateAttribute(value, translation)]]
  })
  return Object.fromEntries(members)
}

/** Members with names for their values. */
const namingMembers: ReadonlySet<string> = new Set(['vocab', 'objectType', 'valueType', 'entityTypeSealed'])
const systemMembers: ReadonlySet<string> = new Set([
  'type',
  '@type',
  'instanceId',
  'createdAt',
  'modifiedAt',
  'deletedAt',
])

/** An attribute in whatever representation: its instances, or a bare value. */
function translateAttribute(attribute: Json, translation: Translation): Json {
  if (isList(attribute)) return attribute.map((one) => translateAttribute(one, translation))
  if (!isObject(attribute) || isGeometry(attribute)) return attribute
  if (translation.simplified === true && !Object.hasOwn(attribute, 'vocab')) return attribute
  const isInstance =
    Object.hasOwn(attribute, 'type') || Object.keys(attribute).some((name) => kindsByMember.has(name))
  if (!isInstance) return attribute
  const members = Object.entries(attribute).flatMap(([name, value]): [string, Json][] => {
    if (name === '@context') return []
    if (namingMembers.has(name)) return [[name, named(value, translation)]]
    if (kindsByMember.has(name) || plainMembers.has(name) || systemMembers.has(name)) return [[name, value]]
    return [[bare(translation, name), translateAttribute(value, translation)]]
  })
  return Object.fromEntries(members)
}

/** A Query in a body [5.2.23]. */
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
          geoproperty === undefined ? value : { ...value, geoproperty: named(geoproperty, translation) },
        ],
      ]
    }
    return [[name, said(name, value, translation)]]
  })
  return Object.fromEntries(members)
}

/** A subscription as it is passed on: its filters are those of a query. */
function translateSubscription(
  { notification, watchedAttributes, type, ...filters }: JsonObject,
  translation: Translation,
): JsonObject {
  const attributes = isObject(notification) ? notification['attributes'] : undefined
  return {
    ...(type === undefined ? {} : { type }),
    ...translateQuery(filters, translation),
    ...(watchedAttributes === undefined ? {} : { watchedAttributes: named(watchedAttributes, translation) }),
    ...(isObject(notification)
      ? {
          notification: {
            ...notification,
            ...(attributes === undefined ? {} : { attributes: named(attributes, translation) }),
          },
        }
      : {}),
  }
}

function selector(one: JsonObject, translation: Translation): JsonObject {
  const { type } = one
  return type === undefined ? one : { ...one, type: said('type', type, translation) }
}

/** Parameters that are lists of names, with those of linked entities in braces. */
const listing: ReadonlySet<string> = new Set([
  ...['attrs', 'pick', 'omit', 'keep', 'drop', 'expandValues', 'jsonKeys'],
  ...['geoproperty', 'geometryProperty'],
])

/** A parameter, or a member of a Query that means the same. */
function said(name: string, value: Json, translation: Translation): Json {
  if (isList(value)) return value.map((item) => said(name, item, translation))
  if (typeof value !== 'string') return value
  const { expand } = translation.from
  const { compact } = translation.to
  if (name === 'type') return printTypeSelection(parseTypeSelection(value, expand), compact)
  if (name === 'q') return printQuery(parseQuery(value, expand), compact)
  if (listing.has(name)) return value.replaceAll(/[^,|{}\s]+/g, (term) => compact(expand(term)))
  return value
}

/** A path from /ngsi-ld/v1 on with its query: what it names, and its parameters. */
export function translatePath(path: string, translation: Translation): string {
  const [place, before] = partsOf(path)
  const segments = place.split('/')
  const translated = segments.map((segment, index) => {
    const isName = index > 0 && segment !== '' && namingSegments.has(segments[index - 1]!)
    return isName ? encodeURIComponent(bare(translation, decodeURIComponent(segment))) : segment
  })
  if (before === '') return translated.join('/')
  const pairs = [...new URLSearchParams(before)].map(
    ([name, value]) => `${name}=${encodeURIComponent(said(name, value, translation) as string)}`,
  )
  return `${translated.join('/')}?${pairs.join('&')}`
}

/** What follows these in a path is a name. */
const namingSegments: ReadonlySet<string> = new Set(['attrs', 'types', 'attributes'])

/** The body of a request, by what its path is about; a list has a context of its own for each item. */
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
