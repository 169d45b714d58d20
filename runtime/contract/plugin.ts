/**
 * What a plugin is: a manifest of plain data and one `start`, which receives exactly the capabilities that the manifest
 * names. A plugin is a client of the metadata repository: what it knows it reads there or follows from there, and it can
 * serve a repository elsewhere by the same port. Whatever it opens or registers ends when the host closes it.
 */

import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { Json } from './pipeline.ts'

/** A request of NGSI-LD, or of anything else that a broker serves. */
export interface BrokerRequest {
  readonly method: string
  /** With its query, beginning with `/`: behind the address of the broker. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  /** Left out: `limits.pluginRequestMs`. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WrittenAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** An answer, or why there was none. */
export type BrokerAnswer =
  | WrittenAnswer
  | {
      /** `oversized`: there was one, of more bytes than are taken. */
      readonly failure: 'timeout' | 'unreachable' | 'oversized'
      readonly reason: string
    }

/** Entities of an answer (200) that was not written out. */
export interface ListAnswer {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** They are for whoever asked, and for nobody else: it may change them. */
  readonly items: readonly JsonObject[]
  /** About how many bytes they would be. */
  readonly bytes: number
}

/** A broker as its clients have it: this gateway's own, in process, or another one by HTTP. */
export interface BrokerPort {
  /** Without `/ngsi-ld/v1`; for messages and for telling who answered. */
  readonly address: string
  /** Never rejects. What this gateway's own broker is asked goes through the same routes as what comes from outside. */
  exchange(request: BrokerRequest): Promise<BrokerAnswer>
  /**
   * What `exchange` answers to a GET for a list of entities, without writing it out and reading it again where the broker is a
   * component of this process that can do so. The protocol is the same, and so are the entities. Never rejects.
   */
  list?(request: BrokerRequest): Promise<BrokerAnswer | ListAnswer>
}

/** How another broker is reached. */
export interface RemoteBroker {
  /** With or without `/ngsi-ld/v1`. */
  readonly url: string
  readonly tenant?: string | undefined
  /** Sent with each request; a function where it may change, such as a token that expires. */
  readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  /** File of a token sent as Bearer; read again for each request. Mode 0600. */
  readonly tokenFile?: string | undefined
  /** Whether its address is from the settings, which may name this machine, and not from a request. */
  readonly isConfigured?: boolean | undefined
  /** PEM file of those who vouch for it, beside those of the settings and the system. */
  readonly caFile?: string | undefined
  /** Who gives tokens, sent as X-Auth-Token: kept until they expire, and asked for anew when one is refused. */
  readonly identity?: RemoteIdentity | undefined
}

/** An identity manager with POST /v1/auth/tokens, and by what it knows us. */
export interface RemoteIdentity {
  readonly url: string
  readonly name: string
  /** Its first line is the password. Mode 0600. */
  readonly passwordFile: string
}

/** An entity as it is now: core-compacted, normalized, with the newest values. */
export interface EntityState {
  /** Grows with each entity created; never used again. */
  readonly rid: number
  readonly id: string
  /** Canonical names. */
  readonly types: readonly string[]
  entity(): Entity
  /** The same as JSON text; cheap where nothing is newer than the document. */
  text(): string
  /** createdAt and modifiedAt, ms; of attribute instances by `name` or `name datasetId`. */
  times(): {
    readonly created: number
    readonly modified: number
    readonly attributes: Readonly<
      Record<string, readonly [created: number, modified: number, heard?: string | undefined]>
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

/** What became of entities between two positions of the log, each named once, as it is after them. */
export interface ChangeBatch {
  /** Number of the last log row in it: the cursor to keep in the same transaction as what is derived. */
  readonly through: number
  /** Commit time of that row, ms. */
  readonly at: number
  readonly changed: readonly EntityState[]
  readonly deleted: readonly string[]
  /** Only where the follower wants them: of each attribute instance the newest value of the batch. */
  readonly observed: readonly ObservedValue[]
}

export interface Follower {
  /** Canonical names of the types followed; left out: all. Deletions are told of all types. */
  readonly types?: ReadonlySet<string> | undefined
  /** Whether values observed are told, of all types. Without it an observation changes nothing for the follower. */
  readonly observes?: boolean
  /**
   * Takes a batch. One that throws gets the same, or more, again with a growing delay; after
   * `limits.pluginAttemptsMax` times the plugin is quarantined.
   */
  take(batch: ChangeBatch): void | Promise<void>
  /**
   * The log does not reach back to the cursor any more: everything has to be read anew by `entities`; following goes on
   * behind the number it returns.
   */
  readAnew(): number | Promise<number>
}

/** The numbered log of this gateway's own broker, default tenant. */
export interface ChangesPort {
  /** Number of the last log row on disk. Read before `entities`, it is where to follow from after a full read. */
  position(): number
  /** The first entities behind a rid, as they are now, in order of creation; in slices of at most 256 it does not stall others. */
  entities(behind: number, limit: number): readonly EntityState[]
  entity(id: string): EntityState | undefined
  /** Follows from behind a number: at least once, in order, soon after each commit, at most `limits.pluginBatchRows` log rows at a time. */
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
  /** Rows as arrays. */
  raw(isRaw?: boolean): PluginStatement
  /** The first column alone. */
  pluck(isPlucked?: boolean): PluginStatement
}

/** The plugin's own SQLite file, in WAL mode, synchronous NORMAL: what is derived can be derived again. Plain `?` parameters. */
export interface PluginDatabase {
  prepare(sql: string): PluginStatement
  /** Runs as one transaction; undone when it throws. */
  transaction<A extends readonly unknown[], T>(work: (...given: A) => T): (...given: A) => T
  /**
   * Between two transactions of a long work: others have their turn, and the file's log is copied back where it has
   * become long. @throws what a disk refuses, while it does.
   */
  rest(): Promise<void>
  /** Bytes of the file with its log. */
  bytes(): number
  /** Empties the file and makes its tables anew. Statements prepared before are void. */
  reset(): Promise<void>
}

/** Capabilities by name. */
export interface Capabilities {
  /** This gateway's own broker by its NGSI-LD interface. */
  readonly mdr: BrokerPort
  /**
   * Opens another broker. Loopback addresses are refused where the settings refuse them.
   * @throws GatewayError config.invalid for an address that is none, or a file that cannot be read.
   */
  readonly remote: (broker: RemoteBroker) => BrokerPort & { close(): void }
  /** Another plugin by its routes, in process; unreachable while it does not run. */
  readonly component: (name: string) => BrokerPort
  readonly changes: ChangesPort
  readonly database: PluginDatabase
  /** Runs a job at the times of a cron expression of five fields, not again while it runs. @throws for another text. */
  readonly schedule: (cron: string, job: () => void | Promise<void>) => void
}

export type Capability = keyof Capabilities

/** What every plugin gets. */
export interface HostBase<Settings> {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Aborted when the plugin is to end. */
  readonly signal: AbortSignal
  /** For what fails beside its start and what it follows, so that it cannot go on: it is closed and rests, and health says why. */
  readonly fail: (error: unknown) => void
  /** The context of the platform (sosa, iot-stream, qoi, geo, rdfs, ...) over the core context; compiled at the first call. */
  readonly context: () => Context
  /** Addresses under which the routes of this plugin are reached, known once the listeners are open; empty before. */
  readonly addresses: () => readonly string[]
  /** Whether an address (URL) is one of this gateway itself. */
  readonly isOwn: (url: string) => boolean
}

export type Host<Settings, Needs extends Capability> = HostBase<Settings> & Pick<Capabilities, Needs>

/** What a route may know of the connection. */
export interface RouteEnvironment {
  /** The whole body, bounded, unpacked where it is gzip, empty when there is none; for GET too. @throws GatewayError */
  body(): Promise<Buffer>
  /** There when the request asks for WebSocket: takes the connection (a `WebSocket` of the library ws). */
  readonly upgrade?: ((use: (socket: WebSocketLike) => void) => void) | undefined
  /** Aborted when the client went away. */
  readonly signal: AbortSignal
}

/** A GET in process. */
export interface ListRequest {
  /** With its query. */
  readonly path: string
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly signal: AbortSignal
}

/** What is needed of a WebSocket to serve it. */
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

/** A plugin that runs. */
export interface Running {
  /**
   * Answers a request for a path of the plugin, which begins with `/` whatever it is mounted under; so does a `Location` that it
   * answers, to which the host adds what it is mounted under. What it throws becomes a problem (GatewayError its own, everything
   * else 500).
   */
  fetch?(request: Request, environment: RouteEnvironment): Response | Promise<Response>
  /**
   * Answers a GET in process with entities that are not written out; undefined where `fetch` has to answer. Whatever it answers or
   * throws, `fetch` would have said the same.
   */
  list?(request: ListRequest): Promise<ListAnswer | WrittenAnswer | undefined>
  /** Paths (beginning with `/`) that need no token, since the plugin checks a secret of its own there. */
  readonly open?: readonly string[]
  /**
   * Whether pages of any origin may read its answers (Access-Control-Allow-Origin: *). Then they may read refusals that the host
   * answers in its place, and OPTIONS, by which browsers ask first, needs no token.
   */
  readonly isShared?: boolean
  /** OpenAPI of its routes, which the host answers at `/openapi.json` of each of its addresses; no token is asked for. */
  readonly description?: object
  /** For operators, as JSON. */
  status?(): object
  /** What an operator should look at although everything is served. */
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
   * SQL of the tables of its own file, step after step; a step never changes once released. Where the file is newer than
   * these it is refused.
   */
  readonly tables?: readonly string[]
  start(host: Host<Settings, Needs>): Running | Promise<Running>
}

export function definePlugin<Settings, const Needs extends Capability>(
  plugin: Plugin<Settings, Needs>,
): Plugin<Settings, Needs> {
  return Object.freeze(plugin)
}
