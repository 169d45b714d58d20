/**
 * A plugin: a manifest of plain data and one function `start`, which receives exactly the capabilities that
 * the manifest names. A plugin is a client of the metadata repository: it reads and follows entities there.
 * The same port also works with a repository elsewhere. The host closes everything that the plugin opened or
 * registered.
 */

import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { Json } from './pipeline.ts'

/** An NGSI-LD request, or any other request that a broker serves. */
export interface BrokerRequest {
  readonly method: string
  /** Path with query, starting with `/`; appended to the address of the broker. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  /** Default: `limits.pluginRequestMs`. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WrittenAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** A response, or why there was none. */
export type BrokerAnswer =
  | WrittenAnswer
  | {
      /** `oversized`: the response exceeded the byte limit. */
      readonly failure: 'timeout' | 'unreachable' | 'oversized'
      readonly reason: string
    }

/** Entities of a 200 response that was not serialized. */
export interface ListAnswer {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The caller owns these objects and may change them. */
  readonly items: readonly JsonObject[]
  /** Estimated size when serialized, bytes. */
  readonly bytes: number
}

/** A broker as its clients use it: this gateway's own broker in process, or another one over HTTP. */
export interface BrokerPort {
  /** Address without `/ngsi-ld/v1`; for messages and to identify the responding broker. */
  readonly address: string
  /** Never rejects. Requests to this gateway's own broker use the same routes as requests from outside. */
  exchange(request: BrokerRequest): Promise<BrokerAnswer>
  /**
   * Like `exchange` for a GET of a list of entities, but avoids serializing and parsing if the broker is a
   * component of this process that supports it. The entities are the same. Never rejects.
   */
  list?(request: BrokerRequest): Promise<BrokerAnswer | ListAnswer>
}

/** Address and credentials of another broker. */
export interface RemoteBroker {
  /** With or without `/ngsi-ld/v1`. */
  readonly url: string
  readonly tenant?: string | undefined
  /** Headers sent with each request; a function because they may change, such as a token that expires. */
  readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  /** File of a Bearer token; read again for each request. Mode 0600. */
  readonly tokenFile?: string | undefined
  /** Whether the address is from the settings, which may name this machine, and not from a request. */
  readonly isConfigured?: boolean | undefined
  /** PEM file of its certificate authorities, in addition to those of the settings and the system. */
  readonly caFile?: string | undefined
  /** Issuer of tokens sent as X-Auth-Token; a token is cached until it expires or is rejected. */
  readonly identity?: RemoteIdentity | undefined
}

/** An identity manager with POST /v1/auth/tokens, and the credentials of this gateway there. */
export interface RemoteIdentity {
  readonly url: string
  readonly name: string
  /** Its first line is the password. Mode 0600. */
  readonly passwordFile: string
}

/** The current state of an entity: core-compacted, normalized, with the newest values. */
export interface EntityState {
  /** Increases with each created entity; never reused. */
  readonly rid: number
  readonly id: string
  /** Canonical names. */
  readonly types: readonly string[]
  entity(): Entity
  /** The entity as JSON text; cheap if no value is newer than the stored document. */
  text(): string
  /** createdAt and modifiedAt, ms; for attribute instances the key is `name` or `name datasetId`. */
  times(): {
    readonly created: number
    readonly modified: number
    readonly attributes: Readonly<
      Record<string, readonly [created: number, modified: number, via?: string | undefined]>
    >
  }
}

/** A value that became current. */
export interface ObservedValue {
  readonly id: string
  /** Canonical name of the attribute. */
  readonly name: string
  /** ms */
  readonly time: number
  readonly value: Json
}

/** Changes of entities between two log positions; each entity occurs once, in its latest state. */
export interface ChangeBatch {
  /** Number of its last log row: the cursor to store in the same transaction as the derived data. */
  readonly through: number
  /** Commit time of that row, ms. */
  readonly at: number
  readonly changed: readonly EntityState[]
  readonly deleted: readonly string[]
  /** Only if the follower observes: the newest value of each attribute instance in the batch. */
  readonly observed: readonly ObservedValue[]
}

export interface Follower {
  /** Canonical names of the followed types; default: all. Deletions of all types are reported. */
  readonly types?: ReadonlySet<string> | undefined
  /** Whether observed values of all types are reported. If not, observations cause no batch. */
  readonly observes?: boolean
  /**
   * Processes a batch. If it throws, the same changes, or more, are passed again with a growing delay; after
   * `limits.pluginAttemptsMax` attempts the plugin is quarantined.
   */
  take(batch: ChangeBatch): void | Promise<void>
  /**
   * Called if the log no longer contains the cursor: the follower reads all entities again by `entities` and
   * returns the log number to continue after.
   */
  readAnew(): number | Promise<number>
}

/** The numbered log of this gateway's own broker, default tenant. */
export interface ChangesPort {
  /** Number of the last log row on disk. Read it before `entities`; follow from it after a full read. */
  position(): number
  /**
   * Current states of the first entities after a rid, in order of creation. Slices of up to 256 do not stall
   * the event loop.
   */
  entities(behind: number, limit: number): readonly EntityState[]
  entity(id: string): EntityState | undefined
  /**
   * Follows the log after a number: at least once, in order, soon after each commit, `limits.pluginBatchRows`
   * log rows at most per batch.
   */
  follow(from: number, follower: Follower): { close(): void }
}

/** A row as an object of its columns. */
export type Row = Record<string, unknown>

export interface PluginStatement {
  run(...parameters: readonly unknown[]): {
    readonly changes: number
    readonly lastInsertRowid: number | bigint
  }
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
  iterate(...parameters: readonly unknown[]): IterableIterator<unknown>
  /** Returns rows as arrays. */
  raw(isRaw?: boolean): PluginStatement
  /** Returns only the first column. */
  pluck(isPlucked?: boolean): PluginStatement
}

/**
 * The plugin's own SQLite file, in WAL mode with synchronous NORMAL, since derived data can be derived again.
 * Plain `?` parameters.
 */
export interface PluginDatabase {
  prepare(sql: string): PluginStatement
  /** Runs the work as one transaction; rolls back if it throws. */
  transaction<A extends readonly unknown[], T>(work: (...given: A) => T): (...given: A) => T
  /**
   * To be awaited between two transactions of a long task: yields to other work, and checkpoints the WAL of
   * the file if it is long. @throws the error of a failing disk.
   */
  rest(): Promise<void>
  /** Bytes of the file and its WAL. */
  bytes(): number
  /** Empties the file and creates its tables again. Statements prepared before become invalid. */
  reset(): Promise<void>
}

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
  readonly database: PluginDatabase
  /**
   * Runs a job at the times of a five-field cron expression, one run at a time. @throws for any other text.
   */
  readonly schedule: (cron: string, job: () => void | Promise<void>) => void
}

