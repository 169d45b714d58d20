/**
 * Opens the configured plugins and their listeners: which plugins run, the addresses of each, and which
 * addresses belong to this gateway. Plugins start in parallel with the gateway, which is ready without them.
 */

import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isLoopback, isLoopbackListener, reachableHost } from '#base/load/loopback.ts'
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Outflow } from '#base/process/outflow.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import { gatewayId } from '#config/load/gateway-id.ts'
import { readOrCreateToken, trustedWith } from '#config/load/secret-files.ts'
import type { PluginName } from '#config/schema/plugin-schema.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Capability, ForwardPort, Json, ModelsPort, Plugin, PublishOwn } from '#contract'
import type { SenderPorts } from '#delivery/sender.ts'
import type { App } from '#http/app.ts'
import { createHttpServer, type HttpServer } from '#http/listener/http-server.ts'
import { createEntrance } from '#http/listener/listener-access.ts'
import type { Components } from '#http/operator/components.ts'
import { responseOf } from '#http/request/response.ts'
import { type Context, compileContext } from '#ngsi-ld/context/context.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import type { CopyBackFile } from '#store/plugins/plugin-log.ts'
import { createPlugins, type WantedPlugin } from './plugins.ts'
import { targetOf } from './request-forwarding.ts'

/** Loader of each plugin; a missing one is not built. */
export type Loaders = {
  readonly [N in PluginName]?: () => Promise<Plugin<Settings[N], Capability>>
}

export interface HostPorts extends Instruments {
  readonly settings: Settings
  readonly loaders: Loaders
  /** The context of requests that name none. */
  readonly core: Context
  readonly following: ChangeFeed
  readonly onCommit: (listener: () => void) => () => void
  readonly copyBack: CopyBackFile
  readonly models: ModelsPort
  /** Until when responses about entities of a tenant stay as they are. */
  readonly validity: NonNullable<ForwardPort['validity']>
  /** Bounds the unread output of all listeners together. */
  readonly outflow: Outflow
}

export interface PluginHost extends Components {
  /** Whether a path of the main listener needs no token; waits for a starting plugin. */
  isOpen(path: string, method: string): boolean | Promise<boolean>
  /** Whether pages of every origin may read the responses of the main listener at a path. */
  isShared(path: string): boolean | Promise<boolean>
  /** Whether a GET at a path changes something. */
  changesOnGet(path: string): boolean
  /**
   * Opens the listeners, then starts the plugins. Earlier requests wait.
   *
   * @param app the routes of this gateway.
   * @param httpPort port of the main listener, if it is open.
   * @param publish publishes to clients of the embedded MQTT broker, if it is on.
   */
  listen(app: App, httpPort: number | undefined, publish: PublishOwn | undefined): Promise<void>
  /** Passes a notification to a plugin; never rejects. */
  notify: SenderPorts['component']
  status(): object
  complaints(): readonly string[]
  /** Open ports, by name. */
  ports(): Readonly<Record<string, number>>
  close(): Promise<void>
}

/** Paths of plugins on the main listener. */
const under = /^\/([a-z-]+)(\/.*)$/

/** Plugins that serve the paths of an original component on the main listener, by their first segment. */
const prefixes: Readonly<Partial<Record<string, PluginName>>> = {
  semanticenrichment: 'quality',
  monitoring: 'faults',
}

/** Paths on the own listener of a plugin that other plugins serve, while they run. */
const guestPaths: Readonly<Partial<Record<PluginName, Readonly<Record<string, PluginName>>>>> = {
  search: {
    '/api/replaceBrokenSensor': 'virtual-sensors',
    '/api/deployVirtualSensor': 'virtual-sensors',
    '/api/stopVirtualSensor': 'virtual-sensors',
    '/api/exportModel': 'virtual-sensors',
    '/api/list': 'virtual-sensors',
    '/api/status': 'virtual-sensors',
    '/api/stopFaultDetection': 'faults',
    '/api/restartFaultDetection': 'faults',
  },
}

/** GET requests that change something, at every listener, as the platform specifies them. */
const changingPath =
  /\/api\/(?:(?:replaceBroken|deployVirtual|stopVirtual)Sensor|exportModel|(?:stop|restart)FaultDetection)\/*$/
const changesOnGet = (path: string): boolean => changingPath.test(path)

/** Plugins that read or forward the bodies of requests themselves, as streams. */
const streaming: ReadonlySet<string> = new Set<PluginName>(['orchestrator'])

