/** The connection of a request, as routes see it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebSocket } from 'ws'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { TunnelGuest } from './tunnel-guest.ts'

/** The connection of a request, as routes see it. */
export interface HttpEnv {
  readonly incoming: IncomingMessage
  readonly outgoing?: ServerResponse
  /** The body, if it was read before or replaced. */
  readonly body?: Buffer
  /** Replaces the tenant's broker; it includes what context sources reported for this request. */
  readonly broker?: TenantBroker
  /** Whether that broker is the snapshot that the request names. */
  readonly isSnapshot?: boolean
  /** Whether a component of this gateway sent the request, without a socket. */
  readonly isWithin?: boolean
  /** The header in which the token of this gateway was checked. */
  readonly tokenHeader?: 'authorization' | 'x-auth-token'
  /** Set if the request came through a tunnel to a centre. */
  readonly guest?: TunnelGuest
  /** Set if the request uses or creates an entity map. */
  readonly map?: MapUse
  /** Set if the request asks for an upgrade to WebSocket. */
  readonly upgrade?: Upgrade
}

/** Results of the sources that an entity map needs. */
export interface SourceResults {
  readonly copies: readonly { readonly source: string; readonly entity: { readonly id: string } }[]
  /** Locations of the maps that sources made, by registration. */
  readonly linked: ReadonlyMap<string, string>
}

/** How a request uses an entity map. */
export interface MapUse {
  /** The ids of this page and the sources that hold them; only these are queried. */
  readonly page?: { readonly ids: readonly string[]; readonly sources: ReadonlySet<string> }
  /** Parameters that make sources create maps of their own. */
  readonly mapParameters?: Readonly<Record<string, string>>
  /** The broker that the route runs on. */
  through(broker: TenantBroker, results: SourceResults): TenantBroker
}

export interface UpgradeOptions {
  /** The connection closes with 1009 at a larger message. */
  readonly messageBytesMax: number
  /** Additional headers of the response. */
  readonly headers?: readonly string[]
}

export interface Upgrade {
  /** Accepts the connection; the route's response is then discarded. */
  accept(use: (socket: WebSocket) => void, options: UpgradeOptions): void
}
