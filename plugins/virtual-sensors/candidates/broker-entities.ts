/** Reads entities of the served broker, with canonical names, through its NGSI-LD interface. */

import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import { itemsOf } from '#client/requests/broker-messages.ts'
import { readByIds, readPages } from '#client/requests/broker-reading.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import type { Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

export interface BrokerEntities {
  /** Those that exist. @throws peer.unavailable, peer.refused */
  byId(ids: readonly string[], type: string): Promise<ReadonlyMap<string, Entity>>
  /**
   * The first `most` entities that a query selects.
   * @throws peer.unavailable, peer.refused
   */
  matching(query: Readonly<Record<string, string>>, most: number): Promise<readonly Entity[]>
}

export function createBrokerEntities(client: BrokerClient, clock: Clock): BrokerEntities {
  const parsed = (items: readonly Json[]): readonly Entity[] => itemsOf(items, clock.now()).entities
  return Object.freeze({
    async byId(ids, type) {
      if (ids.length === 0) return new Map()
      const found = await readByIds(ids, [type], client)
      if ('trouble' in found) throw errorOf(client.address, found.trouble)
      return new Map(parsed(found.value).map((entity) => [entity.id, entity]))
    },
    async matching(query, most) {
      const entities: Entity[] = []
      const trouble = await readPages(
        new URLSearchParams(query).toString(),
        { client, monotonic: clock.monotonic },
        async ({ items }) => {
          entities.push(...parsed(items))
          return entities.length >= most ? 'enough' : undefined
        },
      )
      if (trouble !== undefined) throw errorOf(client.address, trouble)
      return entities.slice(0, most)
    },
  } satisfies BrokerEntities)
}

export const errorOf = (address: string, { kind, reason }: RequestTrouble): GatewayError =>
  new GatewayError(kind === 'down' ? 'peer.unavailable' : 'peer.refused', `${address}: ${reason}`)
