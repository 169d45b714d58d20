/** Entities and deletions that other brokers send, as the index takes them. Pure. */
import { type BrokerItems, itemsOf } from '#client/requests/broker-messages.ts'
import type { Json } from '#contract'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { BrokerEntity } from './entries.ts'

export interface SentItems extends Omit<BrokerItems, 'entities'> {
  readonly entities: readonly BrokerEntity[]
}

export function sentItemsOf(items: readonly Json[], now: number): SentItems {
  const { entities, ...others } = itemsOf(items, now)
  const sent = entities.map((entity) => {
    const text = JSON.stringify(entity)
    return {
      id: entity.id,
      types: listOf(entity.type),
      entity: () => entity,
      text: () => text,
      times: () => ({ created: now }),
    }
  })
  return { ...others, entities: sent }
}
