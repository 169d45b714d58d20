/**
 * The HTTP interface over a real broker, database file and socket, in the process of the test, so that a hundred
 * requests take a moment. It has no MQTT and delivers nothing; tests of those start a gateway process instead.
 */

import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { createOutflow } from '#base/process/outflow.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { version } from '#base/register/version.ts'
import { systemClock } from '#base/time/clock.ts'
import { bridges } from '#bridges/registry.ts'
import { createContexts } from '#broker/contexts/context-resolver.ts'
import { openTenants } from '#broker/tenant/tenants.ts'
import { createBackups } from '#broker/upkeep/backup-schedule.ts'
import type { RetentionSettings } from '#broker/upkeep/retention-policy.ts'
import type { Frame } from '#contract'
import { createSender } from '#delivery/sender.ts'
import { createPeer } from '#federation/peer.ts'
import { createSources } from '#federation/sources.ts'
import { createForwarding } from '#federation/subscription-forwarding.ts'
import { createTunnelNames, tunnelNamesFile } from '#federation/tunnel-names.ts'
import { createTunnels } from '#federation/tunnels.ts'
import type { Serve } from '#host/own-broker-port.ts'
import { createApp } from '#http/app.ts'
import { createDocumentFetcher } from '#http/listener/document-fetch.ts'
import { createHttpServer } from '#http/listener/http-server.ts'
import { createEntrance } from '#http/listener/listener-access.ts'
import type { AnswerType } from '#http/request/negotiate.ts'
import type { FrameOutcome } from '#intake/intake.ts'
import { openIntake } from '#intake/open-intake.ts'
import { type ConformanceProfile, profiles } from '#ngsi-ld/values/profile.ts'
import { createBackupMaker } from '#store/backup/backup-starter.ts'
import { formatVersion } from '#store/file/database-schema.ts'
import { createWriter } from '#store/writer/writer.ts'
import { unmended } from './mending.ts'
import { modelsIn } from './onnx-models.ts'

export interface HttpGatewayOptions {
  readonly profile?: ConformanceProfile
  readonly defaultMediaType?: AnswerType
  readonly token?: string
  /** Host names besides those of loopback. */
  readonly allowedHosts?: readonly string[]
  readonly temporalInstancesMax?: number
  /** What splitEntities is where a request does not say it. */
  readonly splits?: boolean
  readonly history?: Pick<RetentionSettings, 'afterDeletion'>
  /** What the gateway calls itself among brokers. */
  readonly alias?: string
  readonly dataFolder?: string
  readonly allowLoopback?: boolean
  readonly fetchContexts?: boolean
  readonly unreadiness?: () => readonly string[]
  readonly takeFrame?: (frame: Frame) => Promise<FrameOutcome>
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  /** The body parsed; fails when it is not JSON. */
  json(): never
}

