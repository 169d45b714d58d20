/**
 * Entities that clients send to the callback of a component without a secret, as the original components
 * allowed: they are written to the gateway's own broker, as if the client had sent them there.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, Json } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { bodyItems, createItemReader } from './received-entities.ts'

/** Returns the `receive` of a component that follows the log of its broker. */
export function createSentEntityWriter(mdr: BrokerPort, now: () => number) {
  const read = createItemReader()
  /**
   * @param secret of the callback; no notification of this broker has one.
   * @throws http.unauthorized, ngsi-ld.bad-request-data, peer.unavailable
   */
  return async (body: Json, secret: unknown): Promise<void> => {
    if (secret !== undefined) throw new GatewayError('http.unauthorized', 'no subscription has this callback')
    const { items, context } = bodyItems(body)
    const { entities, unreadable } = read(items, now(), context)
    if (entities.length === 0) throw badRequestData(unreadable[0] ?? 'has no entity', 'body')
    const answer = await mdr.exchange({
      method: 'POST',
      path: '/ngsi-ld/v1/entityOperations/upsert?options=update',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(entities),
    })
    if ('failure' in answer) throw new GatewayError('peer.unavailable', answer.reason)
    if (answer.status >= 300 || answer.status === 207) throw badRequestData(answer.text.slice(0, 300), 'body')
  }
}
