/**
 * Routes for broker registration (`/api/broker`) and notification callbacks (`/api/notification`). Formats
 * are those of the original component: lists as `{count, result}`, errors as `{status, message}`.
 */
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { notifiedItems } from '#client/requests/broker-messages.ts'
import { otherAddressesOf } from '#client/requests/same-broker.ts'
import { undeliveredAt } from '#client/subscriptions/silence.ts'
import type { Json, RouteEnvironment } from '#contract'
import { isObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type BrokerRow, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { kindOf, kindsOf } from '#plugins/indexing/entries/entity-kinds.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'
import { isAged, reasonOf } from './broker-warnings.ts'
import { factsOf, type RemoteFacts } from './followed-broker.ts'
import { typeOf } from './index-watches.ts'
import type { Remotes } from './remote-brokers.ts'

export interface BrokerRoutesPorts {
  readonly remotes: Remotes
  readonly catalogue: Catalogue
  readonly now: () => number
}

/** A broker as the API shows it; it has more members than these. */
interface Registration {
  readonly _id: string
  readonly host: string
  readonly [member: string]: unknown
}

/** Paths that check their own secret instead of the gateway's credentials. */
export const openPaths: readonly string[] = ['/api/notification']

export function createBrokerRoutes({ remotes, catalogue, now }: BrokerRoutesPorts) {
  /** A broker as the API shows it. */
  function registrationOf(row: BrokerRow): Registration {
    const {
      subscriptions = {},
      tenant,
      lastCrawl,
      heardAt,
      tellsDeletions,
      learntFrom,
    }: RemoteFacts = factsOf(row)
    const isOwn = row.b === ownBroker
    const reason = isOwn ? undefined : reasonOf(row)
    const failedAt = undeliveredAt(factsOf(row))
    const others = otherAddressesOf(row.host)
    return {
      _id: row.key,
      host: row.host,
      ...(isOwn || others.length === 0 ? {} : { alsoAt: others }),
      ...Object.fromEntries(
        Object.entries(subscriptions).map(([purpose, id]) => [`${purpose}SubscriptionId`, id]),
      ),
      origin: row.origin,
      state: row.state,
      since: new Date(row.since).toISOString(),
      ...(reason === undefined ? {} : { reason }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(learntFrom === undefined ? {} : { learntFrom }),
      isAged: !isOwn && isAged(row),
      ...(heardAt === undefined ? {} : { heardAt }),
      ...(failedAt === undefined ? {} : { undeliveredAt: failedAt }),
      ...(tellsDeletions === undefined ? {} : { tellsDeletions }),
      entities: catalogue.countsOf(row.b),
      ...(row.load === null ? {} : { load: { read: row.load.read, total: row.load.total } }),
      ...(lastCrawl === undefined ? {} : { lastCrawl }),
      ...remotes.counts(row.b),
    }
  }

  async function list(request: Request, environment: RouteEnvironment): Promise<Response> {
    if (request.method !== 'POST') {
      const result = remotes.all().map(registrationOf)
      return Response.json({ count: result.length, result })
    }
    const { host, tenant } = await registrationIn(environment)
    const row = await remotes.register(host, tenant)
    return Response.json(registrationOf(row), {
      status: 201,
      headers: { Location: `/api/broker/${row.key}` },
    })
  }

  async function one(request: Request, key: string): Promise<Response> {
    if (!/^[0-9a-f]{24}$/.test(key)) throw badRequestData('must be 24 hexadecimal digits', 'id')
    if (request.method === 'DELETE') {
      await remotes.remove(key)
      return new Response(null, { status: 204 })
    }
    const row = remotes.all().find((known) => known.key === key)
    if (row === undefined) throw notFound(`no broker with id ${key}`)
    return Response.json(registrationOf(row))
  }

  async function notified(
    { purpose, key, sign }: { purpose: string; key: string; sign: string },
    environment: RouteEnvironment,
  ): Promise<Response> {
    const type = typeOf(purpose)
    if (type === undefined) throw notFound(`unknown notification purpose ${purpose}`)
    const body = await jsonOf(environment)
    const items = sentItemsOf(notifiedItems(body) ?? [], now())
    const entities = items.entities.filter(({ types }) => (kindsOf(types) & kindOf(type)) !== 0)
    const isEmpty = entities.length === 0 && items.deleted.length === 0
    const stamp = isObject(body) ? own(body, 'notifiedAt') : undefined
    const at = typeof stamp === 'string' ? Date.parse(stamp) : Number.NaN
    if (isEmpty) {
      const why = items.unreadable[0] ?? `it has no entity of type ${type}`
      throw badRequestData(why, 'data')
    }
    await remotes.notified(purpose, { key, sign }, { ...items, entities }, Number.isNaN(at) ? now() : at)
    return Response.json({})
  }

  async function route(request: Request, path: string, environment: RouteEnvironment): Promise<Response> {
    const [, key] = /^\/api\/broker\/([^/]+)$/.exec(path) ?? []
    const [, purpose = '', callback = ''] = /^\/api\/notification\/([^/]+)\/?([^/]*)$/.exec(path) ?? []
    if (path === '/api/broker') {
      checkMethod(request, ['GET', 'HEAD', 'POST'])
      return list(request, environment)
    }
    if (key !== undefined) {
      checkMethod(request, ['GET', 'HEAD', 'DELETE'])
      return one(request, key)
    }
    if (purpose === '') throw notFound(`no resource at ${path}`)
    const [name = '', sign = ''] = callback.split('.')
    if (sign === '')
      throw new GatewayError(
        'http.unauthorized',
        'the callback URL does not have the secret of its subscription',
      )
    return notified({ purpose, key: name, sign }, environment)
  }

  return Object.freeze({
    /** All followed brokers as the API shows them. */
    all: () => remotes.all().map(registrationOf),
    /** Answers requests for these paths. Returns undefined for others. */
    async fetch(request: Request, environment: RouteEnvironment): Promise<Response | undefined> {
      const path = withoutTrailingSlashes(new URL(request.url).pathname)
      if (!/^\/api\/(?:broker|notification)(?:\/|$)/.test(path)) return undefined
      try {
        return await route(request, path, environment)
      } catch (thrown) {
        const error = toGatewayError(thrown)
        if (error.code === 'gateway.internal') throw error
        const { status } = error.entry
        const allow = error.details['allow']
        return Response.json(
          { status, message: error.message },
          { status, headers: typeof allow === 'string' ? { Allow: allow } : {} },
        )
      }
    },
  })
}

function checkMethod({ method }: Request, allowed: readonly string[]): void {
  if (allowed.includes(method)) return
  throw new GatewayError('http.method-not-allowed', `${method} is not allowed for this path`, {
    allow: allowed.join(', '),
  })
}

async function jsonOf(environment: RouteEnvironment): Promise<Json> {
  const json = parsedJson((await environment.body()).toString())
  if (json === undefined) throw invalidRequest('the body is not valid JSON')
  return json
}

async function registrationIn(
  environment: RouteEnvironment,
): Promise<{ host: string; tenant: string | undefined }> {
  const body = await jsonOf(environment)
  if (!isObject(body)) throw badRequestData('must be a JSON object with host', 'body')
  const { host, tenant, ...rest } = body
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw badRequestData('is unknown; supported are host and tenant', unknown)
  if (typeof host !== 'string') throw badRequestData('must be the address of a broker', 'host')
  if (tenant !== undefined && (typeof tenant !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(tenant)))
    throw badRequestData('must be the name of a tenant there', 'tenant')
  return { host, tenant: tenant }
}