export function openHost({ settings, loaders, ...ports }: HostPorts): PluginHost {
  const { host, http } = settings
  const servers = new Map<string, HttpServer>()
  /** Set before the plugins start. */
  let routes: App | undefined
  let mainPort: number | undefined
  let publish: PublishOwn | undefined
  /** Reasons why listeners are not open. */
  const unopened: string[] = []
  const wanted: WantedPlugin[] = (Object.entries(loaders) as [PluginName, NonNullable<Loaders[PluginName]>][])
    .filter(([name]) => settings[name].enabled)
    .map(([name, load]) => ({ name, load: load as WantedPlugin['load'], settings: settings[name] }))

  const main = (): string[] =>
    mainPort === undefined ? [] : [http.publicUrl ?? `http://${reachableHost(host)}:${mainPort}`]
  /** Where the port of a plugin is opened. */
  const hostOf = (name: string): string =>
    (settings[name as PluginName] as { readonly host?: string | undefined }).host ?? host
  const own = (name: string): string[] => {
    const server = servers.get(name)
    return server === undefined ? [] : [`http://${reachableHost(hostOf(name))}:${server.port}`]
  }
  const addresses = (name: string): readonly string[] => [
    ...own(name),
    ...main().map((url) => `${url}/${name}`),
  ]
  const { allowLoopback, caFile } = settings.outbound
  const plugins = createPlugins(
    {
      ...ports,
      serve: async (request, env) => routes!.fetch(request, env),
      pass(request, received) {
        const { method, headers, socket } = received.incoming
        const reply = routes!.direct({ method, url: targetOf(request.url), headers, socket })
        return reply === undefined ? routes!.fetch(request, received) : responseOf(reply)
      },
      publish: () => publish,
      address: () => main()[0] ?? 'mdr',
      addresses,
      isOwn: (url) => isOwn(url, { ports: portsOf(mainPort, servers), publicUrl: http.publicUrl }),
      context: platformContext(ports.core),
    },
    {
      allowsLoopback: allowLoopback,
      ca: trustedWith(caFile),
      folder: join(settings.data, 'plugins'),
      bridges: settings.bridges,
      gatewayName: () => `selvedge-${gatewayId(settings.data)}`,
    },
    wanted,
  )

  const ofPrefix = (segment: string): string | undefined => {
    const owner = Object.hasOwn(prefixes, segment) ? prefixes[segment] : undefined
    return owner !== undefined && plugins.has(owner) ? owner : undefined
  }

  /** The plugin that serves a path on the own listener of a plugin. */
  function ownerAt(name: PluginName, path: string): PluginName {
    const guests = guestPaths[name] ?? {}
    const wanted = withoutTrailingSlashes(path)
    const guest = Object.hasOwn(guests, wanted) ? guests[wanted]! : name
    return plugins.has(guest) ? guest : name
  }

  async function open(name: PluginName, app: App): Promise<void> {
    const { port } = settings[name]
    if (port === 'off' || !plugins.has(name)) return
    const { refuse } = app
    const host = hostOf(name)
    const entrance = createEntrance(
      {
        // Pages of other origins need further headers.
        direct: (request) =>
          request.headers.origin === undefined ? plugins.direct(name, request) : undefined,
        fetch: (request, env) => app.component(ownerAt(name, new URL(request.url).pathname))(request, env),
        refuse,
      },
      {
        token: isLoopbackListener(host) ? undefined : readOrCreateToken(http.tokenFile).token,
        pages: { host, ...http },
        isOpen: (path, method) => plugins.isOpen(ownerAt(name, path), path, method),
        isShared: (path) => plugins.isShared(ownerAt(name, path)),
        changesOnGet,
      },
    )
    try {
      const { outflow, log } = ports
      servers.set(name, await createHttpServer({ ...entrance, refuse, outflow, log }, { host, port }))
    } catch (error) {
      // The gateway continues, and the plugin stays reachable through the main port.
      const { message } = toGatewayError(error)
      unopened.push(`${name} has no port of its own: ${message}`)
      ports.log.error('plugin.no-listener', { plugin: name, error: message })
    }
  }

  return Object.freeze({
    has: plugins.has,
    ofPrefix,
    readsStreams: (name) => streaming.has(name),
    direct: plugins.direct,
    fetch: plugins.fetch,
    isOpen(path, method) {
      const [, name, rest] = under.exec(path) ?? []
      if (name === undefined || rest === undefined) return false
      const owner = ofPrefix(name)
      return owner === undefined ? plugins.isOpen(name, rest, method) : plugins.isOpen(owner, path, method)
    },
    isShared: (path) => plugins.isShared(under.exec(path)?.[1] ?? ''),
    changesOnGet,
    async notify(name, { uri, body }) {
      try {
        await plugins.notify(name, uri, typeof body === 'string' ? Buffer.from(body) : body)
        return { ok: true, status: 200 }
      } catch (error) {
        const { entry, message } = toGatewayError(error)
        return { ok: false, kind: 'status', status: entry.status, reason: message }
      }
    },
    async listen(app, httpPort, own) {
      publish = own
      routes = app
      mainPort = httpPort
      for (const { name } of wanted) await open(name as PluginName, app)
      void plugins.start()
    },
    status: plugins.status,
    complaints: () => [...unopened, ...plugins.complaints()],
    ports: () => Object.fromEntries([...servers].map(([name, { port }]) => [name, port])),
    async close() {
      await Promise.all([...servers.values()].map((server) => server.close()))
      await plugins.close()
    },
  } satisfies PluginHost)
}

/** The platform's context over the core context, compiled on first use. */
function platformContext(core: Context): () => Context {
  const { '@context': own } = platformContextDocument as { readonly '@context': Json }
  let compiled: Context | undefined
  return () => (compiled ??= compileContext(own, () => undefined, core) as Context)
}

const portsOf = (main: number | undefined, servers: ReadonlyMap<string, HttpServer>): ReadonlySet<number> =>
  new Set([...(main === undefined ? [] : [main]), ...[...servers.values()].map(({ port }) => port)])

/** Whether an address belongs to this gateway: one of its ports on this machine, or its public address. */
function isOwn(
  url: string,
  { ports, publicUrl }: { ports: ReadonlySet<number>; publicUrl: string | undefined },
): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, hostname, port, host } = new URL(url)
  if (publicUrl !== undefined && new URL(publicUrl).host === host) return true
  if (!ports.has(Number(port || (protocol === 'https:' ? 443 : 80)))) return false
  const bare = hostname.replace(/^\[|\]$/g, '')
  if (isLoopback(bare)) return true
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === bare))
}
