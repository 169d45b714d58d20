/**
 * Translates a query body (GS CIM 009, 5.2.23) into the equivalent URL parameters, so that both forms share
 * one path. Only its entity selectors have no parameter.
 */
import type { Json } from '#contract'
import { type EntitySelector, parseEntitySelector } from '#ngsi-ld/query/entity-selector.ts'
import type { Parameters } from '#ngsi-ld/query/url-parameters.ts'
import { isList, isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Members that are lists of strings, or one string in the form of the parameter. */
const lists: ReadonlySet<string> = new Set([
  'attrs',
  'pick',
  'omit',
  'datasetId',
  'containedBy',
  'expandValues',
  'jsonKeys',
  'orderBy',
])
const texts: ReadonlySet<string> = new Set([
  'q',
  'scopeQ',
  'csf',
  'lang',
  'join',
  'geometryProperty',
  'orderGeometry',
  'collation',
  'entityMapLifetime',
])
const truths: ReadonlySet<string> = new Set(['entityMap', 'splitEntities'])
const geoMembers: ReadonlySet<string> = new Set(['georel', 'geometry', 'coordinates', 'geoproperty'])

/** Members of an ordering, with the equivalent parameters. */
const orderingMembers: ReadonlyMap<string, string> = new Map([
  ['orderBy', 'orderBy'],
  ['coordinates', 'orderFrom'],
  ['geometry', 'orderGeometry'],
  ['collation', 'collation'],
])

export interface QueryBody {
  readonly parameters: Parameters
  readonly entities: readonly EntitySelector[] | undefined
}

/** Members of temporalQ and aggrParams, allowed only in temporal queries. */
const temporalMembers: ReadonlySet<string> = new Set([
  'timerel',
  'timeAt',
  'endTimeAt',
  'timeproperty',
  'lastN',
  'aggrMethods',
  'aggrPeriodDuration',
])

/**
 * @param options.temporal whether the query is temporal.
 *
 * @throws ngsi-ld.bad-request-data naming the invalid member.
 */
export function readQueryBody(
  body: Json,
  expand: (term: string) => string,
  options: { readonly temporal?: boolean } = {},
): QueryBody {
  if (!isObject(body)) throw badRequestData('must be an object of type Query', 'body')
  if (body['type'] !== 'Query' && body['@type'] !== 'Query') throw badRequestData('must be Query', 'type')
  const parameters = new Map<string, string>()
  let entities: readonly EntitySelector[] | undefined
  for (const [member, value] of Object.entries(body)) {
    if (member === 'type' || member === '@type' || member === '@context') continue
    if (member === 'entities') entities = readSelectors(value, expand)
    else if (member === 'geoQ') readGeo(value, parameters)
    else if (member === 'ordering') readOrdering(value, parameters)
    else if (options.temporal === true && (member === 'temporalQ' || member === 'aggrParams'))
      readTemporal(value, member, parameters)
    else parameters.set(member, readMember(member, value))
  }
  return { parameters, entities }
}

function readMember(member: string, value: Json): string {
  if (truths.has(member)) {
    if (typeof value === 'boolean') return String(value)
    throw badRequestData('must be true or false', member)
  }
  if (member === 'joinLevel' && typeof value === 'number') return String(value)
  if (member === 'orderFrom' && isList(value)) return JSON.stringify(value)
  const isText = texts.has(member) || lists.has(member) || member === 'joinLevel' || member === 'orderFrom'
  if (!isText) throw badRequestData('is not a member of a Query', member)
  if (typeof value === 'string') return value
  if (
    lists.has(member) &&
    isList(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'string')
  )
    return value.join()
  throw badRequestData(lists.has(member) ? 'must be a list of strings' : 'must be a string', member)
}

function readSelectors(value: Json, expand: (term: string) => string): readonly EntitySelector[] {
  if (!isList(value) || value.length === 0)
    throw badRequestData('must be a list of entity selectors', 'entities')
  return value.map((item, index) => parseEntitySelector(item, expand, `entities[${index}]`))
}

function readTemporal(value: Json, field: string, parameters: Map<string, string>): void {
  if (!isObject(value)) throw badRequestData('must be an object', field)
  if (field === 'aggrParams' && value['aggrMethods'] === undefined)
    throw badRequestData('is missing', 'aggrParams.aggrMethods')
  for (const [member, part] of Object.entries(value satisfies JsonObject)) {
    if (!temporalMembers.has(member))
      throw badRequestData('is not a member of a temporal query', `${field}.${member}`)
    const isText = typeof part === 'string' || (member === 'lastN' && typeof part === 'number')
    if (isText) parameters.set(member, String(part))
    else if (member === 'aggrMethods' && isList(part) && part.every((item) => typeof item === 'string'))
      parameters.set(member, part.join())
    else throw badRequestData('must be a string', `${field}.${member}`)
  }
}

/** OrderingParams (5.2.43): the ordering parameters under other names. */
function readOrdering(value: Json, parameters: Map<string, string>): void {
  if (!isObject(value)) throw badRequestData('must be an object', 'ordering')
  if (value['orderBy'] === undefined) throw badRequestData('is missing', 'ordering.orderBy')
  for (const [member, part] of Object.entries(value satisfies JsonObject)) {
    const parameter = orderingMembers.get(member)
    if (parameter === undefined) throw badRequestData('is not a member of an ordering', `ordering.${member}`)
    parameters.set(parameter, readMember(parameter, part))
  }
}

function readGeo(value: Json, parameters: Map<string, string>): void {
  if (!isObject(value)) throw badRequestData('must be an object', 'geoQ')
  if (value['georel'] === undefined) throw badRequestData('is missing', 'geoQ.georel')
  for (const [member, part] of Object.entries(value satisfies JsonObject)) {
    if (!geoMembers.has(member)) throw badRequestData('is not a member of a geo-query', `geoQ.${member}`)
    if (member === 'coordinates' && isList(part)) parameters.set(member, JSON.stringify(part))
    else if (typeof part === 'string') parameters.set(member, part)
    else throw badRequestData('must be a string', `geoQ.${member}`)
  }
}
