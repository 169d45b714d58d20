/**
 * The composition root: creates every part in order, passes each the ports it needs, and returns an object
 * that closes them all. It shows the architecture and contains no domain rule.
 *
 * Order: parts that store data open first and close last. The MQTT listener opens last and closes first, so
 * that the gateway never accepts a frame that it cannot store.
 */

import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { isLoopbackListener } from '#base/load/loopback.ts'
import { connectionLimits } from '#base/process/descriptors.ts'
import { collectGarbage } from '#base/process/garbage-collection.ts'
import { createOutflow, type Outflow } from '#base/process/outflow.ts'
import { watchProcess } from '#base/process/process-metrics.ts'
import type { Log } from '#base/register/log.ts'
import { createMetrics, type Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { watchClock } from '#base/time/clock-watch.ts'
import { bridges } from '#bridges/registry.ts'
import { type Contexts, type ContextsPorts, createContexts } from '#broker/contexts/context-resolver.ts'
import { renderSourceNotification } from '#broker/sources/source-notification.ts'
import { renderNotification } from '#broker/subscriptions/notification.ts'
import { createStatisticsKeeper } from '#broker/subscriptions/subscription-statistics.ts'
import type { Inside, Outside } from '#broker/tenant/tenant.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import { openTenants } from '#broker/tenant/tenants.ts'
import { openDataFolder } from '#broker/upkeep/data-folder-upkeep.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import {
  isThere,
  readAuthorities,
  readOrCreateToken,
  requireSecretFile,
  trustedWith,
} from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createOutbox } from '#delivery/outbox.ts'
import { createSender, type Sender, type SenderPorts } from '#delivery/sender.ts'
import type { Failure } from '#delivery/verdict.ts'
import { type Downward, openDownward } from '#downward/downward.ts'
import { createPeer, type Peer } from '#federation/peer.ts'
import { createSources } from '#federation/sources.ts'
import { createForwarding } from '#federation/subscription-forwarding.ts'
import { createTunnelNames, tunnelNamesFile } from '#federation/tunnel-names.ts'
import { createTunnels, type Tunnels } from '#federation/tunnels.ts'
import { openHost, type PluginHost } from '#host/open-host.ts'
import { type App, type AppSettings, createApp } from '#http/app.ts'
import { createDocumentFetcher } from '#http/listener/document-fetch.ts'
import { createHttpServer, type HttpServer } from '#http/listener/http-server.ts'
import { createEntrance } from '#http/listener/listener-access.ts'
import { type IntakeParts, type OpenIntakePorts, openIntake } from '#intake/open-intake.ts'
import { sourceAddresses } from '#intake/source-addresses.ts'
import type { BridgeInPorts } from '#mqtt/bridge-in/bridge-in.ts'
import { createAuthentication } from '#mqtt/clients/authentication.ts'
import { ensurePasswordFile, openPasswordFile } from '#mqtt/clients/password-file.ts'
import { createMqttServer, type MqttPorts, type MqttServer } from '#mqtt/mqtt-server.ts'
import type { Publisher, PublisherSettings } from '#mqtt/notify/publisher.ts'
import { isUplink } from '#ngsi-ld/subscription/subscription.ts'
import { type ProfileRules, profiles } from '#ngsi-ld/values/profile.ts'
import { plugins } from '#plugins/registry.ts'
import type { Database } from '#store/file/database.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { createSessionRows } from '#store/tables/mqtt-rows.ts'
import { createWriter } from '#store/writer/writer.ts'
import { type Declared, openDeclared } from '#uplink/live/declared-uplinks.ts'
import { createUplinks, type Uplinks } from '#uplink/live/uplinks.ts'

export interface GatewayPorts {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  /** Called when an essential part failed; the process must end. */
  readonly onFault: (error: unknown) => void
}

export interface Gateway {
  readonly httpPort: number | undefined
  readonly mqttPort: number | undefined
  /** Ports of plugins with listeners of their own, by plugin name. */
  readonly pluginPorts: Readonly<Record<string, number>>
  close(): Promise<void>
}

/**
 * Opens all parts. If a part fails, the parts opened before are closed.
 * @throws GatewayError store.locked, store.newer, store.corrupt, config.invalid (port in use, file with wrong
 * mode).
 */
