/**
 * What request headers and query parameters say, as typed values: the media type of the answer, the media type of
 * the body, the @context named by a Link header, paging, options. Pure functions; whoever calls them knows which
 * parameters and media types a route has. GS CIM 009, 6.3.
 */

import { limits } from '#base/limits/limits.ts'
import { acceptsWildcards, qualitiesOf } from '#base/load/media-range.ts'
import { GatewayError } from '#base/register/errors.ts'
import { hostedContextsPath } from '#broker/contexts/context-resolver.ts'

/** Media types of answers, in the order of preference that the specification gives (6.3.4). */
export const answerTypes = ['application/json', 'application/ld+json'] as const
export type AnswerType = (typeof answerTypes)[number]

export const geoJson = 'application/geo+json'
/** Where entities are answered, GeoJSON is offered beside the others. */
export const entityTypes = [...answerTypes, geoJson] as const

export const contextRelation = 'http://www.w3.org/ns/json-ld#context'

/** What NGSILD-Tenant may say. */
export const tenantName = /^[A-Za-z0-9_-]{1,64}$/

/**
 * The media type to answer in. Quality weights are honoured, the most specific range decides on each type
 * [RFC 9110 12.5.1]; among equals the order of `answerTypes` holds, where the client does not care `byDefault`.
 * @throws GatewayError http.not-acceptable
 */
export function answerType(accept: string | undefined, byDefault: AnswerType): AnswerType
export function answerType<T extends string>(
  accept: string | undefined,
  byDefault: AnswerType,
  offered: readonly T[],
): T | AnswerType
export function answerType(
  accept: string | undefined,
  byDefault: AnswerType,
  offered: readonly string[] = answerTypes,
): string {
  if (accept === undefined || accept === '*/*' || accept === '') return byDefault
  if (accept === 'application/json' || accept === 'application/ld+json') return accept
  const qualities = qualitiesOf(accept, offered)
  const best = Math.max(...qualities)
  if (best === 0) {
    throw new GatewayError(
      'http.not-acceptable',
      `none of ${accept} is offered; there is ${offered.join(', ')}`,
      {
        available: offered,
      },
    )
  }
  if (qualities.every((quality) => quality === best) && acceptsWildcards(accept)) return byDefault
  return offered[qualities.indexOf(best)]!
}

/** Media type of a body, lower case and without parameters. @throws GatewayError http.unsupported-media-type */
export function bodyType<const T extends string>(contentType: string | undefined, allowed: readonly T[]): T {
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice(8)
  const found = allowed.find((candidate) => candidate === type)
  if (found === undefined || (charset !== undefined && !/^"?utf-?8"?$/.test(charset))) {
    const said =
      contentType === undefined ? 'Content-Type is missing' : `Content-Type ${contentType} is not supported`
    throw new GatewayError('http.unsupported-media-type', `${said}; send ${allowed.join(' or ')}`, {
      allowed,
    })
  }
  return found
}

/** Every token of a Link header [RFC 8288 3] that carries meaning, and whatever else stands there. */
const linkToken = /<[^<>]*>|"(?:[^"\\]|\\.)*"|[,;=]|[^\s<>",;=]+|[<>"]/g

/**
 * Address of the @context that a Link header names, if it names one; links of other relations are ignored. That of a
 * hosted context may be the path that its Location header had.
 * @throws GatewayError ngsi-ld.bad-request-data when it names several, or something that is no absolute URL;
 *   ngsi-ld.invalid-request when the header cannot be read.
 */
export function linkedContext(link: string | undefined): string | undefined {
  if (link === undefined) return undefined
  const found = linksOf(link).filter(({ relations }) => relations.includes(contextRelation))
  if (found.length > 1) {
    throw new GatewayError('ngsi-ld.bad-request-data', 'the Link header names more than one @context')
  }
  if (found[0] === undefined) return undefined
  const { address } = found[0]
  if (address.startsWith(`${hostedContextsPath}/`)) return address
  const url = URL.parse(address)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new GatewayError(
      'ngsi-ld.bad-request-data',
      `the Link header names a @context that is no URL: ${address}`,
    )
  }
  return address
}

/** Whether a Link header has a link without a relation, which can name nothing. */
export const hasBareLink = (link: string | undefined): boolean =>
  link !== undefined && linksOf(link).some(({ relations }) => relations.length === 0)

function linksOf(header: string): { address: string; relations: readonly string[] }[] {
  const links: { address: string; relations: readonly string[] }[] = []
  const tokens = header.match(linkToken) ?? []
  const broken = new GatewayError('ngsi-ld.invalid-request', 'the Link header cannot be read')
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!
    const previous = tokens[i - 1]
    if (token.length > 1 && token.startsWith('<')) {
      if (previous !== undefined && previous !== ',') throw broken
      links.push({ address: token.slice(1, -1).trim(), relations: [] })
    } else if (links.length === 0 || token === '<' || token === '>' || token === '"') {
      throw broken
    } else if (previous === '=' && tokens[i - 2]?.toLowerCase() === 'rel') {
      links.at(-1)!.relations = token.replaceAll('"', '').split(' ')
    }
  }
  return links
}

