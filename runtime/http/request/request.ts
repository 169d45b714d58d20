/**
 * Reads a request into one typed value: tenant, @context, parameters, media type of the response, body. It
 * enforces the rules about the place of a @context (GS CIM 009, 6.3.5). Reading is synchronous unless
 * something must be awaited, because most read requests need no wait.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import { type Contexts, hostedContextsPath } from '#broker/contexts/context-resolver.ts'
import type { ChangeOrigin } from '#broker/state/stored-entity.ts'
import type { Broker, TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context/context.ts'
import { viaOrigin } from '#ngsi-ld/federation/via.ts'
import { withClosedQueryRings, withClosedRings } from '#ngsi-ld/geo/open-rings.ts'
import type { Parameters } from '#ngsi-ld/query/url-parameters.ts'
import { type Amendment, createAmendment, preferredMinor } from '#ngsi-ld/representation/conformance.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { type BatchItems, readItems } from './batch-items.ts'
import { type Bodies, type HttpContext, headerOf } from './body.ts'
import { refuseLoop } from './distributed-request.ts'
import {
  type AnswerType,
  answerType,
  bodyType,
  contextRelation,
  entityTypes,
  geoJson,
  hasBareLink,
  linkedContext,
  parametersOf,
  tenantName,
} from './negotiate.ts'

/** Common members of requests with and without a body. */
export interface RequestHead {
  /** '' is the default tenant. */
  readonly tenant: string
  readonly context: Context
  readonly parameters: Parameters
  /** Set if the client prefers an earlier version of the standard. */
  readonly amendment?: Amendment
  /** Value of NGSILD-Warning, for example if the body is not stored exactly as sent. */
  readonly warning?: string
}

export interface ApiRequest extends RequestHead {
  readonly broker: TenantBroker
  /** Media type of the response. For GeoJSON, it determines where the @context is placed. */
  readonly type: AnswerType
  readonly isGeoJson?: boolean
}

/** A query whose criteria are in the body. */
export interface QueryRequest extends ApiRequest {
  readonly body: Json
}

/**
 * A request to write. `enter` is called last, after all checks, because a creating request also creates its
 * tenant.
 */
interface WriteRequest extends RequestHead {
  /** @throws ngsi-ld.nonexistent-tenant; ngsi-ld.too-many-results if the tenant limit is reached. */
  enter(): TenantBroker | Promise<TenantBroker>
  /** Whether the tenant has or had a type or attribute with this full IRI. */
  readonly isKnown: (name: string) => boolean
}

export interface BodyRequest extends WriteRequest {
  readonly body: Json
}

/** A request whose items each have a context, or the reason why it is unavailable. */
export interface BatchRequest extends WriteRequest {
  readonly items: BatchItems
}

export interface RequestReaderPorts {
  readonly broker: Broker
  readonly contexts: Contexts
  readonly bodies: Bodies
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
}

export interface BodyOptions {
  readonly known?: ReadonlySet<string>
  /** The request creates its tenant if needed. */
  readonly creates?: boolean
  /** The body may be of the media type application/merge-patch+json, as for PATCH. */
  readonly patches?: boolean
  /** The body may be chunked without a length, on routes outside NGSI-LD. */
  readonly chunks?: boolean
}

export interface RequestReader {
  /** The origin of a write: the brokers in its Via header, if any. @throws peer.loop */
  by(c: HttpContext): ChangeOrigin
  /** A request without a body. */
  read(c: HttpContext, known: ReadonlySet<string>): ApiRequest | Promise<ApiRequest>
  /** A request without a body for entities; its response may be GeoJSON. */
  readEntities(c: HttpContext, known: ReadonlySet<string>): ApiRequest | Promise<ApiRequest>
  /** A request without a body whose response is not an NGSI-LD document. */
  stream(c: HttpContext, known: ReadonlySet<string>): ApiRequest | Promise<ApiRequest>
  /** A query whose criteria are in the body. */
  query(c: HttpContext, known: ReadonlySet<string>): Promise<QueryRequest>
  /** A request whose body is one document. */
  body(c: HttpContext, options?: BodyOptions): Promise<BodyRequest>
  /** A request whose body is a list; each JSON-LD item has its own @context. */
  batch(c: HttpContext, options?: BodyOptions): Promise<BatchRequest>
  /** A request whose body is not an NGSI-LD element; a @context in it is part of the content. */
  document(c: HttpContext, options?: BodyOptions): Promise<BodyRequest>
}

