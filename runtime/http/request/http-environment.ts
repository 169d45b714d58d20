/** What a route knows of the connection that its request came by. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebSocket } from 'ws'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { TunnelGuest } from './tunnel-guest.ts'

/** What a route may know of the connection. */
export interface HttpEnv {
  readonly incoming: IncomingMessage
  readonly outgoing?: ServerResponse
  /** The body where it has been read before, or stands in for the one that came. */
  readonly body?: Buffer
  /** Stands in for the broker of the tenant: it knows what context sources told about this request. */
  readonly broker?: TenantBroker
  /** Whether that broker is the snapshot that the request names. */
  readonly isSnapshot?: boolean
  /** Whether it was asked by a component of this gateway, without a socket. */
  readonly isWithin?: boolean
  /** There when it came through a tunnel to a centre. */
  readonly guest?: TunnelGuest
  /** There when an entity map has a part in the request. */
  readonly map?: MapUse
  /** There when the request asks for WebSocket. */
  readonly upgrade?: Upgrade
}

/** What sources told that matters to an entity map. */
export interface SourceResults {
  readonly copies: readonly { readonly source: string; readonly entity: { readonly id: string } }[]
  /** Locations of the maps that they made, by registration. */
  readonly linked: ReadonlyMap<string, string>
}

/** How an entity map has a part in a request. */
export interface MapUse {
  /** What the map names for this page, and the sources that hold it: nobody else is asked, and for nothing else. */
  readonly page?: { readonly ids: readonly string[]; readonly sources: ReadonlySet<string> }
  /** Parameters with which sources make maps of their own. */
  readonly mapParameters?: Readonly<Record<string, string>>
  /** The broker that the route is to run on. */
  through(broker: TenantBroker, results: SourceResults): TenantBroker
}

/** What differs from the usual: longer messages, and header lines of the answer. */
export interface UpgradeOptions {
  readonly messageBytesMax: number
  readonly headers: readonly string[]
}

export interface Upgrade {
  /** Takes the connection; what the route answers then goes nowhere. */
  accept(use: (socket: WebSocket) => void, options?: UpgradeOptions): void
}
