/**
 * Builds successful responses: bodies as text with the headers that the specification requires (GS CIM 009,
 * 6.3). An entity that needs no translation is sent as its stored text. Headers are set when the Response is
 * created; changing them later would take four times as long as the whole response.
 */
import { productToken } from '#base/register/version.ts'
import type { DirectRequest, Reply } from '#contract'
import { type Context, contextMember } from '#ngsi-ld/context/context.ts'
import { contextRelation, geoJson } from './negotiate.ts'
import type { ApiRequest, RequestHead } from './request.ts'
import { isNamed, versionTag } from './version-tag.ts'

/** The reply to a simple read; undefined passes the request to the full route. */
export type DirectReads = (request: DirectRequest) => Reply | undefined

type Headers = Readonly<Record<string, string>>

/** Entities as JSON texts without @context, and the context of their names. */
export interface RenderedEntities {
  readonly texts: readonly string[]
  readonly context: Context
}

export interface PageLinks {
  readonly next?: string | undefined
  readonly prev?: string | undefined
}

export interface Answers {
  /** The context for names in the response; application/json can refer to one only by Link. */
  contextFor(request: ApiRequest): Context
  /** 200 with one entity. */
  entity(request: ApiRequest, text: string, context: Context): Response
  /** Like the method above, but as a plain reply. */
  whole(request: ApiRequest, text: string, context: Context): Reply
  /**
   * The reply for a version of an entity, with the version as ETag; 304 if the client's If-None-Match names
   * it.
   */
  version(request: ApiRequest, text: string, context: Context, state: EntityVersion): Reply
  /** 200 with a list of entities; 206 if `range` limits the histories. */
  list(request: ApiRequest, rendered: RenderedEntities, page?: PageHeaders): Response
  /** Like the method above, but as a plain reply. */
  page(request: ApiRequest, rendered: RenderedEntities, page?: PageHeaders): Reply
  /** 206 with one entity whose history is cut; `range` is the value of Content-Range. */
  partial(request: ApiRequest, text: string, context: Context, range: string): Response
  /** 201 without a body, or with `text` for old clients that expect one. */
  created(request: RequestHead, location: string, text?: string): Response
  noContent(request: RequestHead): Response
  /** JSON without @context in a tenant's response: lists of ids, results of batches and updates. */
  data(
    request: Pick<RequestHead, 'tenant' | 'amendment' | 'warning'>,
    value: unknown,
    how?: { status?: number; headers?: Headers },
  ): Response
  /** JSON without @context and tenant: information about the gateway. */
  json(value: unknown, status?: number, headers?: Headers): Response
}

/** The current version of an entity, and the client's If-None-Match. */
export interface EntityVersion {
  readonly version: number
  readonly knows: string | undefined
}

export interface PageHeaders {
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
  const pageOf = (request: ApiRequest, { texts, context }: RenderedEntities, page?: PageHeaders): Reply => {
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
      if (text === undefined)
        return new Response(null, { status: 201, headers: { ...headers, 'Content-Length': '0' } })
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

/**
 * 203 if the response differs from the stored entity to suit an earlier version of the standard (1.9,
 * 6.3.21).
 */
const statusOf = ({ amendment }: ApiRequest): number => (amendment?.isAltered() === true ? 203 : 200)

/** The form of a representation: part of its ETag, beside version and context. */
const representationOf = ({ type, isGeoJson, amendment }: ApiRequest): string => {
  const form = isGeoJson === true ? `${geoJson};${type}` : type
  return amendment === undefined ? form : `${form};ngsi-ld=${amendment.version}`
}

function array(texts: readonly string[], member: string | undefined): string {
  const items = member === undefined ? texts : texts.map((text) => withMember(text, member))
  return `[${listed(items)}]`
}

/** Features as one FeatureCollection with a common @context. */
function collection(features: readonly string[], member: string | undefined): string {
  const text = `{"type":"FeatureCollection","features":[${listed(features)}]}`
  return member === undefined ? text : withMember(text, member)
}

/**
 * Joins texts with commas. V8 copies a concatenated string once, when it is sent; it would copy the result of
 * join() twice.
 */
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

/** Appends a member to the text of a JSON object. */
const withMember = (text: string, member: string): string =>
  `${text.slice(0, -1)}${text === '{}' ? '' : ','}${member}}`

function headersOf(type: string, context: Context): Headers {
  const headers = { 'Content-Type': type, Server: productToken }
  const link = type === 'application/json' ? linkOf(context) : undefined
  return Object.freeze(link === undefined ? headers : { ...headers, Link: link })
}

/** The Link header for a context, if one address identifies it. */
function linkOf({ address: named }: Context): string | undefined {
  if (named === undefined) return undefined
  const address = URL.parse(named)?.href ?? encodeURI(named)
  return `<${address}>; rel="${contextRelation}"; type="application/ld+json"`
}

function pageHeaders(headers: Headers, type: string, page: PageHeaders): Headers {
  const links = (['next', 'prev'] as const).flatMap((relation) => {
    const target = page.links[relation]
    return target === undefined ? [] : [`<${target}>;rel="${relation}";type="${type}"`]
  })
  // Paging links precede the context link, because many clients read only the first link.
  const all = headers['Link'] === undefined ? links : [...links, headers['Link']]
  return {
    ...(all.length === 0 ? {} : { Link: all.join(', ') }),
    ...(page.count === undefined ? {} : { 'NGSILD-Results-Count': String(page.count) }),
    ...(page.range === undefined ? {} : { 'Content-Range': page.range }),
  }
}
