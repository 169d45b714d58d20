/** The broker whose streams are rated: this gateway's own, or a remote one. */
import type { BrokerPort, Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { StreamSaving } from '#plugins/quality/streams/stream-saving.ts'
import type { SubscriptionList } from './subscription-list.ts'

export interface ServedBroker {
  /** Where qualities and links are written. */
  readonly port: BrokerPort
  /** The current state of an entity that describes streams. */
  entityOf(id: string): Entity | undefined
  /** Whether an entity exists, as far as is known. */
  exists(id: string): boolean
  /** Whether the entity came from another broker through an uplink. */
  isReplica(id: string): boolean
  /** Begins to follow the broker; settles when the streams that exist are known. */
  start(): Promise<void>
  /**
   * Takes the body of a callback; settles when it is on disk.
   * @param secret the last part of the path; undefined for a write by a client.
   * @throws http.unauthorized, http.busy, ngsi-ld.bad-request-data
   */
  receive(body: Json, secret: string | undefined): Promise<void>
  readonly saving: StreamSaving
  readonly subscriptions: SubscriptionList
  readonly status: () => object
  readonly complaints: () => readonly string[]
  close(): Promise<void>
}
