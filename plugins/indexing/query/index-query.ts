/**
 * Parses the parameters of a request to the index. Also decides whether brokers must answer instead: regular
 * expressions, names and types that the index lacks, and features of brokers. Names use the platform's
 * context.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { parseTypeSelection, type TypeSelection, typeNamesOf } from '#ngsi-ld/query/entity-selector.ts'
import { type GeoQuery, parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import {
  needsTimes,
  type QueryPath,
  type QueryTree,
  termsOf,
  textMembers,
  timeMembers,
} from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery, type ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import {
  countAsParameter,
  listOf,
  type Paging,
  type Parameters,
  pagingOf,
  truthOf,
} from '#ngsi-ld/query/url-parameters.ts'
import { parseProjection } from '#ngsi-ld/representation/projection.ts'
import type { Format } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { readingBareNames, readingTypes } from '#plugins/indexing/entries/bare-names.ts'
import { followed, kindOf, kinds } from '#plugins/indexing/entries/entity-kinds.ts'
import { matchOf } from './words.ts'

/** When an entity was active or last seen, ms; from <= t < to. */
export interface TimeWindow {
  readonly property: 'active' | 'lastSeen'
  readonly from: number
  readonly to: number
}

export interface IndexCriteria {
  readonly selection: TypeSelection | undefined
  /** Bits of the types in the selection; 0 without a selection. */
  readonly kinds: number
  readonly ids: readonly string[] | undefined
  readonly q: QueryTree | undefined
  readonly scope: ScopeQuery | undefined
  readonly geo: GeoQuery | undefined
  readonly window: TimeWindow | undefined
  /** An FTS5 MATCH expression. */
  readonly words: string | undefined
  /** The entity must have at least one of these attributes. */
  readonly attrs: readonly string[] | undefined
  /** Only entities of this gateway's own broker. */
  readonly isLocal: boolean
}

export interface IndexProjection {
  readonly format: Format
  readonly attrs: ReadonlySet<string> | undefined
  readonly pick: ReadonlySet<string> | undefined
  readonly omit: ReadonlySet<string> | undefined
}

export interface ParsedRequest {
  readonly criteria: IndexCriteria
  readonly shown: IndexProjection
  readonly paging: Paging
  /** Why only brokers can answer; undefined if the index can. */
  readonly forward: string | undefined
}

/** Contents of the index that decide whether it can answer. */
export interface Known {
  /** Whether any indexed entity has had an attribute with this name, or a path of names joined by spaces. */
  isName(name: string): boolean
  /** Whether one of these entities is an observation, stored only with its relationships and times. */
  hasBare(ids: readonly string[]): boolean
}

/** Parameters that the index supports. */
export const own: ReadonlySet<string> = new Set([
  'type',
  'id',
  'q',
  'scopeQ',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
  'timerel',
  'timeAt',
  'endTimeAt',
  'timeproperty',
  'search',
  'attrs',
  'pick',
  'omit',
  'options',
  'format',
  'limit',
  'offset',
  'count',
  'local',
])
/** Further parameters, which only brokers support. */
export const ofBrokers: ReadonlySet<string> = new Set([
  ...['idPattern', 'csf', 'expandValues', 'jsonKeys', 'orderBy', 'orderFrom', 'orderGeometry', 'collation'],
  ...['lang', 'datasetId', 'join', 'joinLevel', 'containedBy', 'geometryProperty'],
])
/** Parameters that no broker supports. */
const foreign = ['search', 'timerel', 'timeAt', 'endTimeAt', 'timeproperty'] as const

const formats: Readonly<Record<string, Format>> = {
  normalized: 'normalized',
  concise: 'concise',
  simplified: 'simplified',
  keyValues: 'simplified',
}

/**
 * @throws ngsi-ld.bad-request-data, ngsi-ld.invalid-request, ngsi-ld.too-many-results
 * @throws ngsi-ld.not-supported if neither the index nor a broker can answer.
 */
export function parseRequest(parameters: Parameters, context: Context, known: Known): ParsedRequest {
  const isKnown = known.isName
  checkKnown(parameters)
  const paging = pagingOf(countAsParameter(parameters))
  const expand = readingBareNames(context, isKnown)
  const criteria = criteriaOf(parameters, context, expand)
  const { shown, needsBroker } = shownOf(parameters, expand)
  const forward = reasonOf(parameters, criteria, known) ?? needsBroker
  if (forward !== undefined) checkForwarded(parameters, criteria, forward)
  // If other parameters need the index, it answers, and a name that it has never seen matches nothing.
  const isAlone = aloneIn(parameters, criteria) !== undefined
  const unknown = criteria.q === undefined || isAlone ? undefined : unknownIn(criteria.q, isKnown)
  return { criteria, shown, paging, forward: forward ?? unknown }
}

/**
 * Rejects parts of a query that a broker would not know or would answer incompletely, since it lacks
 * inherited places.
 * @param reason why brokers must answer.
 * @throws ngsi-ld.not-supported
 */
