/** Requests of a plugin to a broker: this gateway's own in process, or another one over HTTP. */
import type { JsonObject } from '#ngsi-ld/values/json.ts'

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

/**
 * A broker as its clients use it: this gateway's own broker in process, or another one over HTTP.
 * `streamHistory` reads past values through it.
 */
export interface BrokerPort {
  /** Address without `/ngsi-ld/v1`; for messages and to identify the responding broker. */
  readonly address: string
  /** Never rejects. Requests to this gateway's own broker use the same routes as requests from outside. */
  exchange(request: BrokerRequest): Promise<BrokerAnswer>
  /**
   * Like `exchange` for a GET of a list of entities. A component of this process may respond without
   * serializing and parsing. The entities are the same. Never rejects.
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
