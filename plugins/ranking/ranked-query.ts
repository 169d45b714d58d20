/**
 * Parses the parameters of a ranking request: weights (their three forms are in `terms.ts`), criteria
 * options, and the page. All other parameters are kept as written, for the backend. Pure functions.
 */

import { isOnGlobe } from '#ngsi-ld/geo/distance.ts'
import type { GeoPosition } from '#ngsi-ld/geo/figure.ts'
import { countAsParameter, type Parameters, pagingOf, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { parsePath, type RankingPath } from './attribute-path.ts'
import type { Yardsticks } from './ranking-criteria.ts'
import type { Weight } from './score.ts'
import { parseTerms } from './terms.ts'

/** A weight of the request. */
export interface RankingTerm extends Weight {
  /** As written, without the sign. */
  readonly name: string
  readonly path: RankingPath
}

export interface RankedQuery {
  readonly terms: readonly RankingTerm[]
  readonly isNormalized: boolean
  readonly isExplained: boolean
  readonly yardsticks: Omit<Yardsticks, 'now'>
  readonly limit: number
  readonly offset: number
  readonly isCounted: boolean
  readonly format: 'normalized' | 'concise' | 'simplified'
  /** Whether responses may lack attributes that entities have. */
  readonly isPartial: boolean
  /** Parameters for the backend as written, without paging. */
  readonly others: readonly string[]
  /** All parameters as written, without paging. */
  readonly written: readonly string[]
}

/** The ranking's parameters, separated from those of the backend. */
export interface Split {
  readonly weights: readonly { readonly name: string; readonly value: string }[]
  readonly own: ReadonlyMap<string, string>
  /** The ranking's parameters as written. */
  readonly mine: readonly string[]
  /** All other parameters as written. */
  readonly others: readonly string[]
}

const ownParameters: ReadonlySet<string> = new Set([
  'normalise',
  'normalize',
  'explain',
  'rankPoint',
  'rankDistance',
  'rankAge',
])
const pages: ReadonlySet<string> = new Set(['limit', 'offset', 'count', 'pageKey'])

/**
 * Separates the ranking's parameters from those of the backend.
 * @param query without `?`.
 * @throws ngsi-ld.invalid-request for a repeated parameter, or one that cannot be decoded.
 */
export function splitQuery(query: string): Split {
  const weights: { name: string; value: string }[] = []
  const own = new Map<string, string>()
  const others: string[] = []
  const mine: string[] = []
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const cut = pair.indexOf('=')
    const name = decoded(cut === -1 ? pair : pair.slice(0, cut))
    const isWeight = name === 'weights' || /^rankWeights(?:\[|$)/.test(name)
    if (!isWeight && !ownParameters.has(name)) {
      others.push(pair)
      continue
    }
    mine.push(pair)
    const value = cut === -1 ? '' : decoded(pair.slice(cut + 1))
    if (isWeight) weights.push({ name, value })
    else if (own.has(name)) throw invalidRequest(`query parameter ${name} is given twice`)
    else own.set(name, value)
  }
  return { weights, own, mine, others }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalidRequest('the query has invalid percent-encoding')
  }
}

/**
 * @throws ngsi-ld.bad-request-data with the term or parameter at fault
 * @throws ngsi-ld.too-many-results for a page above `limits.pageMax`
 */
export function parseRankedQuery({ weights, own, mine, others }: Split): RankedQuery {
  const terms = parseTerms(weights).map(({ name, weight, isFalling }): RankingTerm => {
    const path = parsePath(name)
    if ('mistake' in path) throw badRequestData(`${name}: ${path.mistake}`, 'weights')
    return { name, weight, isFalling, path }
  })
  const backend = new Map(
    others.map((pair) => {
      const [name = '', ...rest] = pair.split('=')
      return [decoded(name), decoded(rest.join('='))] as const
    }),
  )
  const backendPairs = others.filter((pair) => !pages.has(decoded(pair.split('=', 1)[0]!)))
  const point = pointOf(own.get('rankPoint'), backend)
  const isNear = terms.some(({ path }) => path.criterion === 'proximity')
  if (isNear && point === undefined)
    throw badRequestData('is required for @proximity: longitude,latitude', 'rankPoint')
  return {
    terms,
    isNormalized: normalization(own),
    isExplained: truthOf(own, 'explain') ?? false,
    yardsticks: {
      point,
      distance: positive(own.get('rankDistance'), 'rankDistance') ?? 1000,
      age: positive(own.get('rankAge'), 'rankAge') ?? 3600,
      geoproperty: backend.get('geoproperty') ?? 'location',
    },
    ...pageOf(backend),
    ...representationOf(backend),
    others: backendPairs,
    written: [...mine, ...backendPairs],
  }
}

function pageOf(given: Parameters): Pick<RankedQuery, 'limit' | 'offset' | 'isCounted'> {
  if (given.has('pageKey')) throw badRequestData('is not supported for ranked lists; use offset', 'pageKey')
  const { limit, offset, count: isCounted } = pagingOf(countAsParameter(given))
  return { limit, offset, isCounted }
}

const listed = (given: ReadonlyMap<string, string>, name: string): readonly string[] =>
  (given.get(name) ?? '').split(',').map((item) => item.trim())

const projecting = ['attrs', 'pick', 'omit', 'lang', 'datasetId']

/** Whether parameters hide attributes or instances. */
export const isPartialBy = (pairs: readonly string[]): boolean =>
  pairs.some((pair) => projecting.includes(decoded(pair.split('=', 1)[0]!)))

function representationOf(given: ReadonlyMap<string, string>): Pick<RankedQuery, 'format' | 'isPartial'> {
  const requested = [...listed(given, 'options'), ...listed(given, 'format')]
  const isSimplified = requested.includes('keyValues') || requested.includes('simplified')
  const format = isSimplified ? 'simplified' : requested.includes('concise') ? 'concise' : 'normalized'
  return { format, isPartial: isSimplified || projecting.some((name) => given.has(name)) }
}

/** `lon,lat` or a JSON array; otherwise the point of the geo-query. */
function pointOf(text: string | undefined, given: ReadonlyMap<string, string>): GeoPosition | undefined {
  if (text === undefined) {
    const isPoint = given.get('georel')?.startsWith('near') === true && given.get('geometry') === 'Point'
    return isPoint ? positionIn(given.get('coordinates') ?? '') : undefined
  }
  const point = positionIn(/^\s*\[/.test(text) ? text : `[${text}]`)
  if (point === undefined)
    throw badRequestData('must be longitude,latitude, within ±180 and ±90', 'rankPoint')
  return point
}

function positionIn(text: string): GeoPosition | undefined {
  const json = parsedJson(text)
  if (!Array.isArray(json) || json.length < 2 || json.length > 3) return undefined
  if (!json.every((part) => typeof part === 'number' && Number.isFinite(part))) return undefined
  return isOnGlobe(json as number[]) ? (json as number[]) : undefined
}

function normalization(own: ReadonlyMap<string, string>): boolean {
  const text = own.get('normalise') ?? own.get('normalize') ?? 'none'
  if (text === 'none' || text === 'minmax') return text === 'minmax'
  throw badRequestData(`must be minmax or none, got ${text}`, 'normalise')
}

function positive(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (value > 0 && value <= 1e12) return value
  throw badRequestData(`must be a number above 0, got ${text}`, name)
}