export function checkForwarded(parameters: Parameters, criteria: IndexCriteria, reason: string): void {
  const unsaid = aloneIn(parameters, criteria)
  if (unsaid === undefined) return
  throw new GatewayError(
    'ngsi-ld.not-supported',
    `only the index can evaluate ${unsaid}, but it cannot evaluate the rest: ${reason}`,
  )
}

/** The part of a request that only the index can answer. */
const aloneIn = (parameters: Parameters, criteria: IndexCriteria): string | undefined =>
  foreign.find((name) => parameters.has(name)) ?? placeAlone(criteria)

/** Streams and sensors inherit places from related entities, which only the index knows. */
function placeAlone({ geo, selection, kinds: bits }: IndexCriteria): string | undefined {
  if (geo === undefined || geo.property !== 'location') return undefined
  const isAnything = selection === undefined || selection.kind === 'any'
  const isMoved = isAnything || (bits & (kinds.stream | kinds.sensor)) !== 0
  return isMoved ? 'georel for streams and sensors' : undefined
}

/** @throws ngsi-ld.invalid-request for a parameter that neither the index nor a broker supports. */
function checkKnown(parameters: Parameters): void {
  const unknown = [...parameters.keys()].find((name) => !own.has(name) && !ofBrokers.has(name))
  if (unknown === undefined) return
  const known = `supported are ${[...own].join(', ')}; by brokers also ${[...ofBrokers].join(', ')}`
  throw invalidRequest(`unknown query parameter ${unknown}; ${known}`)
}

function criteriaOf(parameters: Parameters, context: Context, expand: Context['expand']): IndexCriteria {
  const given = (name: string): string | undefined => parameters.get(name)
  const type = given('type')
  const selection = type === undefined ? undefined : parseTypeSelection(type, readingTypes(context))
  const q = given('q')
  const scopeQ = given('scopeQ')
  const search = given('search')
  const hasGeo = ['georel', 'geometry', 'coordinates'].some((name) => parameters.has(name))
  return {
    selection,
    kinds: selection === undefined ? 0 : typeNamesOf(selection).reduce((all, name) => all | kindOf(name), 0),
    ids: listOf(parameters, 'id')?.map((id) => checkUri(id, 'id')),
    q: q === undefined ? undefined : withinWays(ofAttributes(parseQuery(q, expand))),
    scope: scopeQ === undefined ? undefined : parseScopeQuery(scopeQ),
    geo: hasGeo
      ? parseGeoQuery(
          {
            georel: given('georel'),
            geometry: given('geometry'),
            coordinates: given('coordinates'),
            geoproperty: given('geoproperty'),
          },
          expand,
        )
      : undefined,
    window: windowOf(parameters),
    words: search === undefined ? undefined : matchOf(search),
    attrs: listOf(parameters, 'attrs')?.map((name) => checkName(expand(name), 'attrs')),
    isLocal: truthOf(parameters, 'local') === true,
  }
}

/** Members of an entity that are not attributes, with the parameters that select by them. */
const chosenBy: ReadonlyMap<string, string> = new Map([
  ['id', 'id'],
  ['type', 'type'],
  ['scope', 'scopeQ'],
])

/** Rejects terms on id, type or scope: no entity has attributes with these names. */
function ofAttributes(q: QueryTree): QueryTree {
  for (const { path } of termsOf(q)) {
    const name = namesOf(path).find((one) => chosenBy.has(one))
    if (name === undefined) continue
    const instead = name === path.names[0] ? `; use the parameter ${chosenBy.get(name)}` : ''
    throw badRequestData(`${name} is not an attribute${instead}`, 'q')
  }
  return q
}

const namesOf = ({ names, linked }: QueryPath): readonly string[] =>
  linked === undefined ? names : [...names, ...namesOf(linked.path)]

/** Each further name doubles the interpretations of a path, so count them before expanding any. */
function withinWays(q: QueryTree): QueryTree {
  let ways = 0
  for (const { path } of termsOf(q)) {
    const { length } = path.names
    if (path.linked === undefined && length > limits.indexPathNames.value)
      throw tooComplex(
        `q has a path of ${length} names; at most ${limits.indexPathNames.value} are supported`,
      )
    ways += path.linked === undefined ? 2 ** (length - 1) : 1
  }
  if (ways <= limits.indexPathWays.value) return q
  throw tooComplex(`the paths of q have more than ${limits.indexPathWays.value} interpretations`)
}

function windowOf(parameters: Parameters): TimeWindow | undefined {
  const timerel = parameters.get('timerel')
  const [timeAt, endTimeAt] = ['timeAt', 'endTimeAt'].map((name) => timeOf(parameters, name))
  const property = parameters.get('timeproperty') ?? 'lastSeen'
  if (property !== 'active' && property !== 'lastSeen' && property !== 'observedAt')
    throw badRequestData('must be active, lastSeen, or its synonym observedAt', 'timeproperty')
  if (timerel === undefined) {
    const lone = foreign.slice(2).find((name) => parameters.has(name))
    if (lone !== undefined) throw badRequestData('requires timerel', lone)
    return undefined
  }
  if (timeAt === undefined) throw badRequestData('is required with timerel', 'timeAt')
  if ((timerel === 'between') !== (endTimeAt !== undefined))
    throw badRequestData('is required with timerel=between and not allowed otherwise', 'endTimeAt')
  const about = property === 'active' ? 'active' : 'lastSeen'
  switch (timerel) {
    case 'before':
      return { property: about, from: Number.NEGATIVE_INFINITY, to: timeAt }
    case 'after':
      return { property: about, from: timeAt + 1, to: Number.POSITIVE_INFINITY }
    case 'between':
      return { property: about, from: timeAt, to: endTimeAt! }
    default:
      throw badRequestData('must be before, after or between', 'timerel')
  }
}

