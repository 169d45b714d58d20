/**
 * Stages deliveries in the outbox, in the commit of the change that they report. Deliveries are numbered in the order in
 * which they are staged. Those of batch operations in one commit bear one mark, so that they may share a notification: they
 * are announced together, settled together, and after a crash read together, so that a repeat has the same id.
 */
import type { Delivery } from '#store/deliveries.ts'
import type { Stage } from './stage.ts'

/** Content of a delivery, before it gets its number and its place in the outbox. */
export type Owed = Omit<Delivery, 'd' | 'sub' | 'endpoint' | 'at' | 'batch'>

export type CommittedDeliveries = (deliveries: readonly Delivery[]) => void

/** A delivery that reports no observation. */
export const nothingObserved = { stream: null, t: null, value: null } as const

export interface OwingPorts {
  /** Highest delivery number used so far. */
  readonly lastDelivery: number
  /** Called after the flush. */
  readonly onDeliveries: CommittedDeliveries
}

/** Returns the function that stages a delivery to a subscriber. */
export function createOwing(ports: OwingPorts) {
  let last = ports.lastDelivery
  return (stage: Stage, to: { readonly i: number; readonly endpoint: string }, what: Owed): void => {
    let owed = stage.scratch.get('deliveries') as Delivery[] | undefined
    if (owed === undefined) {
      const list: Delivery[] = []
      owed = list
      stage.scratch.set('deliveries', list)
      stage.published(() => ports.onDeliveries(list))
    }
    const d = ++last
    const mark = stage.isBatch ? (owed[0]?.d ?? d) : null
    const delivery: Delivery = { d, sub: to.i, endpoint: to.endpoint, at: stage.at, batch: mark, ...what }
    const { sub, endpoint, entity, at, batch, stream, t, value, body } = delivery
    stage.write('delivery.insert', d, sub, endpoint, entity, at, batch, stream, t, value, body)
    owed.push(delivery)
  }
}
