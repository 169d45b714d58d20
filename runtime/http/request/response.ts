/**
 * Successful answers: bodies as text, with the headers that the specification wants beside them (GS CIM 009, 6.3).
 * An entity that needs no translation leaves as the text that is stored. Headers are set where the Response is
 * made and never after it, since that would cost four times the time of the whole answer.
 */
import type { IncomingMessage } from 'node:http'
import { productToken } from '#base/register/version.ts'
import { type Context, contextMember } from '#ngsi-ld/context/context.ts'
import { contextRelation, geoJson } from './negotiate.ts'
import type { Ask, AskHead } from './request.ts'
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
  contextFor(ask: Ask): Context
  /** 200 with one entity. */
  entity(ask: Ask, text: string, context: Context): Response
  /** The same before it is a Response. */
  whole(ask: Ask, text: string, context: Context): Reply
  /** That of a version, which becomes its ETag; 304 where that is one of those that the client `knows`. */
  version(ask: Ask, text: string, context: Context, state: EntityState): Reply
  /** 200 with a list of entities; 206 where a `range` says how much of their history it holds. */
  list(ask: Ask, rendered: Rendered, page?: Page): Response
  /** The same before it is a Response. */
  page(ask: Ask, rendered: Rendered, page?: Page): Reply
  /** 206 with one entity whose history was cut; `range` is the value of Content-Range. */
  partial(ask: Ask, text: string, context: Context, range: string): Response
  /** 201 without a body, or with `text`, where old clients want one. */
  created(ask: AskHead, location: string, text?: string): Response
  noContent(ask: AskHead): Response
  /** JSON that has no @context, in an answer to a tenant: id lists, results of batches and updates. */
  data(
    ask: Pick<AskHead, 'tenant' | 'amendment' | 'warning'>,
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

  const head = (ask: Ask, context: Context): Headers => {
    const headers = plainHead(ask, context)
    return ask.amendment === undefined && ask.warning === undefined
      ? headers
      : { ...headers, ...applied(ask), ...warningOf(ask) }
  }
  const plainHead = ({ type, tenant, isGeoJson }: Ask, context: Context): Headers => {
    if (isGeoJson === true) {
      const headers = { ...headersOf(type, context), 'Content-Type': geoJson }
      return tenant === '' ? headers : { ...headers, 'NGSILD-Tenant': tenant }
    }
    const isLd = type === 'application/ld+json'
    const headers = context === core ? (isLd ? coreLd : coreJson) : headersOf(type, context)
    return tenant === '' ? headers : { ...headers, 'NGSILD-Tenant': tenant }
  }
  const plain = (ask: Pick<AskHead, 'tenant' | 'warning'>): Headers => ({
    Server: productToken,
    ...(ask.tenant === '' ? {} : { 'NGSILD-Tenant': ask.tenant }),
    ...warningOf(ask),
  })

  const applied = ({ amendment }: Pick<AskHead, 'amendment'>): Headers =>
    amendment === undefined ? {} : { 'Preference-Applied': `ngsi-ld=${amendment.version}` }

  const warningOf = ({ warning }: Pick<AskHead, 'warning'>): Headers =>
    warning === undefined ? {} : { 'NGSILD-Warning': warning }

  const wholeOf = (ask: Ask, text: string, context: Context): Reply => {
    const body = ask.type === 'application/json' ? text : withMember(text, memberText(context))
    return { status: statusOf(ask), headers: head(ask, context), body }
  }
  const pageOf = (ask: Ask, { texts, context }: Rendered, page?: Page): Reply => {
    const member = ask.type === 'application/json' ? undefined : memberText(context)
    const body = ask.isGeoJson === true ? collection(texts, member) : array(texts, member)
    const headers = head(ask, context)
    if (page === undefined) return { status: statusOf(ask), headers, body }
    return {
      status: page.range === undefined ? statusOf(ask) : 206,
      headers: { ...headers, ...pageHeaders(headers, ask.isGeoJson === true ? geoJson : ask.type, page) },
      body,
    }
  }

  return Object.freeze({
    contextFor({ type, context }) {
      if (context.isCore) return core
      if (type === 'application/ld+json') return context
      return linkOf(context) === undefined ? core : context
    },

    entity: (ask, text, context) => responseOf(wholeOf(ask, text, context)),
    whole: wholeOf,

    version(ask, text, context, { version, knows }) {
      const tag = versionTag(version, representationOf(ask), context)
      if (knows !== undefined && isNamed(knows, tag))
        return { status: 304, headers: { ...plain(ask), ETag: tag }, body: null }
      const body = ask.type === 'application/json' ? text : withMember(text, memberText(context))
      return { status: statusOf(ask), headers: { ...head(ask, context), ETag: tag }, body }
    },

    list: (ask, rendered, page) => responseOf(pageOf(ask, rendered, page)),
    page: pageOf,

    partial(ask, text, context, range) {
      const body = ask.type === 'application/json' ? text : withMember(text, memberText(context))
      return new Response(body, { status: 206, headers: { ...head(ask, context), 'Content-Range': range } })
    },

    created(ask, location, text) {
      const headers = { ...plain(ask), Location: location }
      if (text === undefined) return new Response('', { status: 201, headers })
      return new Response(text, { status: 201, headers: { ...headers, 'Content-Type': 'text/plain' } })
    },

    noContent: (ask) => new Response(null, { status: 204, headers: plain(ask) }),

    data: (ask, value, { status = 200, headers = {} } = {}) =>
      new Response(JSON.stringify(value), {
        status,
        headers: { 'Content-Type': 'application/json', ...plain(ask), ...applied(ask), ...headers },
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
const statusOf = ({ amendment }: Ask): number => (amendment?.isAltered() === true ? 203 : 200)

/** What tells representations of one version of an entity apart, beside its context. */
const representationOf = ({ type, isGeoJson, amendment }: Ask): string => {
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
