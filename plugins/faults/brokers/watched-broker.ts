/** The broker whose streams are watched: this gateway's own, or a remote one. */
import type { BrokerPort } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { JudgedUntil } from '#plugins/faults/streams/watched-stream-statements.ts'

export interface WatchedBroker {
  /** Where findings are written. */
  readonly port: BrokerPort
  /** The current state of an entity, as far as it is known. */
  entityOf(id: string): Entity | undefined
  /** Up to where observations are judged; undefined while everything is read. */
  readonly cursor: () => JudgedUntil | undefined
  /** Whether observations that the broker has are not judged yet. */
  readonly isBehind: () => boolean
  /** Begins to follow the broker; settles when the streams that exist are known. */
  start(): Promise<void>
  readonly status: () => object
  close(): Promise<void>
}
