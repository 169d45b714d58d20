/**
 * The orchestrator: the endpoint of applications. Forwards NGSI-LD requests to a broker, or to the ranking,
 * caches responses and counts the requests of each client. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import { createRouter, type RouteTable } from '#client/routes/route-table.ts'
import { definePlugin, type ForwardPort, type Host, type KeyValueServer } from '#contract'
import { createMemoryStore } from '#plugins/orchestrator/cache/memory-store.ts'
import { createRedisCopies } from '#plugins/orchestrator/cache/redis-copies.ts'
import { createResponseCache } from '#plugins/orchestrator/cache/response-cache.ts'
import { createClientRoutes } from '#plugins/orchestrator/clients/client-routes.ts'
import { clientTables, createClientStatements } from '#plugins/orchestrator/clients/client-statements.ts'
import { createClients } from '#plugins/orchestrator/clients/clients.ts'
import { createOwnRanking } from '#plugins/orchestrator/proxy/own-ranking.ts'
import { createProxy } from '#plugins/orchestrator/proxy/proxy.ts'
import {
  deliveryTables,
  isNotify,
  laterTables,
  type NotificationSettings,
  openNotifications,
} from './open-notifications.ts'

/** The section `orchestrator` of the settings. */
export interface OrchestratorSettings extends NotificationSettings {
  readonly timeoutMs: number
  readonly cache: Omit<KeyValueServer, 'url'> & {
    readonly host?: string | undefined
    readonly maxAgeMs: number
  }
  readonly version?: string | undefined
}

const needs = [
  'forwarding',
  'component',
  'database',
  'keyValues',
  'mdr',
  'changes',
  'remote',
  'exchanges',
  'publish',
] as const
export type OrchestratorHost = Host<OrchestratorSettings, (typeof needs)[number]>

export default definePlugin<OrchestratorSettings, (typeof needs)[number]>({
  name: 'orchestrator',
  version,
  summary: 'The NGSI-LD endpoint of applications: a proxy of the broker and the ranking.',
  needs,
  tables: [clientTables + deliveryTables, ...laterTables],
  async start(host) {
    const { settings, database, clock, log } = host
    const [broker, ranking] = [brokerOf(host), rankingOf(host)]
    /** To be called for each connection to Redis. */
    const copying: (() => void)[] = []
    const redis = redisOf(host, () => {
      for (const copyAll of copying) copyAll()
    })
    const copies = createRedisCopies(redis)
    const clients = createClients({
      statements: createClientStatements(database),
      rest: database.rest,
      copies: {
        put: (tenant, id, record) => copies.put({ kind: 'client', tenant, id }, record),
        remove: (tenant, id) => copies.remove({ kind: 'client', tenant, id }),
      },
      now: clock.now,
    })
    const cache = createResponseCache(
      { broker, memory: createMemoryStore(), copies: copies.isUsed ? copies : undefined, now: clock.now },
      { remoteMs: settings.cache.maxAgeMs },
    )
    const notifications = await openNotifications(host, broker, copies.isUsed ? copies : undefined)
    copying.push(clients.copyAll, notifications.copyAll)
    const proxy = createProxy({
      broker,
      ranking,
      subscriptions: notifications.requests,
      cache,
      clients,
      isLoop: createLoopCheck(host),
    })
    const routes = createRouter({ ...ownRoutes(settings), ...createClientRoutes(clients) })
    const save = (): Promise<void> =>
      clients.save().catch((error: unknown) => {
        log.error('plugin.failed', { plugin: 'orchestrator', during: 'saving the counts of clients', error })
      })
    const timer = setInterval(() => void save(), limits.orchestratorSaveMs.value)
    return {
      // These have no data; notifications have a secret of their own.
      open: ['/', '/version', '/notify'],
      notified: notifications.notified,
      direct: proxy.direct,
      fetch(request, environment) {
        if (isNotify(request.url)) return notifications.notify(request, environment)
        return isNgsiLd(request.url) ? proxy.respond(request, environment) : routes(request, environment)
      },
      status: () => ({
        broker: broker.address,
        ranking: ranking.address,
        notifications: notifications.status(),
        cache: { ...cache.status(), ...(copies.isUsed && { redis: copies.failure() ?? 'connected' }) },
      }),
      complaints() {
        const failure = copies.failure()
        const redis =
          failure === undefined
            ? []
            : [`orchestrator.cache.host: Redis cannot be reached (${failure}); the cache is in memory only`]
        return [...redis, ...notifications.complaints()]
      },
      async close() {
        clearInterval(timer)
        await notifications.close()
        await save()
      },
    }
  },
})

function brokerOf({ settings: { broker, caFile, timeoutMs }, forwarding }: OrchestratorHost): ForwardPort {
  return broker === 'mdr' ? forwarding.own : forwarding.remote({ url: broker, caFile, timeoutMs })
}

function rankingOf({ settings, forwarding, component }: OrchestratorHost): ForwardPort {
  const { ranking, caFile, timeoutMs } = settings
  if (ranking === 'ranking') return createOwnRanking(component('ranking'), timeoutMs)
  return forwarding.remote({ url: ranking, caFile, timeoutMs })
}

function redisOf({ settings: { cache }, keyValues }: OrchestratorHost, ready: () => void) {
  return cache.host === undefined ? undefined : keyValues.open({ ...cache, url: cache.host }, ready)
}

/** Checks whether an address is that of the orchestrator itself, under any name of this machine. */
function createLoopCheck({ isOwn, addresses }: OrchestratorHost): (address: string) => boolean {
  const placeOf = (url: string): string => {
    const { port, pathname } = new URL(url)
    return `${port}${pathname.replace(/\/+$/, '')}`
  }
  const isLoop = (address: string): boolean =>
    URL.canParse(address) && isOwn(address) && addresses().some((own) => placeOf(own) === placeOf(address))
  /** By address. There are two, and no other address becomes one of this process. */
  const known = new Map<string, boolean>()
  return (address) => {
    const found = known.get(address) ?? isLoop(address)
    known.set(address, found)
    return found
  }
}

const isNgsiLd = (url: string): boolean =>
  url.startsWith('/ngsi-ld/', url.indexOf('/', url.indexOf('://') + 3))

function ownRoutes({ version: label = version }: OrchestratorSettings): RouteTable {
  const links = { ngsiLd: 'ngsi-ld/v1/', version: 'version', clients: 'clients' }
  const plain = { headers: { 'Content-Type': 'text/plain; charset=utf-8' } }
  return {
    '/': { GET: () => Response.json({ name: 'Selvedge orchestrator', version: label, links }) },
    '/version': { GET: () => new Response(`Version: ${label}`, plain) },
  }
}
