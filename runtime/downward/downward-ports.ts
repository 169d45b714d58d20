/** Ports of the parts that act at other brokers. */

import type { Instruments } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Peer } from '#federation/peer.ts'
import type { App } from '#http/app.ts'
import type { Database } from '#store/file/database.ts'
import type { CopiesPorts } from './copies.ts'
import type { CopyStorePorts } from './copy-store.ts'

/** The routes of this gateway, for requests through tunnels. */
export type TunnelledApp = Pick<App, 'fetch' | 'refuse'>

export interface DownwardPorts extends Instruments {
  readonly database: Database
  readonly door: Pick<Door, 'commit'>
  readonly broker: CopyStorePorts['broker']
  readonly contexts: CopiesPorts['contexts']
  readonly peer: Peer
  /** The name of this gateway among brokers, in a tenant. */
  readonly alias: (tenant: string) => string
  readonly random: () => number
}
