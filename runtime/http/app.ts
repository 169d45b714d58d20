/**
 * The HTTP interface: one table of paths and methods. Paths match with and without a trailing slash. A known
 * path with an unknown method gets 405 and an Allow header. There is no middleware: each request runs one
 * function, and one place turns thrown errors into problem bodies.
 */

import { Hono } from 'hono'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Metrics } from '#base/register/metrics.ts'
import { productToken } from '#base/register/version.ts'
import { type Contexts, hostedContextsPath, platformContextPath } from '#broker/contexts/context-resolver.ts'
import type { Snapshots } from '#broker/tenant/snapshot-files.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import type { Backups } from '#broker/upkeep/backup-schedule.ts'
import type { DirectRequest } from '#contract'
import { createEntityMaps } from '#federation/entity-maps.ts'
import type { Sources } from '#federation/sources.ts'
import type { SubscriptionForwarding } from '#federation/subscription-forwarding.ts'
import type { Tunnels } from '#federation/tunnels.ts'
import { createJsonLdContextRoutes } from '#http/contexts/hosted-context-routes.ts'
import { createContextRoutes } from '#http/contexts/platform-context-route.ts'
import { createDistribution } from '#http/distribution/distributed-routes.ts'
import { createSourceIdentityRoutes, sourceIdentityPath } from '#http/distribution/source-identity.ts'
import { createEntityOperationRoutes } from '#http/entities/batch-routes.ts'
import { createDirectReads } from '#http/entities/direct-reads.ts'
import { createDiscoveryRoutes } from '#http/entities/discovery.ts'
import { createEntityReads } from '#http/entities/entity-reads.ts'
import { createEntityRoutes } from '#http/entities/entity-routes.ts'
import { createEntityWriteRoutes } from '#http/entities/entity-writes.ts'
import { createPurgeRoutes } from '#http/entities/purge.ts'
import { createEntityMapTable } from '#http/entity-maps/entity-map-routes.ts'
import { createMappedQueries } from '#http/entity-maps/mapped-queries.ts'
import { createTemporalRoutes } from '#http/history/temporal-routes.ts'
import { createTemporalWriteRoutes } from '#http/history/temporal-writes.ts'
import { createRouter } from '#http/listener/router.ts'
import { openApiOf } from '#http/openapi/openapi.ts'
import { backupsPath, createBackupRoutes } from '#http/operator/backup-routes.ts'
import { type ComponentRoutes, type Components, createComponentRoutes } from '#http/operator/components.ts'
import { createDeviceTable } from '#http/operator/device-routes.ts'
import { createDigestRoutes, digestsPath } from '#http/operator/digest-routes.ts'
import { createFrontPage } from '#http/operator/front-page.ts'
import { createAdminRoutes } from '#http/operator/health.ts'
import { createModelTable, type ModelRoutePorts } from '#http/operator/model-routes.ts'
import { createSenmlRoutes, senmlPath, type TakeFrame } from '#http/operator/senml-route.ts'
import { createTunnelled } from '#http/operator/tunnel-requests.ts'
import { createTunnelTable } from '#http/operator/tunnel-routes.ts'
import { createUplinkTable, type UplinkRoutePorts } from '#http/operator/uplink-routes.ts'
import { createBodies, headerOf } from '#http/request/body.ts'
import { createProblems } from '#http/request/error-response.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import { type AnswerType, assertDecodable } from '#http/request/negotiate.ts'
import { withSlashesEncoded } from '#http/request/path-ids.ts'
import { createRequestReader } from '#http/request/request.ts'
import { createAnswers, type DirectReads } from '#http/request/response.ts'
import { createSnapshotRoutes, type SendNotification } from '#http/snapshots/snapshot-routes.ts'
import { createStreamRoutes } from '#http/subscriptions/notification-streams.ts'
import { createSourceNotificationTable } from '#http/subscriptions/source-notifications.ts'
import { createContextSourceTable } from '#http/subscriptions/source-routes.ts'
import { createSubscriptionTable, subscriptionsPath } from '#http/subscriptions/subscription-routes.ts'
import type { Devices } from '#intake/devices.ts'
import { type ConformanceProfile, profiles } from '#ngsi-ld/values/profile.ts'
import {
  discoveryTable,
  entityTable,
  type Method,
  type Methods,
  type Route,
  snapshotTable,
  type Table,
  temporalTable,
} from './entity-table.ts'

export interface AppPorts extends Instruments {
  readonly broker: Broker
  readonly contexts: Contexts
  readonly snapshots: Snapshots
  readonly backups: Backups
  readonly notify: SendNotification
  readonly takeFrame: TakeFrame
  readonly devices: Devices
  /** The reasons why the gateway is not ready; empty when it is. */
  readonly unreadiness: () => readonly string[]
  /** Problems that need an operator's attention although every request is served. */
  readonly complaints: () => readonly string[]
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
  readonly sources: Sources
  readonly forwarding: SubscriptionForwarding
  readonly uplinks: UplinkRoutePorts['uplinks']
  readonly tunnels: Tunnels
  readonly components: Components
  readonly models: ModelRoutePorts['models']
  /** The state of this gateway's registrations at other brokers; undefined until it is known. */
  readonly downward: () => object | undefined
}

