/** The broker whose streams are watched: this gateway's own, or a remote one. */
import type { BrokerPort, Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { CallbackSecret } from '#plugins/faults/operator/monitoring-routes.ts'
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
  /**
   * Takes the body of a callback; settles when it is judged. Without a secret it is a write by its sender,
   * who has the access of the listener.
   * @throws http.unauthorized, ngsi-ld.bad-request-data
   */
  receive(body: Json, secret: CallbackSecret | undefined): Promise<void>
  readonly status: () => object
  readonly complaints: () => readonly string[]
  close(): Promise<void>
}