export type Capability = keyof Capabilities

/** Ports that every plugin receives. */
export interface HostBase<Settings> {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
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

/** Access of a route to its connection. */
export interface RouteEnvironment {
  /**
   * The whole body, bounded, decompressed if it is gzip; empty if there is none, also for GET. @throws
   * GatewayError
   */
  body(): Promise<Buffer>
  /**
   * Present if the request is a WebSocket upgrade: accepts the connection (a `WebSocket` of the library ws).
   */
  readonly upgrade?: ((use: (socket: WebSocketLike) => void) => void) | undefined
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/** A GET in process. */
export interface ListRequest {
  /** Path with query. */
  readonly path: string
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly signal: AbortSignal
}

/** The part of a WebSocket that serving it needs. */
export interface WebSocketLike {
  readonly protocol: string
  readonly readyState: number
  send(text: string, done?: (error?: Error) => void): void
  close(code?: number, reason?: string): void
  ping(): void
  terminate(): void
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  on(event: 'close', listener: (code: number, reason: Buffer) => void): unknown
  on(event: 'pong' | 'error', listener: (error?: Error) => void): unknown
}

/** A running plugin. */
export interface Running {
  /**
   * Responds to a request. The path starts with `/` and excludes the mount path; the host adds the mount path
   * to a `Location` header. An error becomes a problem response (that of a GatewayError, or 500).
   */
  fetch?(request: Request, environment: RouteEnvironment): Response | Promise<Response>
  /**
   * Responds to a GET in process with entities that are not serialized; undefined if `fetch` has to respond.
   * The response or error equals that of `fetch`.
   */
  list?(request: ListRequest): Promise<ListAnswer | WrittenAnswer | undefined>
  /** Paths (starting with `/`) that need no token, since the plugin checks a secret of its own there. */
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