export interface AppSettings {
  readonly profile: ConformanceProfile
  /** Media type of responses to clients that accept any. */
  readonly defaultMediaType: AnswerType
  readonly dataFormat: number
  /** The address at which other brokers reach this gateway, if known. */
  readonly publicUrl?: string | undefined
  /** Most instances of history in one answer. */
  readonly temporalInstancesMax: number
  /** Value of splitEntities for requests that do not set it. */
  readonly splits?: boolean | undefined
}

export interface App {
  /** Closes notification streams, which would otherwise stay open. */
  end(): void
  fetch(request: Request, env: HttpEnv): Response | Promise<Response>
  /**
   * Handles the simplest reads without a Request or a Response object; returns undefined for any other
   * request.
   */
  readonly direct: DirectReads
  /** Handles requests for paths under the name of a component in this way. */
  readonly directUnder: DirectReads
  /** The routes of one component, for a listener of its own. */
  component(name: string): (request: Request, env: HttpEnv) => Promise<Response>
  /** The response to an error raised outside the routes. */
  refuse(error: unknown, tenant?: string): Response
}

const methodsKnown: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PATCH',
  'PUT',
  'DELETE',
  'OPTIONS',
])
export function createApp(ports: AppPorts, settings: AppSettings): App {
  const { broker, contexts, sources, takeFrame, alias, forwarding, tunnels, clock, log, metrics } = ports
  const rules = profiles[settings.profile]
  const problems = createProblems({ log, metrics, rules })
  const answers = createAnswers({ core: contexts.unnamed })
  const bodies = createBodies()
  const requests = createRequestReader(
    { broker, contexts, bodies, alias },
    { defaultMediaType: settings.defaultMediaType, servesPlatform: rules.servesPlatform },
  )

  const maps = createEntityMaps(clock)
  const distribution = createDistribution({
    broker,
    contexts,
    requests,
    bodies,
    answers,
    problems,
    sources,
    clock,
    alias,
    splits: settings.splits,
  })
  const mapped = createMappedQueries({ broker, bodies, maps, clock, rules })
  const budget = { instancesMax: settings.temporalInstancesMax }
  const temporal = createTemporalRoutes({ requests, answers }, budget)
  const reads = createEntityReads(answers)
  const entities = createEntityRoutes({ requests, answers, reads, rules })
  const writes = createEntityWriteRoutes({ requests, answers, rules })
  const purge = createPurgeRoutes({ requests, answers, problems })
  const operations = createEntityOperationRoutes({ requests, answers, problems })
  const streams = createStreamRoutes({ requests, answers })
  const snapshot = createSnapshotRoutes({
    requests,
    bodies,
    answers,
    problems,
    snapshots: ports.snapshots,
    notify: ports.notify,
    sources: distribution.gathering,
    core: contexts.core,
    clock,
    log,
  })
  const discovery = createDiscoveryRoutes({ requests, answers })
  const stored = createJsonLdContextRoutes({ requests, answers, contexts, startedAt: clock.now() })
  const admin = createAdminRoutes(
    {
      metrics: ports.metrics,
      answers,
      clock,
      unreadiness: ports.unreadiness,
      complaints: ports.complaints,
      downward: ports.downward,
      components: ports.components,
    },
    settings,
  )
  const backups = createBackupRoutes({ backups: ports.backups, answers })
  const components = createComponentRoutes(ports.components, bodies)
  const app = serve(
    {
      ...entityTable({ entities, writes, operations, purge, snapshot }, distribution, mapped),
      ...snapshotTable(snapshot),
      ...createSubscriptionTable({
        requests,
        answers,
        contexts,
        clock,
        rules,
        forwarding,
        alias,
        publicUrl: settings.publicUrl,
      }),
      ...createTunnelTable({ tunnels, alias, serve: (request) => serveTunnelled(request) }),
      ...createSourceNotificationTable({ requests, answers, broker, contexts, clock, distribution }),
      ...createEntityMapTable({ sources, contexts, requests, answers, maps, clock, alias }, mapped, {
        query: distribution.query(entities.query),
        queryByBody: distribution.queryByBody(entities.queryByBody),
        queryHistories: distribution.histories(temporal.query),
        queryHistoriesByBody: distribution.historiesByBody(temporal.queryByBody),
      }),
      [`${subscriptionsPath}/:id/notifications`]: { GET: streams.listen, DELETE: streams.confirm },
      ...createContextSourceTable({ requests, answers, clock, rules, contexts, forwarding }),
      ...temporalTable(
        { temporal, snapshot, history: createTemporalWriteRoutes({ requests, answers }) },
        distribution,
        mapped,
      ),
      ...discoveryTable(discovery, snapshot, distribution),
      ...contextTable(stored),
      [sourceIdentityPath]: { GET: createSourceIdentityRoutes({ requests, answers, clock, alias }).retrieve },
      [senmlPath]: { POST: createSenmlRoutes({ takeFrame, bodies, answers, clock }).push },
      [digestsPath]: { GET: createDigestRoutes({ requests, answers }).retrieve },
      ...createDeviceTable({ requests, answers, bodies, devices: ports.devices }),
      ...createModelTable({ answers, bodies, models: ports.models }),
      ...createUplinkTable({ requests, answers, uplinks: ports.uplinks }),
      ...adminTable(admin, backups, ports.components),
    },
    { ...problems, ...components },
    metrics,
  )
  // A tunnelled gateway may only deliver notifications; it sends its other requests over plain HTTP.
  const serveTunnelled = createTunnelled(app, new Set(['notify']))
  const directRequests = metrics.counter('selvedge_http_requests_total')
  return Object.freeze({
    ...app,
    direct: createDirectReads({ broker, core: contexts.unnamed, reads, metrics }, settings),
    directUnder(request: DirectRequest) {
      const reply = components.directUnder(request)
      if (reply !== undefined) directRequests.value++
      return reply
    },
    component: (name: string) => async (request: Request, env: HttpEnv) => {
      try {
        return await components.of(name, request, env)
      } catch (error) {
        return problems.answer(error)
      }
    },
    end() {
      streams.end()
      tunnels.close()
    },
  })
}