/** Scheme and authority of a request's URL. */
export const originOf = (c: HttpContext): string => {
  const { url } = c.req
  return `${url.slice(0, url.indexOf('://'))}://${headerOf(c, 'host') ?? 'localhost'}`
}

/**
 * Returns the context with an address for a Link header. A context without one is stored from now on (GS CIM
 * 009, 5.13), unless the store is full.
 */
export async function withAddress(
  c: HttpContext,
  { hosted }: TenantBroker,
  context: Context,
): Promise<Context> {
  if (context.address !== undefined) return context
  try {
    const id = await hosted.keep([...context.reference])
    return { ...context, address: `${originOf(c)}${hostedContextsPath}/${id}` }
  } catch (error) {
    if (isGatewayError(error, 'ngsi-ld.too-many-results') || isGatewayError(error, 'http.body-too-large')) {
      return context
    }
    throw error
  }
}

/** The form of a response. */
type Form = Pick<ApiRequest, 'type' | 'isGeoJson' | 'amendment'>

const bodyTypes = ['application/json', 'application/ld+json'] as const
const patchTypes = [...bodyTypes, 'application/merge-patch+json'] as const
const nothing: ReadonlySet<string> = new Set()
const bareLink = warningLine(
  199,
  '-',
  `a link without rel is ignored; a link to a @context needs rel=${contextRelation}`,
)
const timesAreCut = warningLine(
  299,
  '-',
  'times are stored with microsecond precision; further digits were dropped',
)

/** Adds a warning for the response. */
export const withWarning = <Warned extends Pick<RequestHead, 'warning'>>(
  request: Warned,
  warning: string | undefined,
): Warned =>
  warning === undefined
    ? request
    : { ...request, warning: [request.warning ?? [], warning].flat().join(', ') }

const warnedOfLink = <Warned extends Pick<RequestHead, 'warning'>>(
  c: HttpContext,
  request: Warned,
): Warned => (hasBareLink(headerOf(c, 'link')) ? withWarning(request, bareLink) : request)

