/**
 * Stages deliveries in the outbox, in the commit of the change that they report. Deliveries are numbered in
 * the order in which they are staged, and their commit times never decrease. Deliveries of one batch
 * operation, or of the end of one throttling window, have the same mark: the dispatcher may send them in one
 * notification. Their grouping is decided when they are sent, so after a crash an entity can be repeated in
 * another notification, under another id.
 */

import type { Stage } from '#broker/commit/stage.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'

/** Content of a delivery, before it gets its number and its position in the outbox. */
export type DeliveryContent = Omit<Delivery, 'd' | 'sub' | 'endpoint' | 'at' | 'batch'>

export type CommittedDeliveries = (deliveries: readonly Delivery[]) => void

/** A delivery that reports no observation. */
export const nothingObserved = { stream: null, t: null, value: null } as const

export interface OutboxPorts {
  /** Highest delivery number used so far. */
  readonly lastDelivery: number
  /** Called after the flush. */
  readonly onDeliveries: CommittedDeliveries
}

/** Returns the function that stages a delivery to a subscriber. */
export function createDeliveryOutbox(ports: OutboxPorts) {
  let last = ports.lastDelivery
  let lastAt = 0
  return (
    stage: Stage,
    to: { readonly i: number; readonly endpoint: string },
    what: DeliveryContent,
  ): void => {
    let staged = stage.scratch.get('deliveries') as Delivery[] | undefined
    if (staged === undefined) {
      const list: Delivery[] = []
      staged = list
      stage.scratch.set('deliveries', list)
      stage.published(() => ports.onDeliveries(list))
    }
    const d = ++last
    // Later parts of a batch have the time of its first part. A stream consumer confirms by time and number.
    lastAt = Math.max(lastAt, stage.at)
    const place = { d, sub: to.i, endpoint: to.endpoint, at: lastAt, batch: stage.batchAt ?? null }
    const delivery: Delivery = { ...place, ...what }
    const { sub, endpoint, entity, at, batch, stream, t, value, body } = delivery
    stage.write('delivery.insert', d, sub, endpoint, entity, at, batch, stream, t, value, body)
    staged.push(delivery)
  }
}