/** Adds the OpenAPI description of all routes; its text is built at the first request. */
function described(table: Table): Table {
  const path = '/openapi.json'
  const headers = { 'Content-Type': 'application/json', Server: productToken }
  let text: string | undefined
  const describe = (): Response => {
    text ??= JSON.stringify(
      openApiOf(Object.entries(whole).map(([at, methods]) => ({ path: at, methods: Object.keys(methods) }))),
    )
    return new Response(text, { headers })
  }
  const whole: Table = { ...table, [path]: { GET: describe } }
  return whole
}

const contextTable = (stored: ReturnType<typeof createJsonLdContextRoutes>): Table => ({
  [hostedContextsPath]: { GET: stored.list, POST: stored.add },
  [`${hostedContextsPath}/:context`]: { GET: stored.serve, DELETE: stored.remove },
  [platformContextPath]: { GET: createContextRoutes().platform },
})

const adminTable = (
  admin: ReturnType<typeof createAdminRoutes>,
  backups: ReturnType<typeof createBackupRoutes>,
  components: Components,
): Table => ({
  '/': { GET: createFrontPage(components) },
  [backupsPath]: { GET: backups.list, POST: backups.make },
  '/health/live': { GET: admin.live },
  '/health/ready': { GET: admin.ready },
  '/metrics': { GET: admin.metrics },
  '/selvedge/v1/info': { GET: admin.info },
  '/selvedge/v1/downward': { GET: admin.downward },
  '/selvedge/v1/plugins': { GET: admin.plugins },
})

function serve(
  table: Table,
  { answer: refuse, under }: { readonly answer: App['refuse'] } & Pick<ComponentRoutes, 'under'>,
  metrics: Metrics,
): Omit<App, 'end' | 'component' | 'direct' | 'directUnder'> {
  const requests = metrics.counter('selvedge_http_requests_total')
  const hono = new Hono<{ Bindings: HttpEnv }>({ getPath: rawPath, router: createRouter() })
  for (const [path, methods] of Object.entries(described(table))) hono.all(path, byMethod(methods))
  hono.notFound((c) => {
    const { method, headers } = c.req.raw
    const meant = methodsKnown.has(method) ? withSlashesEncoded(c.req.url) : undefined
    if (meant !== undefined) return hono.fetch(new Request(meant, { method, headers }), c.env)
    const answer = under(c.req.raw, c.env)
    if (answer !== undefined) return answer
    return refuse(new GatewayError('http.no-route', `there is no resource at ${c.req.path}`))
  })
  hono.onError((error, c) => refuse(error, headerOf(c, 'ngsild-tenant')))
  return Object.freeze({
    refuse,
    fetch(request, env) {
      requests.value++
      try {
        failpoint('http:internal')
        assertDecodable(request.url)
      } catch (error) {
        return refuse(error)
      }
      return hono.fetch(request, env)
    },
  } satisfies Omit<App, 'end' | 'component' | 'direct' | 'directUnder'>)
}

/** The path as sent, still percent-encoded: it is split into segments before it is decoded. */
function rawPath(request: Request): string {
  const { url } = request
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return end === -1 ? url.slice(start) : url.slice(start, end)
}

/** Dispatches all methods of a path in one route, because two matching routes would cost a promise. */
function byMethod(methods: Methods): Route {
  const allow = [...Object.keys(methods), ...('GET' in methods ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  return (c) => {
    const { method } = c.req
    const route = methods[(method === 'HEAD' ? 'GET' : method) as Method]
    if (route !== undefined) return route(c)
    if (method === 'OPTIONS') {
      return new Response(null, { status: 204, headers: { Allow: allow, Server: productToken } })
    }
    throw new GatewayError('http.method-not-allowed', `${method} is not among ${allow}`, { allow })
  }
}