export async function createGateway({ settings, clock, log, onFault }: GatewayPorts): Promise<Gateway> {
  await using opened = new AsyncDisposableStack()
  const metrics = createMetrics()
  watchProcess(metrics)
  watchClock(clock, { log, metrics })
  const outflow = opened.adopt(createOutflow({ clock, log, metrics }), ({ close }) => close())

  const { backups, room, folder } = openDataFolder(opened, settings, { clock, log, metrics, onFault })
  const writer = createWriter(onFault)
  opened.defer(() => writer.end())
  const connectivity = openConnectivity(opened, { clock, log, metrics }, settings)
  const { send, peer, tunnels, ownClients } = connectivity
  const declared = openDeclared(opened, settings, { contexts: () => contexts, trusted: trustedWith, log })
  const alias = aliasesOf(settings)
  const uplinks = new Map<string, Uplinks>()
  const own = { peer, alias, send, declared, uplinks, clock, log, metrics, ...profileOf(settings) }
  const connect = (tenant: Inside): Outside => connectOutside(tenant, { contexts: () => contexts, ...own })
  const tenants = await openTenants(
    { ...folder, writer, clock, log, metrics, attach: connect },
    { ...settings.commit, writebackMs: limits.writebackMs.value, history: settings.history },
  )
  opened.defer(() => tenants.close())
  opened.defer(collectGarbage(tenants.releaseMemory))
  const { main, broker, snapshots } = tenants
  const contexts = openContexts({ ...main, hosted: hostedIn(broker), clock, log }, settings)
  tenants.start()

  const { intake, devices } = await openFrames({ ...main, ownClients, clock, log, metrics }, settings)
  let isReady = false
  const unreadiness = (): string[] => [
    ...(isReady ? [] : ['starting']),
    ...(main.door.status().full ? ['the disk is full'] : []),
    ...(main.door.status().fails ? ['the disk fails'] : []),
  ]
  const sources = createSources({ peer, clock, resolve: contexts.resolve })
  const defaults = { splits: splits[settings.outbound.splitEntities] }
  const forwarding = createForwarding({ sources, contexts, tenant: broker.tenant, ...own, ...defaults })
  opened.defer(() => forwarding.close())
  const inside = { backups, takeFrame: intake.take, devices, notify: send, unreadiness, alias }
  const hosting = { app: () => app, core: contexts.core, onCommit: main.door.onCommit, outflow }
  const host = openHost({ ...writer, ...main, ...hosting, clock, log, metrics }, settings, plugins)
  const others = { sources, forwarding, tunnels, components: host }
  const standing = {
    complaints: () =>
      [tenants, backups, room, host, ...[...uplinks.values()].map(({ operations }) => operations)].flatMap(
        (part) => [...part.complaints()],
      ),
    uplinks: (tenant: string) => uplinks.get(tenant)?.operations,
    downward: () => ({ ...connectivity.downward?.status(), connected: tunnels.statuses() }),
  }
  const app = createApp(
    { broker, contexts, snapshots, ...inside, ...others, ...standing, clock, log, metrics },
    appSettings(settings),
  )
  const http = await openHttp(app, { outflow, log, host }, settings)
  opened.defer(() => http?.close())
  const mqtt = await openMqtt({ ...main, intake, clock, log, metrics }, settings)
  opened.defer(() => mqtt?.close(limits.drainMs.value))
  opened.defer(await openBridgesIn({ door: main.door, intake, clock, log, metrics }, settings))
  connectivity.downward = openDownward(
    { ...main, contexts, peer, app, alias, clock, random: Math.random, log, metrics },
    settings,
  )
  opened.defer(connectivity.downward.close)
  opened.defer(host.close)
  await host.listen(http?.port)

  isReady = true
  forwarding.start(tenants.all().map(({ name }) => name))
  const closing = opened.move()
  return Object.freeze({
    httpPort: http?.port,
    mqttPort: mqtt?.port,
    pluginPorts: host.ports(),
    close: () => closing.disposeAsync(),
  })
}

/** The Via alias of this gateway in a tenant. */
const aliasesOf =
  ({ data }: Settings) =>
  (tenant: string): string =>
    [`selvedge-${gatewayId(data)}`, tenant].filter((part) => part !== '').join('.')

const openFrames = (
  ports: Omit<OpenIntakePorts, 'bridges' | 'addressOf'>,
  settings: Settings,
): Promise<IntakeParts> => openIntake({ ...ports, bridges, addressOf: sourceAddresses(settings) }, settings)

