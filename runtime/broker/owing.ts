/**
 * Stages deliveries in the outbox, in the commit of the change that they report. Deliveries are numbered in the order in
 * which they are staged. Those at the end of a throttling window bear one mark, so that they share a notification. Those of
 * a batch operation do not: which of them may leave together depends on what else waits, and a repeat after a crash would
 * hold other entities under another id, so that its receiver would not recognise it.
 */
import type { Delivery } from '#store/deliveries.ts'
import type { Stage } from './stage.ts'

/** Content of a delivery, before it gets its number and its place in the outbox. */
export type Owed = Omit<Delivery, 'd' | 'sub' | 'endpoint' | 'at' | 'batch'> & {
  /** It may share a notification with others of this commit. */
  readonly isShared?: true
}

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
    const { isShared = false, ...content } = what
    const mark = isShared ? (owed[0]?.d ?? d) : null
    const delivery: Delivery = { d, sub: to.i, endpoint: to.endpoint, at: stage.at, batch: mark, ...content }
    const { sub, endpoint, entity, at, batch, stream, t, value, body } = delivery
    stage.write('delivery.insert', d, sub, endpoint, entity, at, batch, stream, t, value, body)
    owed.push(delivery)
  }
}