function timeOf(parameters: Parameters, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const ms = dateTimeToMs(text)
  if (ms === undefined) throw badRequestData(`${text} is not a DateTime in UTC`, name)
  return ms
}

function shownOf(
  parameters: Parameters,
  expand: Context['expand'],
): { readonly shown: IndexProjection; readonly needsBroker: string | undefined } {
  const names = (parameter: 'pick' | 'omit') => {
    const text = parameters.get(parameter)
    return text === undefined ? undefined : parseProjection(text, expand, parameter)
  }
  const [pick, omit] = [names('pick'), names('omit')]
  const attrs = listOf(parameters, 'attrs')?.map((name) => checkName(expand(name), 'attrs'))
  if (attrs !== undefined && (pick !== undefined || omit !== undefined))
    throw badRequestData('cannot be combined with pick or omit', 'attrs')
  const options = [...(listOf(parameters, 'options') ?? []), ...(listOf(parameters, 'format') ?? [])]
  const others = options.filter((option) => option !== 'count' && !Object.hasOwn(formats, option))
  const unknown = others.find((option) => option !== 'sysAttrs')
  if (unknown !== undefined)
    throw invalidRequest(
      `unsupported option ${unknown}; supported are ${Object.keys(formats).join(', ')}, sysAttrs, count`,
    )
  const requestedFormats = new Set(
    options.flatMap((option) => (Object.hasOwn(formats, option) ? [formats[option]!] : [])),
  )
  if (requestedFormats.size > 1) throw invalidRequest('options must name only one format')
  const isDeep = (pick?.linked.size ?? 0) > 0 || (omit?.linked.size ?? 0) > 0
  return {
    shown: {
      format: [...requestedFormats][0] ?? 'normalized',
      attrs: attrs === undefined ? undefined : new Set(attrs),
      pick: pick?.names,
      omit: omit?.names,
    },
    needsBroker: others.includes('sysAttrs')
      ? 'createdAt and modifiedAt are not in the index'
      : isDeep
        ? 'only a broker can join members of linked entities'
        : undefined,
  }
}

/** Why the index cannot answer; undefined if it can. */
function reasonOf(parameters: Parameters, criteria: IndexCriteria, known: Known): string | undefined {
  const { selection, ids, q, words, window } = criteria
  const stranger = [...parameters.keys()].find((name) => !own.has(name))
  if (stranger !== undefined) return `only brokers support ${stranger}`
  // The index alone can answer these, so a query without a type covers everything in it.
  const isAlone = words !== undefined || window !== undefined
  if (selection === undefined && ids === undefined && !isAlone) return 'the query has no type'
  if (selection?.kind === 'any') return 'the query is for all types'
  const alien =
    selection &&
    typeNamesOf(selection).find((name) => kindOf(name) === 0 || kindOf(name) === kinds.observation)
  if (alien !== undefined) return `${alien} is not indexed`
  if (selection === undefined && ids !== undefined && known.hasBare(ids))
    return 'observations are not indexed'
  return q === undefined ? undefined : reasonOfQuery(q, known.isName)
}

function reasonOfQuery(q: QueryTree, isKnown: Known['isName']): string | undefined {
  if (needsTimes(q)) return 'createdAt and modifiedAt are not in the index'
  for (const { kind, path } of termsOf(q)) {
    if (kind === 'match') return 'q has a regular expression'
    const names = path.names.filter((name) => !timeMembers.has(name) && !textMembers.has(name))
    if (path.linked !== undefined) {
      if (names.some((name) => !followed.has(name)))
        return 'q follows a relationship to entities outside the index'
      const below = reasonOfQuery({ kind: 'exists', path: path.linked.path }, isKnown)
      if (below !== undefined) return below
    }
    const leading = names.slice(0, -1)
    if (leading.some((name) => isKnown(name) && !followed.has(name)) && !isKnown(names.join(' ')))
      return 'q follows a relationship to entities outside the index'
  }
  return undefined
}

/** Why a broker must answer although the index could: no indexed entity has had this name. */
function unknownIn(q: QueryTree, isKnown: Known['isName']): string | undefined {
  for (const { path } of termsOf(q)) {
    const names = path.names.filter((name) => !timeMembers.has(name) && !textMembers.has(name))
    const unknown = names.find((name) => !isKnown(name))
    if (unknown !== undefined && !isKnown(names.join(' '))) return `${unknown} is not in the index`
  }
  return undefined
}
