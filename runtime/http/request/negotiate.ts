/**
 * Parses request headers and query parameters into typed values: media types of the response and the body,
 * the @context of a Link header, paging, options. Pure functions; callers pass the parameters and media types
 * that a route supports. GS CIM 009, 6.3.
 */

import { acceptsWildcards, qualitiesOf } from '#base/load/media-range.ts'
import { GatewayError } from '#base/register/errors.ts'
import { hostedContextsPath } from '#broker/contexts/context-resolver.ts'
import {
  badParameter,
  countAsParameter,
  listOf,
  type Parameters,
  truthOf,
} from '#ngsi-ld/query/url-parameters.ts'

/** Media types of responses, in the specification's order of preference (6.3.4). */
export const answerTypes = ['application/json', 'application/ld+json'] as const
export type AnswerType = (typeof answerTypes)[number]

export const geoJson = 'application/geo+json'
/** Media types of responses with entities: GeoJSON is offered as well. */
export const entityTypes = [...answerTypes, geoJson] as const

export const contextRelation = 'http://www.w3.org/ns/json-ld#context'

/** Valid values of NGSILD-Tenant. */
export const tenantName = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Chooses the media type of the response. Quality weights apply; the most specific range decides for each
 * type [RFC 9110 12.5.1]. Equal types keep the order of `answerTypes`; `byDefault` is used if the client
 * accepts any.
 *
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
      `${accept} is not available; available are ${offered.join(', ')}`,
      {
        available: offered,
      },
    )
  }
  if (qualities.every((quality) => quality === best) && acceptsWildcards(accept)) return byDefault
  return offered[qualities.indexOf(best)]!
}

/**
 * The media type of a body, lower case, without parameters. @throws GatewayError http.unsupported-media-type
 */
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

/** Every significant token of a Link header [RFC 8288 3], and any other text. */
const linkToken = /<[^<>]*>|"(?:[^"\\]|\\.)*"|[,;=]|[^\s<>",;=]+|[<>"]/g

/**
 * The address of the @context that a Link header names, if any; links with other relations are ignored. A
 * hosted context may be named by the path from its Location header.
 *
 * @throws GatewayError ngsi-ld.bad-request-data if it names several contexts or a relative URL;
 * ngsi-ld.invalid-request if the header is malformed.
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
      `the Link header names a @context that is not an absolute URL: ${address}`,
    )
  }
  return address
}

/** Whether a Link header has a link without a relation, which has no effect. */
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

const noParameters: Parameters = new Map()

/**
 * The decoded query parameters of a request.
 *
 * @throws GatewayError ngsi-ld.invalid-request for an unknown, repeated or undecodable parameter.
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
  // Checked here because its syntax is the same for all routes.
  truthOf(parameters, 'local')
  return known.has('count') ? countAsParameter(parameters) : parameters
}

/**
 * Restores each `+` that was not percent-encoded and arrived as a space. In a scope query it is a level, and
 * levels are never empty.
 */
const withPluses = (scopeQ: string): string => scopeQ.replaceAll(/(?<=\/) (?=[/;,|)]|$)/g, '+')

/** Refuses a URL with invalid percent-encoding or UTF-8. @throws GatewayError ngsi-ld.invalid-request */
export function assertDecodable(url: string): void {
  if (!url.includes('%')) return
  try {
    decodeURIComponent(url)
  } catch {
    throw invalid('the URL has broken percent-encoding')
  }
}

/**
 * Values of `options` and `format` (6.3.7, 6.3.11).
 *
 * @throws GatewayError ngsi-ld.invalid-request for an unsupported option, ngsi-ld.bad-request-data for an
 * unsupported format.
 */
export function optionsOf(parameters: Parameters, known: readonly string[]): ReadonlySet<string> {
  const options = new Set(listOf(parameters, 'options'))
  const format = parameters.get('format')
  for (const option of format === undefined ? options : [...options, format]) {
    if (!known.includes(option)) {
      const supported = known.join(', ')
      if (!options.has(option)) throw badParameter(`format must be one of ${supported}`, 'format')
      throw invalid(`unsupported option ${option}; supported are ${supported}`, { option })
    }
  }
  return options
}

function invalid(message: string, details: Record<string, unknown> = {}): GatewayError {
  return new GatewayError('ngsi-ld.invalid-request', message, details)
}