export interface AskOptions {
  /** Sent as it is when a string or bytes, else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface HttpClient {
  ask(method: string, path: string, options?: AskOptions): Promise<Reply>
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply>
  /** Sends JSON; as JSON-LD when the body (or its first item) has an @context. */
  send(
    method: string,
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply>
}

export interface HttpGateway extends HttpClient {
  readonly url: string
  readonly port: number
  readonly dataFolder: string
  readonly logLines: readonly string[]
  /** Its routes without a socket, as plugins reach them. */
  readonly serve: Serve
  /** Finishes what is queued and removes the data folder, unless it was given. */
  close(): Promise<void>
}

export async function startHttpGateway(options: HttpGatewayOptions = {}): Promise<HttpGateway> {
  const dataFolder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'selvedge-http-'))
  const profile = options.profile ?? '1.9'
  const logLines: string[] = []
  const log = createLog({ level: 'debug', clock: systemClock, write: (line) => logLines.push(line) })
  const metrics = createMetrics()
  const writer = createWriter((error) => {
    throw new AssertionError({ message: `the writer thread died: ${String(error)}` })
  })
  const tenants = await openTenants(
    { ...unmended(dataFolder, log), writer, clock: systemClock, log, metrics },
    {
      lingerMs: 0,
      synchronous: 'NORMAL',
      writebackMs: 60_000,
      history: { maxBytes: 2 ** 32, ...options.history },
    },
  )
  const contexts = createContexts(
    {
      records: tenants.main.records,
      door: tenants.main.door,
      hosted: (tenant, id) => tenants.broker.tenant(tenant)?.hosted.document(id),
      fetchDocument:
        options.fetchContexts === false
          ? undefined
          : createDocumentFetcher({ allowLoopback: options.allowLoopback ?? true }),
      clock: systemClock,
      log,
    },
    profiles[profile],
  )
  const { devices } = await openIntake(
    {
      ...tenants.main,
      bridges,
      ownClients: new Set<string>(),
      clock: systemClock,
      log,
      metrics,
      addressOf: (frame, format) => ({ endpoint: '', interfaceType: 'HTTP', topic: frame.topic, format }),
    },
    {
      provisioning: { mode: 'auto', allow: [], ignore: [], shareObservableProperty: false, devices: {} },
      bridges: { json: [] },
    },
  )
  const sender = createSender(
    {
      clock: systemClock,
      publish: async () => ({ ok: false, kind: 'unsendable', reason: 'no MQTT here' }),
      tunnel: async () => ({ ok: false, kind: 'unsendable', reason: 'no tunnel here' }),
      component: async () => ({ ok: false, kind: 'unsendable', reason: 'no components here' }),
    },
    { allowsLoopback: true },
  )
  const names = createTunnelNames(tunnelNamesFile(dataFolder), systemClock)
  const tunnels = createTunnels({ clock: systemClock, log, metrics, names })
  const peer = createPeer({ allowsLoopback: options.allowLoopback ?? true, tunnels })
  const sources = createSources({ peer, clock: systemClock, resolve: contexts.resolve })
  const alias = (tenant: string): string =>
    [options.alias ?? 'selvedge-test', tenant].filter((part) => part !== '').join('.')
  const forwarding = createForwarding({
    sources,
    contexts,
    alias,
    clock: systemClock,
    log,
    tenant: tenants.broker.tenant,
    splits: options.splits,
  })
  const outflow = createOutflow({ clock: systemClock, log, metrics })
  const through = process.env['SELVEDGE_SPEC_THROUGH'] ?? ''
  const front =
    through === ''
      ? undefined
      : (await import('./orchestrator-front.ts')).openFront(through, {
          ...tenants.main,
          onCommit: tenants.main.door.onCommit,
          copyBack: writer.copyBack,
          validity(name) {
            const tenant = tenants.broker.tenant(name)
            return tenant?.registrations.isEmpty() === true ? tenant.validity() : undefined
          },
          publish: () => undefined,
          context: () => contexts.core,
          models: modelsIn(dataFolder, log),
          dataFolder,
          outflow,
          clock: systemClock,
          log,
          metrics,
        })
  const app = createApp(
    {
      broker: tenants.broker,
      contexts,
      snapshots: tenants.snapshots,
      notify: sender.send,
      takeFrame: options.takeFrame ?? (async () => ({ accepted: 0, held: 0, problems: [] })),
      devices,
      backups: createBackups(
        { maker: createBackupMaker(), clock: systemClock, log, metrics },
        {
          dataFolder,
          folder: join(dataFolder, 'backups'),
          schedule: 'off',
          verify: true,
          version,
          sparedBytes: 0,
        },
      ),
      complaints: () => tenants.complaints(),
      unreadiness: options.unreadiness ?? (() => []),
      alias,
      forwarding,
      sources,
      uplinks: () => undefined,
      tunnels,
      components: front?.components ?? {
        has: () => false,
        ofPrefix: () => undefined,
        status: () => ({}),
        readsStreams: () => false,
        direct: () => undefined,
        fetch: () => new Response(),
      },
      models: modelsIn(dataFolder, log),
      downward: () => ({ connected: tunnels.statuses() }),
      clock: systemClock,
      log,
      metrics,
    },
    {
      profile,
      defaultMediaType: options.defaultMediaType ?? 'application/json',
      dataFormat: formatVersion,
      temporalInstancesMax: options.temporalInstancesMax ?? limits.temporalInstancesMax.value,
      splits: options.splits,
    },
  )
  const pages = { host: '127.0.0.1', allowedHosts: options.allowedHosts ?? [] }
  const server = await createHttpServer(
    { ...createEntrance(app, { token: options.token, pages }), refuse: app.refuse, outflow, log },
    { host: '127.0.0.1', port: 0 },
  )
  const { url, port } = (await front?.listen(app, server.url, { token: options.token, pages })) ?? server
  return Object.freeze({
    ...httpClient(url),
    url,
    port,
    dataFolder,
    logLines,
    serve: app.fetch,
    async close() {
      await front?.close()
      await server.close()
      outflow.close()
      await forwarding.close()
      peer.close()
      sender.close()
      await tenants.close()
      await writer.end()
      if (options.dataFolder === undefined) rmSync(dataFolder, { recursive: true, force: true })
    },
  })
}

/** Requests to a gateway, by node:http, so that any header and a body with GET can be sent. */
export function httpClient(url: string): HttpClient {
  const ask: HttpClient['ask'] = (method, path, { body, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const bytes = body === undefined ? undefined : toBytes(body)
      const sent = bytes === undefined ? headers : { 'Content-Length': String(bytes.length), ...headers }
      const outgoing = request(url + path, { method, headers: sent, agent: false }, (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const status = incoming.statusCode!
          const received = incoming.headers as Record<string, string>
          resolve({ status, headers: received, text, json: () => JSON.parse(text) as never })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(bytes)
    })
  return {
    ask,
    get: (path, headers = {}) => ask('GET', path, { headers }),
    send(method, path, body, headers = {}) {
      const first = Array.isArray(body) ? body[0] : body
      const isLd = typeof first === 'object' && first !== null && '@context' in first
      const type = isLd ? 'application/ld+json' : 'application/json'
      return ask(method, path, { body, headers: { 'Content-Type': type, ...headers } })
    },
  }
}

function toBytes(body: unknown): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
}
