/**
 * Answers of the ranking: entities with their scores, links to the neighbouring pages, warnings, and the errors of its
 * interface. What the backend says of its own pages does not leave.
 */
import { productToken } from '#base/register/version.ts'
import type { BrokerAnswer, Json, WrittenAnswer } from '#contract'
import { type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { fittingWarnings, warningLine } from '#ngsi-ld/values/warning-lines.ts'
import type { Question, Term } from './ranked-query.ts'
import type { RankedList } from './ranking.ts'
import { type Ranked, rounded, type Span, shareOf } from './score.ts'

export const scoreName = 'http://iotcrawler.eu/rankScore'
/** What each term gave to a score; a sub-property of it, or beside it where values are bare. */
export const termsName = 'urn:selvedge:ns:rankTerms'

/** The page of the list that was asked for. */
export function rankedAnswer(question: Question, list: RankedList): Response {
  const { first, page } = list
  const items = page.map((one) => scored(one, question, list.spans))
  const type = first.headers['content-type'] ?? 'application/json'
  const isCollection = 'text' in first && type.startsWith('application/geo+json')
  const body = isCollection ? { ...collectionOf(first.text), features: items } : items
  const headers = passedHeaders(first.headers)
  headers.set('Content-Type', type)
  const links = [contextLinks(first.headers['link']), ...pageLinks(question, list.count, type)]
  const link = links.filter((one) => one !== '').join(', ')
  if (link !== '') headers.set('Link', link)
  if (question.isCounted) headers.set('NGSILD-Results-Count', String(list.count))
  else headers.delete('NGSILD-Results-Count')
  const warnings = [...list.warnings, ...warningsOf(question, list).map(asWarning)]
  if (warnings.length > 0) headers.set('NGSILD-Warning', fittingWarnings(warnings).join(', '))
  return new Response(JSON.stringify(body), { status: 'text' in first ? first.status : 200, headers })
}

/** The collection without its features. */
function collectionOf(text: string): JsonObject {
  const { features: _, ...rest } = JSON.parse(text) as { readonly [name: string]: Json }
  return { type: 'FeatureCollection', ...rest }
}

/** The entity with its score; it is ours since it was parsed, so it is not copied. */
function scored(
  { item, score, values }: Ranked<JsonObject>,
  { terms, format, isExplained }: Question,
  spans: readonly Span[] | undefined,
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

/** Name, weight, value and share of each term; a term without a value says so. */
function explanation(terms: readonly Term[], values: Float64Array, spans?: readonly Span[]): Json {
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

function warningsOf({ terms }: Question, { missing, beyond, count, failures }: RankedList): string[] {
  const sum = rounded(terms.reduce((all, { weight }) => all + weight, 0))
  return [
    ...(Math.abs(sum - 1) > 1e-9 ? [`the weights add up to ${sum}, so scores may leave 0 to 1`] : []),
    ...terms.flatMap(({ name }, index) =>
      missing[index] === 0
        ? []
        : [`${name} is missing or no number in ${missing[index]} of ${count} entities and counts 0 there`],
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

/** Links of other relations than to pages. */
function contextLinks(link: string | undefined): string {
  const all = link?.match(/<[^<>]*>(?:[^<>"]|"[^"]*")*?(?=\s*(?:,\s*<|$))/g) ?? []
  return all.filter((one) => !/;\s*rel="?(?:next|prev)\b/.test(one)).join(', ')
}

/** Relative to the address that was asked, whatever stands in front of it. */
function pageLinks(question: Question, count: number, type: string): string[] {
  const { limit, offset, written, isCounted } = question
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

/** The backend's answer as it is. */
export function passedAnswer({ status, headers, text }: WrittenAnswer): Response {
  const passed = passedHeaders(headers)
  if (headers['link'] !== undefined) passed.set('Link', headers['link'])
  if (headers['etag'] !== undefined) passed.set('ETag', headers['etag'])
  const isBare = status === 204 || status === 205 || status === 304
  return new Response(isBare ? null : text, { status, headers: passed })
}

/** Says which parameters of the ranking counted nothing. @param names of those that were given. */
export function unweighted(response: Response, names: readonly string[]): Response {
  if (names.length > 0)
    response.headers.append('NGSILD-Warning', asWarning(`without weights ${names.join(', ')} counts nothing`))
  return response
}

/** As the original answered, but that an answer of too many bytes is none that came too late. */
export const failureStatus = { silent: 504, oversized: 502, garbled: 500 } as const

/** Where the backend did not answer, or nobody can read what it said. */
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
        answer.failure === 'oversized' ? failureStatus.oversized : failureStatus.silent,
        answer.reason,
      )
    : passedAnswer(answer)
