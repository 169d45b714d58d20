/**
 * What a request asks the index for, from its parameters; or why it goes to the brokers instead: regular expressions, names and
 * types that the index does not have, and whatever only a broker can do. Names are those of the platform's context.
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
import { parseProjection } from '#ngsi-ld/representation/projection.ts'
import type { Format } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { readingBareNames, readingTypes } from '#plugins/indexing/entries/bare-names.ts'
import { followed, kindOf, kinds } from '#plugins/indexing/entries/entity-kinds.ts'
import { matchOf } from '#plugins/indexing/entries/words.ts'

/** When an entity was active or last seen, ms; from <= t < to. */
export interface TimeWindow {
  readonly property: 'active' | 'lastSeen'
  readonly from: number
  readonly to: number
}

export interface Question {
  readonly selection: TypeSelection | undefined
  /** Bits of the types that are mentioned; 0 where none are. */
  readonly kinds: number
  readonly ids: readonly string[] | undefined
  readonly q: QueryTree | undefined
  readonly scope: ScopeQuery | undefined
  readonly geo: GeoQuery | undefined
  readonly window: TimeWindow | undefined
  /** For MATCH. */
  readonly words: string | undefined
  /** Entities that have at least one of these. */
  readonly attrs: readonly string[] | undefined
  /** Only what this gateway's own broker tells. */
  readonly isLocal: boolean
}

export interface Shown {
  readonly format: Format
  readonly attrs: ReadonlySet<string> | undefined
  readonly pick: ReadonlySet<string> | undefined
  readonly omit: ReadonlySet<string> | undefined
}

export interface Paging {
  readonly limit: number
  readonly offset: number
  readonly count: boolean
}

export interface Wish {
  readonly question: Question
  readonly shown: Shown
  readonly paging: Paging
  /** Why only brokers can answer; undefined where the index can. */
  readonly forward: string | undefined
}

export type Parameters = ReadonlyMap<string, string>

/** What the index has. */
export interface Known {
  /** Whether it has ever seen an attribute of this name, or one below others of this path. */
  isName(name: string): boolean
  /** Whether of one of these entities it keeps no more than whose it is and when it was made. */
  hasBare(ids: readonly string[]): boolean
}

/** Parameters that the index understands. */
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
/** Parameters that brokers know beside these. */
export const ofBrokers: ReadonlySet<string> = new Set([
  ...['idPattern', 'csf', 'expandValues', 'jsonKeys', 'orderBy', 'orderFrom', 'orderGeometry', 'collation'],
  ...['lang', 'datasetId', 'join', 'joinLevel', 'containedBy', 'geometryProperty'],
])
/** Parameters that no broker knows. */
const foreign = ['search', 'timerel', 'timeAt', 'endTimeAt', 'timeproperty'] as const

const formats: Readonly<Record<string, Format>> = {
  normalized: 'normalized',
  concise: 'concise',
  simplified: 'simplified',
  keyValues: 'simplified',
}

/** @throws ngsi-ld.bad-request-data, ngsi-ld.invalid-request, ngsi-ld.too-many-results; ngsi-ld.not-supported where nobody could answer. */
export function wishOf(parameters: Parameters, context: Context, known: Known): Wish {
  const isKnown = known.isName
  checkKnown(parameters)
  const paging = pagingOf(parameters)
  const expand = readingBareNames(context, isKnown)
  const question = questionOf(parameters, context, expand)
  const { shown, needsBroker } = shownOf(parameters, expand)
  const forward = reasonOf(parameters, question, known) ?? needsBroker
  if (forward !== undefined) checkForwarded(parameters, question, forward)
  // Where only the index can answer the rest, it does: what it has never seen, no entity of its types has.
  const isAlone = aloneIn(parameters, question) !== undefined
  const unknown = question.q === undefined || isAlone ? undefined : unknownIn(question.q, isKnown)
  return { question, shown, paging, forward: forward ?? unknown }
}

/**
 * Refuses what a broker would not know, or would answer with less: it has no places of partners.
 * @param reason why brokers are to answer.
 * @throws ngsi-ld.not-supported
 */
export function checkForwarded(parameters: Parameters, question: Question, reason: string): void {
  const unsaid = aloneIn(parameters, question)
  if (unsaid === undefined) return
  throw new GatewayError(
    'ngsi-ld.not-supported',
    `${unsaid} is answered by the index alone, which cannot answer the rest: ${reason}`,
  )
}

