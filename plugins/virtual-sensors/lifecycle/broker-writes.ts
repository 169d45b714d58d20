/**
 * Creates and deletes the entities of virtual sensors, and deletes their subscriptions, at the served
 * broker.
 */
import type { BrokerAnswer, BrokerPort } from '#contract'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { failed } from '#plugins/virtual-sensors/training/training-data.ts'

const operations = '/ngsi-ld/v1/entityOperations'
const headers = { 'Content-Type': 'application/json' }

/** In one commit of the broker. @throws virtual-sensors.failed */
export async function upsertEntities(broker: BrokerPort, entities: readonly JsonObject[]): Promise<void> {
  const answer = await broker.exchange({
    method: 'POST',
    path: `${operations}/upsert?options=update`,
    headers,
    body: JSON.stringify(entities),
  })
  check(broker, answer, () => false)
}

/**
 * All entities by one batch, and the subscriptions; those that do not exist count as deleted.
 * @throws virtual-sensors.failed
 */
export async function deleteAll(
  broker: BrokerPort,
  entityIds: readonly string[],
  subscriptionIds: readonly string[],
): Promise<void> {
  const [entities, ...subscriptions] = await Promise.all([
    broker.exchange({
      method: 'POST',
      path: `${operations}/delete`,
      headers,
      body: JSON.stringify(entityIds),
    }),
    ...subscriptionIds.map((id) =>
      broker.exchange({
        method: 'DELETE',
        path: `/ngsi-ld/v1/subscriptions/${encodeURIComponent(id)}`,
      }),
    ),
  ])
  check(broker, entities, (error) => JSON.stringify(error).includes('ResourceNotFound'))
  for (const answer of subscriptions)
    if (!('status' in answer && answer.status === 404)) check(broker, answer)
}

/** @param isFine whether an error of a batch does not matter */
function check(
  { address }: BrokerPort,
  answer: BrokerAnswer,
  isFine: (error: unknown) => boolean = () => false,
): void {
  if ('failure' in answer) throw failed(`${address}: ${answer.reason}`)
  const { status, text } = answer
  if (status < 300 && status !== 207) return
  const body = parsedJson(text)
  const errors = isObject(body) && isList(body['errors']) ? body['errors'] : undefined
  if (status === 207 && errors !== undefined && errors.every(isFine)) return
  if (status === 404 && isFine(body)) return
  throw failed(`${address} answered with ${status}: ${text.slice(0, 300)}`)
}