export function createRequestReader(
  { broker, contexts, bodies, alias }: RequestReaderPorts,
  settings: { readonly defaultMediaType: AnswerType; readonly servesPlatform?: boolean | undefined },
): RequestReader {
  const tenantOf = (c: HttpContext): string => {
    refuseUnbuilt(c)
    const name = headerOf(c, 'ngsild-tenant') ?? ''
    if (name === '' || tenantName.test(name)) return name
    throw badRequestData('must have 1 to 64 letters, digits, _ or -', 'NGSILD-Tenant')
  }
  const existing = (tenant: string): TenantBroker => {
    const found = broker.tenant(tenant)
    if (found === undefined)
      throw new GatewayError('ngsi-ld.nonexistent-tenant', `no tenant ${tenant}`, { tenant })
    return found
  }
  // A tenant created by the request has no known names yet.
  const knownIn = (tenant: string) => (name: string) =>
    broker.tenant(tenant)?.inventory.isKnown(name) === true
  const linked = (c: HttpContext, tenant: string): Context | Promise<Context> => {
    const address = linkedContext(headerOf(c, 'link'))
    return address === undefined ? contexts.unnamed : contexts.resolve(withOrigin(c, address), tenant)
  }
  const embedded = (c: HttpContext, json: JsonObject, tenant: string): Context | Promise<Context> => {
    const local = json['@context']
    if (settings.servesPlatform === true && local === undefined) return contexts.unnamed
    if (local === undefined || local === null)
      throw badRequestData('is missing in a body of application/ld+json', '@context')
    return contexts.resolve(withOrigin(c, local), tenant)
  }

  const amended = settings.servesPlatform === true ? withClosedRings : (json: Json): Json => json
  const amendedParameters = (c: HttpContext, known: ReadonlySet<string>): Parameters => {
    const parameters = parametersOf(c.req.url, known)
    return settings.servesPlatform === true ? withClosedQueryRings(parameters) : parameters
  }

  const open = async <Body>(
    c: HttpContext,
    { known = nothing, creates = false, patches = c.req.method === 'PATCH' }: BodyOptions,
    read: (c: HttpContext) => Promise<Body>,
  ) => {
    const tenant = tenantOf(c)
    const parameters = parametersOf(c.req.url, known)
    requireLength(c)
    const contentType = bodyType(headerOf(c, 'content-type'), patches ? patchTypes : bodyTypes)
    const isLinked = contentType !== 'application/ld+json'
    if (!isLinked && linkedContext(headerOf(c, 'link')) !== undefined) {
      throw badRequestData(
        'a body of application/ld+json has its own @context; remove the Link header',
        'Link',
      )
    }
    const json = await read(c)
    const context = isLinked ? await linked(c, tenant) : contexts.core
    const enter = () => (creates ? broker.tenantForCreate(tenant) : (c.env.broker ?? existing(tenant)))
    const more = {
      isKnown: knownIn(tenant),
      ...amendingFor(headerOf(c, 'prefer')),
      ...(bodies.hasFinerTimes(c) ? { warning: timesAreCut } : {}),
    }
    return warnedOfLink(c, { tenant, parameters, json, context, isLinked, enter, ...more })
  }

  const readAs = (
    c: HttpContext,
    known: ReadonlySet<string>,
    form: Form,
  ): ApiRequest | Promise<ApiRequest> => {
    const tenant = tenantOf(c)
    const parameters = amendedParameters(c, known)
    const context = linked(c, tenant)
    const at = c.env.broker ?? existing(tenant)
    const request = (found: Context): ApiRequest =>
      warnedOfLink<ApiRequest>(c, { tenant, broker: at, context: found, parameters, ...form })
    return context instanceof Promise ? context.then(request) : request(context)
  }
  const entityForm = (c: HttpContext): Form => {
    const type = answerType(headerOf(c, 'accept'), settings.defaultMediaType, entityTypes)
    const prefer = headerOf(c, 'prefer')
    if (type !== geoJson) return prefer === undefined ? { type } : { type, ...amendingFor(prefer) }
    const inLink = /(?:^|[,;\s])body=json(?:$|[,;\s])/i.test(prefer ?? '')
    const at = inLink ? 'application/json' : 'application/ld+json'
    return { type: at, isGeoJson: true, ...amendingFor(prefer) }
  }

  return Object.freeze({
    by(c) {
      if (headerOf(c, 'via') === undefined) return 'http'
      return viaOrigin(refuseLoop(c, alias(tenantOf(c))), limits.viaHopsMax.value) ?? 'http'
    },

    read(c, known) {
      // A response without a body has no media type to negotiate.
      const accept = c.req.method === 'DELETE' ? undefined : headerOf(c, 'accept')
      const type = answerType(accept, settings.defaultMediaType)
      return readAs(c, known, { type, ...amendingFor(headerOf(c, 'prefer')) })
    },

    stream: (c, known) => readAs(c, known, { type: settings.defaultMediaType }),

    readEntities: (c, known) => readAs(c, known, entityForm(c)),

    async query(c, known) {
      const form = entityForm(c)
      const { isLinked, context, tenant, parameters, warning, ...sent } = await open(
        c,
        { known },
        bodies.json,
      )
      const json = amended(sent.json)
      if (!isObject(json)) throw badRequestData('must be an object of type Query', 'body')
      if (isLinked) refuseEmbedded(json)
      const at = c.env.broker ?? existing(tenant)
      const own = isLinked ? context : await embedded(c, json, tenant)
      const shown = form.type === 'application/json' ? await withAddress(c, existing(tenant), own) : own
      const request: QueryRequest = { tenant, broker: at, context: shown, parameters, body: json, ...form }
      return withWarning(request, warning)
    },

    async body(c, options = {}) {
      const { json: sent, isLinked, context, ...request } = await open(c, options, bodies.json)
      const json = amended(sent)
      if (!isObject(json)) {
        if (!isLinked) throw invalidRequest('body: a body of application/ld+json is an object')
        return { ...request, body: json, context }
      }
      if (isLinked) refuseEmbedded(json)
      const { jsonldContext: named } = json
      const body = named === undefined ? json : { ...json, jsonldContext: withOrigin(c, named) }
      return { ...request, body, context: isLinked ? context : await embedded(c, json, request.tenant) }
    },

    async batch(c, options = {}) {
      const { json: body, isLinked, context, ...request } = await open(c, options, bodies.batch)
      const items = await readItems(
        body,
        (item) => {
          if (!isObject(item)) return context
          if (!isLinked) return embedded(c, item, request.tenant)
          refuseEmbedded(item)
          return context
        },
        amended,
      )
      return { ...request, items, context }
    },

    async document(c, { known = nothing, creates = false, chunks = false } = {}) {
      const tenant = tenantOf(c)
      const parameters = parametersOf(c.req.url, known)
      if (!chunks) requireLength(c)
      bodyType(headerOf(c, 'content-type'), bodyTypes)
      const body = await bodies.json(c)
      const enter = () => (creates ? broker.tenantForCreate(tenant) : existing(tenant))
      return { tenant, parameters, body, context: contexts.core, enter, isKnown: knownIn(tenant) }
    },
  } satisfies RequestReader)
}