/** What of a request only the index can answer. */
const aloneIn = (parameters: Parameters, question: Question): string | undefined =>
  foreign.find((name) => parameters.has(name)) ?? placeAlone(question)

/** Streams and sensors are found where their partners are. */
function placeAlone({ geo, selection, kinds: bits }: Question): string | undefined {
  if (geo === undefined || geo.property !== 'location') return undefined
  const isAnything = selection === undefined || selection.kind === 'any'
  const isMoved = isAnything || (bits & (kinds.stream | kinds.sensor)) !== 0
  return isMoved ? 'the place (georel) of streams and sensors' : undefined
}

/** @throws ngsi-ld.invalid-request for a parameter that neither the index nor a broker knows. */
function checkKnown(parameters: Parameters): void {
  const unknown = [...parameters.keys()].find((name) => !own.has(name) && !ofBrokers.has(name))
  if (unknown === undefined) return
  const known = `known are ${[...own].join(', ')}; of brokers ${[...ofBrokers].join(', ')}`
  throw invalidRequest(`unknown query parameter ${unknown}; ${known}`)
}

function questionOf(parameters: Parameters, context: Context, expand: Context['expand']): Question {
  const given = (name: string): string | undefined => parameters.get(name)
  if (!['true', 'false', undefined].includes(given('local')))
    throw invalidRequest('local is neither true nor false')
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
    isLocal: given('local') === 'true',
  }
}

/** Members of an entity that are no attributes, with the parameters by which it is chosen. */
const chosenBy: ReadonlyMap<string, string> = new Map([
  ['id', 'id'],
  ['type', 'type'],
  ['scope', 'scopeQ'],
])

/** No entity has an attribute of such a name, so whoever asks for one means something else. */
function ofAttributes(q: QueryTree): QueryTree {
  for (const { path } of termsOf(q)) {
    const name = namesOf(path).find((one) => chosenBy.has(one))
    if (name === undefined) continue
    const instead = name === path.names[0] ? `; use the parameter ${chosenBy.get(name)}` : ''
    throw badRequestData(`${name} is no attribute${instead}`, 'q')
  }
  return q
}

const namesOf = ({ names, linked }: QueryPath): readonly string[] =>
  linked === undefined ? names : [...names, ...namesOf(linked.path)]

/** Each name more doubles the ways of a path, so they are reckoned before anybody writes them out. */
function withinWays(q: QueryTree): QueryTree {
  let ways = 0
  for (const { path } of termsOf(q)) {
    const { length } = path.names
    if (path.linked === undefined && length > limits.indexPathNames.value)
      throw tooComplex(`q has a path of ${length} names; the index reads ${limits.indexPathNames.value}`)
    ways += path.linked === undefined ? 2 ** (length - 1) : 1
  }
  if (ways <= limits.indexPathWays.value) return q
  throw tooComplex(`the paths of q can be read in more than ${limits.indexPathWays.value} ways`)
}

function windowOf(parameters: Parameters): TimeWindow | undefined {
  const timerel = parameters.get('timerel')
  const [timeAt, endTimeAt] = ['timeAt', 'endTimeAt'].map((name) => timeOf(parameters, name))
  const property = parameters.get('timeproperty') ?? 'lastSeen'
  if (property !== 'active' && property !== 'lastSeen' && property !== 'observedAt')
    throw badRequestData('must be active or lastSeen (or observedAt, which is the same)', 'timeproperty')
  if (timerel === undefined) {
    const lone = foreign.slice(2).find((name) => parameters.has(name))
    if (lone !== undefined) throw badRequestData('goes only with timerel', lone)
    return undefined
  }
  if (timeAt === undefined) throw badRequestData('is needed with timerel', 'timeAt')
  if ((timerel === 'between') !== (endTimeAt !== undefined))
    throw badRequestData('is needed with timerel=between, and only there', 'endTimeAt')
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
): { readonly shown: Shown; readonly needsBroker: string | undefined } {
  const names = (parameter: 'pick' | 'omit') => {
    const text = parameters.get(parameter)
    return text === undefined ? undefined : parseProjection(text, expand, parameter)
  }
  const [pick, omit] = [names('pick'), names('omit')]
  const attrs = listOf(parameters, 'attrs')?.map((name) => checkName(expand(name), 'attrs'))
  if (attrs !== undefined && (pick !== undefined || omit !== undefined))
    throw badRequestData('goes with neither pick nor omit', 'attrs')
  const options = [...(listOf(parameters, 'options') ?? []), ...(listOf(parameters, 'format') ?? [])]
  const others = options.filter((option) => option !== 'count' && !Object.hasOwn(formats, option))
  const unknown = others.find((option) => option !== 'sysAttrs')
  if (unknown !== undefined)
    throw invalidRequest(
      `unsupported option ${unknown}; supported are ${Object.keys(formats).join(', ')}, sysAttrs, count`,
    )
  const asked = new Set(
    options.flatMap((option) => (Object.hasOwn(formats, option) ? [formats[option]!] : [])),
  )
  if (asked.size > 1) throw invalidRequest('options name more than one format')
  const isDeep = (pick?.linked.size ?? 0) > 0 || (omit?.linked.size ?? 0) > 0
  return {
    shown: {
      format: [...asked][0] ?? 'normalized',
      attrs: attrs === undefined ? undefined : new Set(attrs),
      pick: pick?.names,
      omit: omit?.names,
    },
    needsBroker: others.includes('sysAttrs')
      ? 'times of writing are not in the index'
      : isDeep
        ? 'members of linked entities are joined by a broker'
        : undefined,
  }
}

