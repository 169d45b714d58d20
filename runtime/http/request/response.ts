/**
 * Successful answers: bodies as text, with the headers that the specification wants beside them (GS CIM 009, 6.3).
 * An entity that needs no translation leaves as the text that is stored. Headers are set where the Response is
 * made and never after it, since that would cost four times the time of the whole answer.
 */
import type { IncomingMessage } from 'node:http'
import { productToken } from '#base/register/version.ts'
import { type Context, contextMember } from '#ngsi-ld/context/context.ts'
import { contextRelation, geoJson } from './negotiate.ts'
import type { ApiRequest, RequestHead } from './request.ts'
import { isNamed, versionTag } from './version-tag.ts'

/** The answer to a request, if it is a plain one; undefined leaves it to the long way. */
export type DirectReads = (incoming: IncomingMessage) => Reply | undefined

type Headers = Readonly<Record<string, string>>

/** An answer before it is a Response, for whoever writes it to the connection without one. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: string | null
}

/** Entities as JSON text without @context, and the context their names are in. */
export interface Rendered {
  readonly texts: readonly string[]
  readonly context: Context
}

export interface PageLinks {
  readonly next?: string | undefined
  readonly prev?: string | undefined
}

export interface Answers {
  /** The context that names in the answer to this request are in: JSON can only name one by Link. */
  contextFor(request: ApiRequest): Context
  /** 200 with one entity. */
  entity(request: ApiRequest, text: string, context: Context): Response
  /** The same before it is a Response. */
  whole(request: ApiRequest, text: string, context: Context): Reply
  /** That of a version, which becomes its ETag; 304 where that is one of those that the client `knows`. */
  version(request: ApiRequest, text: string, context: Context, state: EntityState): Reply
  /** 200 with a list of entities; 206 where a `range` says how much of their history it holds. */
  list(request: ApiRequest, rendered: Rendered, page?: Page): Response
  /** The same before it is a Response. */
  page(request: ApiRequest, rendered: Rendered, page?: Page): Reply
  /** 206 with one entity whose history was cut; `range` is the value of Content-Range. */
  partial(request: ApiRequest, text: string, context: Context, range: string): Response
  /** 201 without a body, or with `text`, where old clients want one. */
  created(request: RequestHead, location: string, text?: string): Response
  noContent(request: RequestHead): Response
  /** JSON that has no @context, in an answer to a tenant: id lists, results of batches and updates. */
  data(
    request: Pick<RequestHead, 'tenant' | 'amendment' | 'warning'>,
    value: unknown,
    how?: { status?: number; headers?: Headers },
  ): Response
  /** JSON that has no @context: information about the gateway. */
  json(value: unknown, status?: number, headers?: Headers): Response
}

/** The version that an entity is in, and the If-None-Match of the client. */
export interface EntityState {
  readonly version: number
  readonly knows: string | undefined
}

export interface Page {
  readonly count?: number | undefined
  readonly links: PageLinks
  /** Value of Content-Range. */
  readonly range?: string | undefined
}