function openContexts(
  ports: Omit<ContextsPorts, 'fetchDocument'>,
  { outbound: { allowLoopback, fetchContexts }, conformance }: Settings,
): Contexts {
  const fetchDocument = fetchContexts ? createDocumentFetcher({ allowLoopback }) : undefined
  return createContexts({ ...ports, fetchDocument }, profiles[conformance.profile])
}

const profileOf = ({ conformance }: Settings): ProfileRules => profiles[conformance.profile]

/** Result of sending through a tunnel while the gateway is starting. */
const starting: Failure = { ok: false, kind: 'reset', reason: 'the gateway is starting' }

/** Default of splitEntities for requests without it. */
const splits = { completed: undefined, expected: true, never: false } as const

const appSettings = ({ conformance, http, history, outbound }: Settings): AppSettings => ({
  profile: conformance.profile,
  defaultMediaType: conformance.profile === 'platform' ? 'application/ld+json' : http.defaultMediaType,
  dataFormat: formatVersion,
  temporalInstancesMax: history.instancesPerAnswer,
  publicUrl: http.publicUrl,
  splits: splits[outbound.splitEntities],
})

/** Looks up @context documents hosted by the tenants. */
const hostedIn =
  (broker: Broker): ContextsPorts['hosted'] =>
  (tenant, id) =>
    broker.tenant(tenant)?.hosted.document(id)