/** Query parameters by name. */
export type Parameters = ReadonlyMap<string, string>

const noParameters: Parameters = new Map()

/**
 * The query parameters of a request, decoded.
 * @throws GatewayError ngsi-ld.invalid-request for one that the route does not know, that is given twice, or that
 *   is not decodable.
 */
export function parametersOf(url: string, known: ReadonlySet<string>): Parameters {
  const start = url.indexOf('?')
  if (start === -1 || start === url.length - 1) return noParameters
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(url.slice(start + 1))) {
    if (!known.has(name)) {
      throw invalid(`unknown query parameter ${name}; known are ${[...known].join(', ')}`, {
        parameter: name,
      })
    }
    if (parameters.has(name)) throw invalid(`query parameter ${name} is given twice`, { parameter: name })
    parameters.set(name, value)
  }
  const scopeQ = parameters.get('scopeQ')
  if (scopeQ !== undefined) parameters.set('scopeQ', withPluses(scopeQ))
  // Where it stands, it is for all routes the same.
  truthOf(parameters, 'local')
  return known.has('count') ? countAsParameter(parameters) : parameters
}

/** A `+` that was not percent-encoded arrives as a space; in a scope query it is a level, which is never empty. */
const withPluses = (scopeQ: string): string => scopeQ.replaceAll(/(?<=\/) (?=[/;,|)]|$)/g, '+')

/** Among the options, count says what `count=true` says: so it was before V1.3.1, and clients still send it. */
function countAsParameter(parameters: Map<string, string>): Parameters {
  const options = parameters.get('options')?.split(',')
  if (options?.includes('count') !== true) return parameters
  const others = options.filter((option) => option !== 'count')
  if (others.length > 0) parameters.set('options', others.join())
  else parameters.delete('options')
  if (!parameters.has('count')) parameters.set('count', 'true')
  return parameters
}

/** Refuses a URL whose percent-encoding is broken or no UTF-8. @throws GatewayError ngsi-ld.invalid-request */
export function assertDecodable(url: string): void {
  if (!url.includes('%')) return
  try {
    decodeURIComponent(url)
  } catch {
    throw invalid('the URL has broken percent-encoding')
  }
}

export interface Paging {
  readonly limit: number
  readonly offset: number
  readonly count: boolean
}

/**
 * limit, offset and count (6.3.10).
 * @throws GatewayError ngsi-ld.bad-request-data; ngsi-ld.too-many-results above `limits.pageMax`.
 */
export function pagingOf(parameters: Parameters): Paging {
  const limit = wholeNumber(parameters, 'limit') ?? limits.pageDefault.value
  const offset = wholeNumber(parameters, 'offset') ?? 0
  const count = truthOf(parameters, 'count') ?? false
  if (limit > limits.pageMax.value) {
    throw new GatewayError('ngsi-ld.too-many-results', `limit ${limit} is above ${limits.pageMax.value}`, {
      limit,
    })
  }
  if (limit === 0 && !count) throw badData('limit 0 goes only with count=true', { parameter: 'limit' })
  return { limit, offset, count }
}

/** A parameter that is a whole number >= 0. @throws GatewayError ngsi-ld.bad-request-data */
export function wholeNumber(parameters: Parameters, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text)) throw badData(`${name} is no whole number: ${text}`, { parameter: name })
  return Number(text)
}

/** A parameter that is `true` or `false`. @throws GatewayError ngsi-ld.bad-request-data */
export function truthOf(parameters: Parameters, name: string): boolean | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (text !== 'true' && text !== 'false') throw badData(`${name} must be true or false`, { parameter: name })
  return text === 'true'
}

/** Comma list of a parameter; undefined when it is absent. @throws GatewayError when an item is empty. */
export function listOf(parameters: Parameters, name: string): readonly string[] | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const items = text.split(',').map((item) => item.trim())
  if (items.includes('')) throw badData(`${name} has an empty item`, { parameter: name })
  return items
}

/**
 * Values of `options` and `format` (6.3.7, 6.3.11).
 * @throws GatewayError ngsi-ld.invalid-request for an option that is not supported, ngsi-ld.bad-request-data for a format.
 */
export function optionsOf(parameters: Parameters, known: readonly string[]): ReadonlySet<string> {
  const options = new Set(listOf(parameters, 'options'))
  const format = parameters.get('format')
  for (const option of format === undefined ? options : [...options, format]) {
    if (!known.includes(option)) {
      const supported = known.join(', ')
      if (!options.has(option)) throw badData(`format must be one of ${supported}`, { parameter: 'format' })
      throw invalid(`unsupported option ${option}; supported are ${supported}`, { option })
    }
  }
  return options
}

function invalid(message: string, details: Record<string, unknown> = {}): GatewayError {
  return new GatewayError('ngsi-ld.invalid-request', message, details)
}

function badData(message: string, details: Record<string, unknown>): GatewayError {
  return new GatewayError('ngsi-ld.bad-request-data', message, details)
}