export function createAnswers({ core }: { core: Context }): Answers {
  const coreJson = headersOf('application/json', core)
  const coreLd = headersOf('application/ld+json', core)

  const head = (request: ApiRequest, context: Context): Headers => {
    const headers = plainHead(request, context)
    return request.amendment === undefined && request.warning === undefined
      ? headers
      : { ...headers, ...applied(request), ...warningOf(request) }
  }
  const plainHead = ({ type, tenant, isGeoJson }: ApiRequest, context: Context): Headers => {
    if (isGeoJson === true) {
      const headers = { ...headersOf(type, context), 'Content-Type': geoJson }
      return tenant === '' ? headers : { ...headers, 'NGSILD-Tenant': tenant }
    }
    const isLd = type === 'application/ld+json'
    const headers = context === core ? (isLd ? coreLd : coreJson) : headersOf(type, context)
    return tenant === '' ? headers : { ...headers, 'NGSILD-Tenant': tenant }
  }
  const plain = (request: Pick<RequestHead, 'tenant' | 'warning'>): Headers => ({
    Server: productToken,
    ...(request.tenant === '' ? {} : { 'NGSILD-Tenant': request.tenant }),
    ...warningOf(request),
  })

  const applied = ({ amendment }: Pick<RequestHead, 'amendment'>): Headers =>
    amendment === undefined ? {} : { 'Preference-Applied': `ngsi-ld=${amendment.version}` }

  const warningOf = ({ warning }: Pick<RequestHead, 'warning'>): Headers =>
    warning === undefined ? {} : { 'NGSILD-Warning': warning }

  const wholeOf = (request: ApiRequest, text: string, context: Context): Reply => {
    const body = request.type === 'application/json' ? text : withMember(text, memberText(context))
    return { status: statusOf(request), headers: head(request, context), body }
  }
  const pageOf = (request: ApiRequest, { texts, context }: Rendered, page?: Page): Reply => {
    const member = request.type === 'application/json' ? undefined : memberText(context)
    const body = request.isGeoJson === true ? collection(texts, member) : array(texts, member)
    const headers = head(request, context)
    if (page === undefined) return { status: statusOf(request), headers, body }
    return {
      status: page.range === undefined ? statusOf(request) : 206,
      headers: {
        ...headers,
        ...pageHeaders(headers, request.isGeoJson === true ? geoJson : request.type, page),
      },
      body,
    }
  }

  return Object.freeze({
    contextFor({ type, context }) {
      if (context.isCore) return core
      if (type === 'application/ld+json') return context
      return linkOf(context) === undefined ? core : context
    },

    entity: (request, text, context) => responseOf(wholeOf(request, text, context)),
    whole: wholeOf,

    version(request, text, context, { version, knows }) {
      const tag = versionTag(version, representationOf(request), context)
      if (knows !== undefined && isNamed(knows, tag))
        return { status: 304, headers: { ...plain(request), ETag: tag }, body: null }
      const body = request.type === 'application/json' ? text : withMember(text, memberText(context))
      return { status: statusOf(request), headers: { ...head(request, context), ETag: tag }, body }
    },

    list: (request, rendered, page) => responseOf(pageOf(request, rendered, page)),
    page: pageOf,

    partial(request, text, context, range) {
      const body = request.type === 'application/json' ? text : withMember(text, memberText(context))
      return new Response(body, {
        status: 206,
        headers: { ...head(request, context), 'Content-Range': range },
      })
    },

    created(request, location, text) {
      const headers = { ...plain(request), Location: location }
      if (text === undefined) return new Response('', { status: 201, headers })
      return new Response(text, { status: 201, headers: { ...headers, 'Content-Type': 'text/plain' } })
    },

    noContent: (request) => new Response(null, { status: 204, headers: plain(request) }),

    data: (request, value, { status = 200, headers = {} } = {}) =>
      new Response(JSON.stringify(value), {
        status,
        headers: { 'Content-Type': 'application/json', ...plain(request), ...applied(request), ...headers },
      }),

    json: (value, status = 200, headers = {}) =>
      new Response(JSON.stringify(value), {
        status,
        headers: { 'Content-Type': 'application/json', Server: productToken, ...headers },
      }),
  } satisfies Answers)
}

export const responseOf = ({ status, headers, body }: Reply): Response =>
  new Response(body, { status, headers })

/** 203 where the answer is not what is stored, but what an earlier version would have (1.9, 6.3.21). */
const statusOf = ({ amendment }: ApiRequest): number => (amendment?.isAltered() === true ? 203 : 200)

/** What tells representations of one version of an entity apart, beside its context. */
const representationOf = ({ type, isGeoJson, amendment }: ApiRequest): string => {
  const form = isGeoJson === true ? `${geoJson};${type}` : type
  return amendment === undefined ? form : `${form};ngsi-ld=${amendment.version}`
}

function array(texts: readonly string[], member: string | undefined): string {
  const items = member === undefined ? texts : texts.map((text) => withMember(text, member))
  return `[${listed(items)}]`
}

/** Features as one object, with one @context for all. */
function collection(features: readonly string[], member: string | undefined): string {
  const text = `{"type":"FeatureCollection","features":[${listed(features)}]}`
  return member === undefined ? text : withMember(text, member)
}

/** Texts with commas between them. V8 copies what is added up once, when it is sent; it would copy the result of a join once more. */
function listed(texts: readonly string[]): string {
  let list = ''
  let comma = ''
  for (const text of texts) {
    list += comma + text
    comma = ','
  }
  return list
}

const memberText = (context: Context): string => `"@context":${JSON.stringify(contextMember(context))}`

/** An object's text with one more member at its end. */
const withMember = (text: string, member: string): string =>
  `${text.slice(0, -1)}${text === '{}' ? '' : ','}${member}}`

function headersOf(type: string, context: Context): Headers {
  const headers = { 'Content-Type': type, Server: productToken }
  const link = type === 'application/json' ? linkOf(context) : undefined
  return Object.freeze(link === undefined ? headers : { ...headers, Link: link })
}

/** The Link header that names a context, where one address is enough for it. */
function linkOf({ address: named }: Context): string | undefined {
  if (named === undefined) return undefined
  const address = URL.parse(named)?.href ?? encodeURI(named)
  return `<${address}>; rel="${contextRelation}"; type="application/ld+json"`
}

function pageHeaders(headers: Headers, type: string, page: Page): Headers {
  const links = (['next', 'prev'] as const).flatMap((relation) => {
    const target = page.links[relation]
    return target === undefined ? [] : [`<${target}>;rel="${relation}";type="${type}"`]
  })
  // Many clients look at the first link alone, and need the next page more than the context.
  const all = headers['Link'] === undefined ? links : [...links, headers['Link']]
  return {
    ...(all.length === 0 ? {} : { Link: all.join(', ') }),
    ...(page.count === undefined ? {} : { 'NGSILD-Results-Count': String(page.count) }),
    ...(page.range === undefined ? {} : { 'Content-Range': page.range }),
  }
}