interface OutsidePorts {
  readonly contexts: () => Contexts
  readonly send: Sender['send']
  readonly peer: Peer
  readonly alias: (tenant: string) => string
  /** Uplinks of the settings, by tenant. */
  readonly declared: (tenant: string) => Declared
  /** Running uplinks by tenant, for operator requests. */
  readonly uplinks: Map<string, Uplinks>
  readonly servesPlatform?: boolean
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** Connects a tenant with its outbox and its uplinks; notifications are rendered when they are sent. */
function connectOutside(tenant: Inside, ports: OutsidePorts): Outside {
  const { servesPlatform, clock, log, metrics } = ports
  // Subscriptions to context sources have negative numbers.
  const holderOf = (i: number) => (i < 0 ? tenant.sources : tenant.matcher)
  const statistics = createStatisticsKeeper({ get: (i) => holderOf(i).get(i) })
  const outbox = createOutbox(
    {
      door: tenant.door,
      reads: tenant.deliveries,
      render: (deliveries) => {
        const render = deliveries[0]!.sub < 0 ? renderSourceNotification : renderNotification
        const newId = (sent: readonly Delivery[]) => notificationId(tenant.name, sent)
        return render({ tenant, contexts: ports.contexts(), servesPlatform, clock, newId }, deliveries)
      },
      send: ports.send,
      subscriptions: statistics,
      clock,
      log,
      metrics,
    },
    tenant.name === '' ? {} : { labels: `{tenant="${tenant.name}"}` },
  )
  let uplinks: Uplinks | undefined
  return Object.freeze({
    ...outbox,
    start() {
      outbox.start()
      const { ids: declared, ready } = ports.declared(tenant.name)
      const all = () => [...tenant.matcher.all()].filter(({ subscription }) => isUplink(subscription))
      const subscriptions = () => [...ready(), ...all()]
      uplinks = createUplinks({ ...ports, tenant, subscriptions, declared, statistics })
      ports.uplinks.set(tenant.name, uplinks)
    },
    async close() {
      await uplinks?.close()
      await outbox.close(limits.drainMs.value)
    },
  })
}

/**
 * Stable for all attempts at a delivery. Numbers may be reused once all are settled, but not with the same
 * commit time.
 */
function notificationId(tenant: string, deliveries: readonly Delivery[]): string {
  const { sub, at } = deliveries[0]!
  return hash('sha1', `${tenant} ${sub} ${at} ${deliveries.map(({ d }) => d).join(' ')}`)
}

async function openHttp(
  app: App,
  { outflow, log, host }: { outflow: Outflow; log: Log; host: PluginHost },
  settings: Settings,
): Promise<HttpServer | undefined> {
  const { port, tokenFile } = settings.http
  if (port === 'off') return undefined
  const isLocal = isLoopbackListener(settings.host)
  const { token, created } = isLocal ? { created: false } : readOrCreateToken(tokenFile)
  if (created) log.warn('access.token-created', { file: tokenFile })
  const pages = { host: settings.host, ...settings.http }
  return createHttpServer(
    { ...createEntrance(app, { ...host, token, pages }), refuse: app.refuse, closing: app.end, outflow, log },
    { host: settings.host, port },
  )
}

async function openMqtt(
  ports: Omit<MqttPorts, 'rows' | 'authenticate'> & { readonly database: Database },
  settings: Settings,
): Promise<MqttServer | undefined> {
  const { port, maxClients, passwordFile } = settings.mqtt
  if (port === 'off') return undefined
  if (!isLoopbackListener(settings.host)) await ensurePasswordFile(passwordFile)
  const passwords = isThere(passwordFile) ? openPasswordFile(passwordFile, ports) : undefined
  const authenticate = createAuthentication(passwords, { allowsAnonymous: passwords === undefined })
  return createMqttServer(
    { ...ports, rows: createSessionRows(ports.database), authenticate },
    { host: settings.host, port, clientsMax: Math.min(maxClients, connectionLimits().mqtt) },
  )
}

interface Connectivity {
  readonly send: Sender['send']
  readonly peer: Peer
  readonly tunnels: Tunnels
  /** Ids of the MQTT clients that send notifications. */
  readonly ownClients: ReadonlySet<string>
  /** Set once the listeners are open. */
  downward?: Downward
}

/**
 * Opens the clients for other brokers and endpoints: direct connections, and tunnels opened by either side.
 */
function openConnectivity(
  opened: AsyncDisposableStack,
  { clock, log, metrics }: { clock: Clock; log: Log; metrics: Metrics },
  { data, outbound: { allowLoopback, caFile } }: Settings,
): Connectivity {
  const sending = { allowsLoopback: allowLoopback, ca: trustedWith(caFile) }
  const names = createTunnelNames(tunnelNamesFile(data), clock)
  const tunnels = createTunnels({ clock, log, metrics, names })
  const peer = createPeer({ ...sending, tunnels })
  const tunnel: SenderPorts['tunnel'] = async (request) => connectivity.downward?.send(request) ?? starting
  const ownClients = new Set<string>()
  const send = openSender(opened, { clock, tunnel }, { ...sending, clients: ownClients })
  const connectivity: Connectivity = { send, peer, tunnels, ownClients }
  opened.defer(() => peer.close())
  return connectivity
}

/** Opens the sender of notifications: HTTP, MQTT and tunnels. */
function openSender(
  opened: AsyncDisposableStack,
  ports: Omit<SenderPorts, 'publish'>,
  settings: PublisherSettings,
): Sender['send'] {
  const publisher = openPublisher(ports.clock, settings)
  opened.defer(publisher.close)
  const sender = createSender({ ...ports, publish: publisher.send }, settings)
  opened.defer(() => sender.close())
  return sender.send
}

/** Loads the MQTT client library, a tenth of the startup time, with the first notification sent by MQTT. */
function openPublisher(
  clock: Clock,
  settings: PublisherSettings,
): { readonly send: Publisher['send']; readonly close: () => Promise<void> } {
  let opened: Promise<Publisher> | undefined
  const open = async (): Promise<Publisher> =>
    (await import('#mqtt/notify/publisher.ts')).createPublisher(clock, settings)
  return {
    async send(publication) {
      opened ??= open()
      return (await opened).send(publication)
    },
    close: async () => (await opened)?.close(),
  }
}

/** Subscribes to the external brokers of the settings. Returns a function that closes the connections. */
async function openBridgesIn(
  ports: Omit<BridgeInPorts, 'random'>,
  settings: Settings,
): Promise<() => Promise<void>> {
  if (settings.bridgeIn.length === 0) return async () => undefined
  const { createBridgeIn } = await import('#mqtt/bridge-in/bridge-in.ts')
  const bridgesIn = settings.bridgeIn.map(({ url, topics, clientId, username, passwordFile, caFile }) =>
    createBridgeIn(
      { ...ports, random: Math.random },
      {
        url,
        topics,
        clientId: clientId ?? `selvedge-${gatewayId(settings.data)}-${hash('sha1', url).slice(0, 8)}`,
        username,
        password: passwordFile === undefined ? undefined : requireSecretFile(passwordFile),
        ca: caFile === undefined ? undefined : readAuthorities(caFile),
      },
    ),
  )
  return async () => {
    await Promise.all(bridgesIn.map((bridgeIn) => bridgeIn.close(limits.drainMs.value)))
  }
}