/** Why the index cannot answer. */
function reasonOf(parameters: Parameters, question: Question, known: Known): string | undefined {
  const { selection, ids, q, words, window } = question
  const stranger = [...parameters.keys()].find((name) => !own.has(name))
  if (stranger !== undefined) return `${stranger} is for a broker`
  // What the index alone knows is asked of all that it has.
  const isAlone = words !== undefined || window !== undefined
  if (selection === undefined && ids === undefined && !isAlone) return 'no type is given'
  if (selection?.kind === 'any') return 'entities of all types are asked for'
  const alien =
    selection &&
    typeNamesOf(selection).find((name) => kindOf(name) === 0 || kindOf(name) === kinds.observation)
  if (alien !== undefined) return `${alien} is not indexed`
  if (selection === undefined && ids !== undefined && known.hasBare(ids))
    return 'observations are not indexed'
  return q === undefined ? undefined : reasonOfQuery(q, known.isName)
}

function reasonOfQuery(q: QueryTree, isKnown: Known['isName']): string | undefined {
  if (needsTimes(q)) return 'times of writing are not in the index'
  for (const { kind, path } of termsOf(q)) {
    if (kind === 'match') return 'q has a regular expression'
    const names = path.names.filter((name) => !timeMembers.has(name) && !textMembers.has(name))
    if (path.linked !== undefined) {
      if (names.some((name) => !followed.has(name))) return 'q follows a relationship out of the index'
      const below = reasonOfQuery({ kind: 'exists', path: path.linked.path }, isKnown)
      if (below !== undefined) return below
    }
    const leading = names.slice(0, -1)
    if (leading.some((name) => isKnown(name) && !followed.has(name)) && !isKnown(names.join(' ')))
      return 'q follows a relationship out of the index'
  }
  return undefined
}

/** Why a broker is asked although the index could answer: a name that no indexed entity has had. */
function unknownIn(q: QueryTree, isKnown: Known['isName']): string | undefined {
  for (const { path } of termsOf(q)) {
    const names = path.names.filter((name) => !timeMembers.has(name) && !textMembers.has(name))
    const unknown = names.find((name) => !isKnown(name))
    if (unknown !== undefined && !isKnown(names.join(' '))) return `${unknown} is not in the index`
  }
  return undefined
}

function pagingOf(parameters: Parameters): Paging {
  const limit = wholeNumber(parameters, 'limit') ?? limits.pageDefault.value
  const offset = wholeNumber(parameters, 'offset') ?? 0
  const wanted = parameters.get('count') ?? 'false'
  if (wanted !== 'true' && wanted !== 'false') throw invalidRequest('count is neither true nor false')
  const count = wanted === 'true' || listOf(parameters, 'options')?.includes('count') === true
  if (limit > limits.pageMax.value)
    throw new GatewayError('ngsi-ld.too-many-results', `limit ${limit} is above ${limits.pageMax.value}`, {
      limit,
    })
  if (limit === 0 && !count) throw badRequestData('limit 0 goes only with count=true', 'limit')
  return { limit, offset, count }
}

function wholeNumber(parameters: Parameters, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text)) throw badRequestData(`is no whole number: ${text}`, name)
  return Number(text)
}

function listOf(parameters: Parameters, name: string): readonly string[] | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const items = text.split(',').map((item) => item.trim())
  if (items.includes('')) throw badRequestData('has an empty item', name)
  return items
}
