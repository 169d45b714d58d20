/** Forwarding requests of clients to a broker: method, path, headers and body as they arrived. */
import type { RouteEnvironment } from './route.ts'

export interface ProxiedRequest {
  /** Its method and URL are forwarded. The path excludes the mount path of the plugin. */
  readonly request: Request
  readonly environment: RouteEnvironment
  /** Replaces the body. */
  readonly body?: Buffer | undefined
  /** Headers to add or replace; names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Entities stay as they are while the number of the last change is the same, and before a time. */
export interface ChangeValidity {
  readonly change: number
  /** When the first entity or attribute expires, wall clock ms. */
  readonly until: number
}

/** A broker to which requests are forwarded. */
export interface ForwardPort {
  /** Address without `/ngsi-ld/v1`. */
  readonly address: string
  /**
   * Until when responses about entities of a tenant stay as they are. Undefined for a tenant whose entities
   * are not all at this gateway. Absent for another broker.
   */
  validity?(tenant: string): ChangeValidity | undefined
  /**
   * Responds with status, headers and body of the broker; the body is a stream. @throws GatewayError
   * peer.unavailable, peer.timeout, peer.loop, http.busy
   */
  forward(forwarded: ProxiedRequest): Promise<Response>
}

export interface ForwardTarget {
  /** With or without `/ngsi-ld/v1`. */
  readonly url: string
  /** PEM file of its certificate authorities, in addition to those of the settings and the system. */
  readonly caFile?: string | undefined
  /** Time until the response begins. */
  readonly timeoutMs: number
}

export interface ForwardingPort {
  /** The routes of this gateway, in process. */
  readonly own: ForwardPort
  /** Another broker, over HTTP. @throws GatewayError config.invalid for an unreadable file. */
  remote(target: ForwardTarget): ForwardPort & { close(): void }
}
