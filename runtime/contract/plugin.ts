/**
 * A plugin: a manifest of plain data and one function `start`, which receives exactly the capabilities that
 * the manifest names. A plugin is a client of an NGSI-LD broker through `BrokerPort`: this gateway's own
 * (`mdr`) or a remote one. The host closes everything that the plugin opened or registered.
 */

import type { Instruments } from '#base/process/instruments.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { BrokerPort, ListAnswer, RemoteBroker, WrittenAnswer } from './broker-port.ts'
import type { ChangesPort } from './changes-port.ts'
import type { PluginDatabase } from './database-port.ts'
import type { OpenExchanges, PublishOwn } from './exchanges-port.ts'
import type { ForwardingPort } from './forwarding-port.ts'
import type { KeyValuePort } from './key-value-port.ts'
import type { ModelsPort } from './models-port.ts'
import type { DirectRequest, ListRequest, Reply, RouteEnvironment } from './route.ts'
import type { SourcesPort } from './sources-port.ts'

/** Capabilities by name. */
export interface Capabilities {
  /** This gateway's own broker, by its NGSI-LD interface. */
  readonly mdr: BrokerPort
  /**
   * Opens another broker. Rejects loopback addresses if the settings do not allow them.
   * @throws GatewayError config.invalid for an invalid address or an unreadable file.
   */
  readonly remote: (broker: RemoteBroker) => BrokerPort & { close(): void }
  /** Another plugin, by its routes in process; unreachable while it is not running. */
  readonly component: (name: string) => BrokerPort
  readonly changes: ChangesPort
  /** Stores of copies outside the gateway. */
  readonly keyValues: KeyValuePort
  /** Forwards requests of clients unchanged. */
  readonly forwarding: ForwardingPort
  readonly database: PluginDatabase
  /** Publishes to clients of the embedded MQTT broker; undefined if it is off. */
  readonly publish: PublishOwn | undefined
  /** Opens an AMQP broker to publish to. */
  readonly exchanges: OpenExchanges
  /** ONNX models. */
  readonly models: ModelsPort
  /** Message brokers of others. */
  readonly sources: SourcesPort
  /**
   * Runs a job at the times of a five-field cron expression, one run at a time. @throws for any other text.
   */
  readonly schedule: (cron: string, job: () => void | Promise<void>) => void
}

export type Capability = keyof Capabilities

/** Ports that every plugin receives. */
export interface HostBase<Settings> extends Instruments {
  readonly settings: Settings
  /** Aborted when the plugin must stop. */
  readonly signal: AbortSignal
  /**
   * Reports a fatal failure outside `start` and followers: the host closes and disables the plugin, and
   * health reports the error.
   */
  readonly fail: (error: unknown) => void
  /**
   * The platform context (sosa, iot-stream, qoi, geo, rdfs, ...) on top of the core context; compiled at the
   * first call.
   */
  readonly context: () => Context
  /** Addresses of the routes of this plugin; empty until the listeners are open. */
  readonly addresses: () => readonly string[]
  /** Whether a URL addresses this gateway itself. */
  readonly isOwn: (url: string) => boolean
}

export type Host<Settings, Needs extends Capability> = HostBase<Settings> & Pick<Capabilities, Needs>

/** A running plugin. */
export interface Running {
  /**
   * Responds to a request. The path starts with `/` and excludes the mount path; the host adds the mount path
   * to a `Location` header. An error becomes a problem response (that of a GatewayError, or 500).
   */
  fetch?(request: Request, environment: RouteEnvironment): Response | Promise<Response>
  /**
   * Responds to a request at once, such as from a cache, without a Request or a Response object; undefined if
   * `fetch` has to respond. Its URL excludes the mount path, and names of headers are in lower case. The
   * response equals that of `fetch`.
   */
  direct?(request: DirectRequest): Reply | undefined
  /**
   * Responds to a GET in process with entities that are not serialized; undefined if `fetch` has to respond.
   * The response or error equals that of `fetch`.
   */
  list?(request: ListRequest): Promise<ListAnswer | WrittenAnswer | undefined>
  /**
   * Takes a notification of this gateway's own broker, of a subscription whose notifier is this component.
   * Resolves once it is stored; an error makes the broker send it again.
   */
  notified?(uri: string, body: Buffer): Promise<void>
  /**
   * Paths (starting with `/`) that need no token, since the plugin checks a secret of its own there. Paths
   * below them are open too; one that ends with `/` opens only those.
   */
  readonly open?: readonly string[]
  /**
   * Whether pages of any origin may read its responses (Access-Control-Allow-Origin: *). Then they may also
   * read error responses of the host, and OPTIONS (preflight) requests need no token.
   */
  readonly isShared?: boolean
  /**
   * OpenAPI document of its routes; the host serves it at `/openapi.json` of each of its addresses without a
   * token.
   */
  readonly description?: object
  /** State for operators, as JSON. */
  status?(): object
  /** Problems that an operator should check although the plugin works. */
  complaints?(): readonly string[]
  close?(): void | Promise<void>
}

export interface Plugin<Settings, Needs extends Capability = Capability> {
  /** Folder name, path on the main listener, and name in settings, metrics and health. */
  readonly name: string
  readonly version: string
  readonly summary: string
  readonly needs: readonly Needs[]
  /**
   * SQL of the tables of its own file, as migration steps; a released step never changes. A file with more
   * steps than these is rejected.
   */
  readonly tables?: readonly string[]
  start(host: Host<Settings, Needs>): Running | Promise<Running>
}

export function definePlugin<Settings, const Needs extends Capability>(
  plugin: Plugin<Settings, Needs>,
): Plugin<Settings, Needs> {
  return Object.freeze(plugin)
}