/** The version of the standard that a Prefer header asks for [NGSI-LD 1.9, 4.3.6.8]. */
function amendingFor(prefer: string | undefined): Pick<ApiRequest, 'amendment'> {
  const minor = preferredMinor(prefer)
  return minor === undefined ? {} : { amendment: createAmendment(minor) }
}

/** Refuses headers that this route does not support. @throws ngsi-ld.not-supported */
function refuseUnbuilt(c: HttpContext): void {
  const { map, isSnapshot = false } = c.env
  if (headerOf(c, 'ngsild-snapshot') !== undefined && !isSnapshot) {
    throw notSupported(
      'NGSILD-Snapshot: only entities, histories, types and attributes can be read from a snapshot',
    )
  }
  if (headerOf(c, 'ngsild-entitymap') !== undefined && map === undefined) {
    throw notSupported(
      'NGSILD-EntityMap: only queries and retrievals of entities and histories can use an entity map',
    )
  }
}

/**
 * Requires Content-Length on requests with a body; chunked bodies are refused [NGSI-LD 6.3.4].
 *
 * @throws http.length-required
 */
function requireLength(c: HttpContext): void {
  if (headerOf(c, 'content-length') !== undefined) return
  throw new GatewayError('http.length-required', 'the request has no Content-Length')
}

/** Resolves the path of a hosted context against the request's URL [RFC 3986 5.1]. */
function withOrigin(c: HttpContext, local: Json): Json {
  if (Array.isArray(local)) return (local as readonly Json[]).map((item) => withOrigin(c, item))
  if (typeof local !== 'string' || !local.startsWith(`${hostedContextsPath}/`)) return local
  return originOf(c) + local
}

function refuseEmbedded(json: JsonObject): void {
  if (Object.hasOwn(json, '@context')) {
    throw badRequestData(
      '@context: is allowed only in a body of application/ld+json; with application/json use a Link header',
    )
  }
}
