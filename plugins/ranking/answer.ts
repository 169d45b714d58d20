/**
 * Builds the responses of the ranking: entities with scores, links to neighbouring pages, warnings and
 * errors. The backend's own paging links are not passed on.
 */
import { productToken } from '#base/register/version.ts'
import type { BrokerAnswer, Json, WrittenAnswer } from '#contract'
import { type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { fittingWarnings, warningLine } from '#ngsi-ld/values/warning-lines.ts'
import type { RankedQuery, RankingTerm } from './ranked-query.ts'
import type { RankedList } from './ranking.ts'
import { type Ranked, rounded, shareOf, type ValueRange } from './score.ts'

export const scoreName = 'http://iotcrawler.eu/rankScore'
/** Contribution of each term to the score: a sub-property of the score, or a sibling in simplified format. */
export const termsName = 'urn:selvedge:ns:rankTerms'

/** Response with one page of the ranked list. */
export function rankedAnswer(rankedQuery: RankedQuery, list: RankedList): Response {
  const { first, page } = list
  const items = page.map((one) => scored(one, rankedQuery, list.spans))
  const type = first.headers['content-type'] ?? 'application/json'
  const isCollection = 'text' in first && type.startsWith('application/geo+json')
  const body = isCollection ? { ...collectionOf(first.text), features: items } : items
  const headers = passedHeaders(first.headers)
  headers.set('Content-Type', type)
  const links = [contextLinks(first.headers['link']), ...pageLinks(rankedQuery, list.count, type)]
  const link = links.filter((one) => one !== '').join(', ')
  if (link !== '') headers.set('Link', link)
  if (rankedQuery.isCounted) headers.set('NGSILD-Results-Count', String(list.count))
  else headers.delete('NGSILD-Results-Count')
  const warnings = [...list.warnings, ...warningsOf(rankedQuery, list).map(asWarning)]
  if (warnings.length > 0) headers.set('NGSILD-Warning', fittingWarnings(warnings).join(', '))
  return new Response(JSON.stringify(body), { status: 'text' in first ? first.status : 200, headers })
}

/** The feature collection without its features. */
function collectionOf(text: string): JsonObject {
  const { features: _, ...rest } = JSON.parse(text) as { readonly [name: string]: Json }
  return { type: 'FeatureCollection', ...rest }
}

/** Adds the score to the entity in place: the item was parsed for this response. */
function scored(
  { item, score, values }: Ranked<JsonObject>,
  { terms, format, isExplained }: RankedQuery,
  spans: readonly ValueRange[] | undefined,
): JsonObject {
  const properties = item['type'] === 'Feature' ? own(item, 'properties') : undefined
  const target = (properties ?? item) as Record<string, Json>
  const shares = isExplained ? explanation(terms, values, spans) : undefined
  if (format === 'simplified') {
    target[scoreName] = score
    if (shares !== undefined) target[termsName] = shares
  } else if (format === 'concise') {
    target[scoreName] = shares === undefined ? score : { value: score, [termsName]: { value: shares } }
  } else {
    const nested = shares === undefined ? {} : { [termsName]: { type: 'Property', value: shares } }
    target[scoreName] = { type: 'Property', value: score, ...nested }
  }
  return item
}

/** Name, weight, value and share of each term; `missing` if an entity has no value. */
function explanation(
  terms: readonly RankingTerm[],
  values: Float64Array,
  spans?: readonly ValueRange[],
): Json {
  return terms.map((term, index): Json => {
    const value = values[index]!
    const { name, weight } = term
    if (Number.isNaN(value)) return { name, weight, share: 0, missing: true }
    const span = spans?.[index]
    return {
      name,
      weight,
      value,
      share: rounded(shareOf(term, value, span)),
      ...(term.isFalling ? { smallIsGood: true } : {}),
      ...(span === undefined ? {} : { least: span.least, most: span.least + span.width }),
    }
  })
}

function warningsOf({ terms }: RankedQuery, { missing, beyond, count, failures }: RankedList): string[] {
  const sum = rounded(terms.reduce((all, { weight }) => all + weight, 0))
  return [
    ...(Math.abs(sum - 1) > 1e-9 ? [`the weights add up to ${sum}, so scores may be outside 0 to 1`] : []),
    ...terms.flatMap(({ name }, index) =>
      missing[index] === 0
        ? []
        : [
            `${name} is missing or not a number in ${missing[index]} of ${count} entities and counts as 0 there`,
          ],
    ),
    ...terms.flatMap(({ name }, index) =>
      beyond[index] === 0
        ? []
        : [`-${name} is outside 0 to 1 in ${beyond[index]} of ${count} entities: use normalise=minmax`],
    ),
    ...failures,
  ]
}

const asWarning = (text: string): string => warningLine(299, 'selvedge-ranking', text)

/** Links with relations other than next and prev. */
function contextLinks(link: string | undefined): string {
  const all = link?.match(/<[^<>]*>(?:[^<>"]|"[^"]*")*?(?=\s*(?:,\s*<|$))/g) ?? []
  return all.filter((one) => !/;\s*rel="?(?:next|prev)\b/.test(one)).join(', ')
}

/** Relative to the request address, so that they work behind any proxy. */
function pageLinks(rankedQuery: RankedQuery, count: number, type: string): string[] {
  const { limit, offset, written, isCounted } = rankedQuery
  if (limit === 0) return []
  const at = (from: number): string =>
    `?${[...written, `limit=${limit}`, `offset=${from}`, ...(isCounted ? ['count=true'] : [])].join('&')}`
  const link = (target: string, relation: string): string => `<${target}>;rel="${relation}";type="${type}"`
  return [
    ...(offset + limit < count ? [link(at(offset + limit), 'next')] : []),
    ...(offset > 0 ? [link(at(Math.max(0, offset - limit)), 'prev')] : []),
  ]
}

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'content-encoding',
  'date',
])

function passedHeaders(given: Readonly<Record<string, string>>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given))
    if (!hopByHop.has(name) && name !== 'link' && name !== 'etag') headers.set(name, value)
  return headers
}

/** Passes the backend's response on unchanged. */
export function passedAnswer({ status, headers, text }: WrittenAnswer): Response {
  const passed = passedHeaders(headers)
  if (headers['link'] !== undefined) passed.set('Link', headers['link'])
  if (headers['etag'] !== undefined) passed.set('ETag', headers['etag'])
  const isBare = status === 204 || status === 205 || status === 304
  return new Response(isBare ? null : text, { status, headers: passed })
}

/** Warns which ranking parameters had no effect. @param names of the given parameters. */
export function unweighted(response: Response, names: readonly string[]): Response {
  if (names.length > 0)
    response.headers.append('NGSILD-Warning', asWarning(`no effect without weights: ${names.join(', ')}`))
  return response
}

/** Statuses as in the original component, except that an oversized response is not reported as a timeout. */
export const failureStatus = { unanswered: 504, oversized: 502, unreadable: 500 } as const

/** Error response if the backend did not answer or sent an unreadable response. */
export function failedAnswer(status: 500 | 502 | 504, detail: string): Response {
  const title = status === 504 ? 'Timeout' : 'Request failed'
  const problem = { type: 'https://uri.etsi.org/ngsi-ld/errors/InternalError', title, detail, status }
  return new Response(JSON.stringify(problem), {
    status,
    headers: { 'Content-Type': 'application/json', Server: productToken },
  })
}

export const answerOf = (answer: BrokerAnswer): Response =>
  'failure' in answer
    ? failedAnswer(
        answer.failure === 'oversized' ? failureStatus.oversized : failureStatus.unanswered,
        answer.reason,
      )
    : passedAnswer(answer)
