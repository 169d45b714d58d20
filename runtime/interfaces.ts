/**
 * Opens everything by which data and requests come in: the intake of frames, the HTTP routes with their
 * listener, the MQTT broker, and the subscriptions at external MQTT brokers. The MQTT parts open last and
 * close first, so that the gateway never accepts a frame that it cannot store.
 */

import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { isLoopbackListener } from '#base/load/loopback.ts'
import { connectionLimits } from '#base/process/descriptors.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Outflow } from '#base/process/outflow.ts'
import { bridges } from '#bridges/registry.ts'
import type { OpenBroker } from '#broker/open-broker.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import { isThere, readAuthorities, readOrCreateToken, requireSecretFile } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Federation } from '#federation/open-federation.ts'
import { type App, type AppPorts, createApp } from '#http/app.ts'
import { createHttpServer, type HttpServer } from '#http/listener/http-server.ts'
import { createEntrance, type EntranceRules } from '#http/listener/listener-access.ts'
import type { Components } from '#http/operator/components.ts'
import type { Models } from '#inference/models.ts'
import type { Intake } from '#intake/intake.ts'
import { openIntake } from '#intake/open-intake.ts'
import { sourceAddresses } from '#intake/source-addresses.ts'
import { createAuthentication } from '#mqtt/clients/authentication.ts'
import { ensurePasswordFile, openPasswordFile } from '#mqtt/clients/password-file.ts'
import { createMqttServer, type MqttServer } from '#mqtt/mqtt-server.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import { createSessionRows } from '#store/tables/mqtt-rows.ts'

export interface InterfaceParts
  extends Instruments,
    Pick<AppPorts, 'notify' | 'uplinks' | 'downward' | 'alias' | 'unreadiness' | 'complaints'> {
  readonly opened: AsyncDisposableStack
  readonly settings: Settings
  readonly broker: OpenBroker
  readonly federation: Federation
  /** The plugins. */
  readonly host: Components & Required<Pick<EntranceRules, 'isOpen' | 'isShared' | 'changesOnGet'>>
  readonly models: Models
  /** Ids of the gateway's own MQTT clients, which publish notifications. */
  readonly ownClients: ReadonlySet<string>
  readonly outflow: Outflow
}

export interface Interfaces {
  readonly app: App
  readonly httpPort: number | undefined
  readonly mqttPort: number | undefined
  /** Publishes to clients of the embedded MQTT broker; undefined if it is off. */
  readonly publish: MqttServer['publish'] | undefined
}

/** @throws gateway.address-unavailable; config.invalid (file with wrong mode). */
export async function openInterfaces(parts: InterfaceParts): Promise<Interfaces> {
  const { opened, settings, broker, clock, log, metrics } = parts
  const { main } = broker
  const { intake, devices } = await openIntake(
    {
      door: main.door,
      records: main.records,
      documents: main.documents,
      streams: main.streams,
      observer: main.observer,
      bridges,
      addressOf: sourceAddresses(settings),
      ownClients: parts.ownClients,
      clock,
      log,
      metrics,
    },
    settings,
  )
  const app = openApp(parts, intake.take, devices)
  const http = await openHttp(parts, app)
  opened.defer(() => http?.close())
  const mqtt = await openMqtt(parts, intake)
  opened.defer(() => mqtt?.close(limits.drainMs.value))
  opened.defer(await openBridgesIn(parts, intake))
  return Object.freeze({ app, httpPort: http?.port, mqttPort: mqtt?.port, publish: mqtt?.publish })
}

function openApp(parts: InterfaceParts, takeFrame: AppPorts['takeFrame'], devices: AppPorts['devices']): App {
  const { settings, broker, federation } = parts
  const { conformance, http, history } = settings
  return createApp(
    {
      broker,
      contexts: broker.contexts,
      snapshots: broker.snapshots,
      backups: broker.backups,
      sources: federation.sources,
      forwarding: federation.forwarding,
      tunnels: federation.tunnels,
      takeFrame,
      devices,
      notify: parts.notify,
      uplinks: parts.uplinks,
      downward: parts.downward,
      components: parts.host,
      models: parts.models,
      alias: parts.alias,
      unreadiness: parts.unreadiness,
      complaints: parts.complaints,
      clock: parts.clock,
      log: parts.log,
      metrics: parts.metrics,
    },
    {
      profile: conformance.profile,
      defaultMediaType: conformance.profile === 'platform' ? 'application/ld+json' : http.defaultMediaType,
      dataFormat: formatVersion,
      temporalInstancesMax: history.instancesPerAnswer,
      publicUrl: http.publicUrl,
      splits: federation.splits,
    },
  )
}

async function openHttp(
  { settings, host, outflow, log }: InterfaceParts,
  app: App,
): Promise<HttpServer | undefined> {
  const { port, tokenFile } = settings.http
  if (port === 'off') return undefined
  const isLocal = isLoopbackListener(settings.host)
  const { token, created } = isLocal ? { created: false } : readOrCreateToken(tokenFile)
  if (created) log.warn('access.token-created', { file: tokenFile })
  const pages = { host: settings.host, ...settings.http }
  const direct: App['direct'] = (request) => app.direct(request) ?? app.directUnder(request)
  const entrance = createEntrance(
    { fetch: app.fetch, refuse: app.refuse, direct },
    {
      token,
      pages,
      isOpen: host.isOpen,
      isShared: host.isShared,
      changesOnGet: host.changesOnGet,
    },
  )
  return createHttpServer(
    { ...entrance, refuse: app.refuse, closing: app.end, outflow, log },
    { host: settings.host, port },
  )
}

async function openMqtt(
  { settings, broker: { main }, clock, log, metrics }: InterfaceParts,
  intake: Intake,
): Promise<MqttServer | undefined> {
  const { port, maxClients, passwordFile } = settings.mqtt
  if (port === 'off') return undefined
  if (!isLoopbackListener(settings.host)) await ensurePasswordFile(passwordFile)
  const passwords = isThere(passwordFile) ? openPasswordFile(passwordFile, { clock, log }) : undefined
  const authenticate = createAuthentication(passwords, { allowsAnonymous: passwords === undefined })
  const rows = createSessionRows(main.database)
  return createMqttServer(
    { door: main.door, intake, rows, authenticate, clock, log, metrics },
    { host: settings.host, port, clientsMax: Math.min(maxClients, connectionLimits().mqtt) },
  )
}

/** Subscribes to the external brokers of the settings. Returns a function that closes the connections. */
async function openBridgesIn(
  { settings, broker: { main }, clock, log, metrics }: InterfaceParts,
  intake: Intake,
): Promise<() => Promise<void>> {
  if (settings.bridgeIn.length === 0) return async () => undefined
  const { createBridgeIn } = await import('#mqtt/bridge-in/bridge-in.ts')
  const bridgesIn = settings.bridgeIn.map(({ url, topics, clientId, username, passwordFile, caFile }) =>
    createBridgeIn(
      { door: main.door, intake, clock, log, metrics, random: Math.random },
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
