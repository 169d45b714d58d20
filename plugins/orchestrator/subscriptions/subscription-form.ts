/**
 * The members of a subscription that the orchestrator reads, and the form in which the broker receives it.
 * Pure.
 */
import type { Json } from '#contract'
import { isList, isObject, type JsonObject, listOf, own, present, textsOf } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { deliveryKey, isDelivery, isOwnPair, onFailureKey } from './subscription-id.ts'

/** How notifications reach one client over AMQP. */
export type ClientDelivery = 'transient' | 'durable' | 'replay'

const deliveries: readonly string[] = ['transient', 'durable', 'replay']

/**
 * Whether the orchestrator receives the notifications: the client named no address of its own. An endpoint
 * that is not an object is left to the broker, which explains the mistake.
 */
export function isDeliveredHere(body: JsonObject): boolean {
  const notification = own(body, 'notification')
  if (notification === undefined) return true
  if (!isObject(notification)) return false
  const endpoint = own(notification, 'endpoint')
  return endpoint === undefined || (isObject(endpoint) && own(endpoint, 'uri') === undefined)
}

/** @throws ngsi-ld.bad-request-data for an unknown value of `selvedge:delivery`. */
export function deliveryOf(body: JsonObject): ClientDelivery {
  const pair = pairsOf(endpointOf(body)).find(isDelivery)
  const value = isObject(pair) ? own(pair, 'value') : 'transient'
  if (typeof value === 'string' && deliveries.includes(value)) return value as ClientDelivery
  throw badRequestData(
    `must be one of ${deliveries.join(', ')}`,
    `notification.endpoint.notifierInfo ${deliveryKey}`,
  )
}

/** Whether observations of an alternative are delivered while a stream fails. */
export const isSwitching = (body: JsonObject): boolean => onFailureOf(body) === 'switch'

/** @throws ngsi-ld.bad-request-data for an unknown value of `selvedge:onFailure`, or one without effect. */
export function checkOnFailure(body: JsonObject, tenant: string): void {
  const value = onFailureOf(body)
  if (value === undefined) return
  const name = `notification.endpoint.notifierInfo ${onFailureKey}`
  if (value !== 'switch') throw badRequestData('must be switch', name)
  if (tenant !== '') throw badRequestData('requires the default tenant, whose streams are watched', name)
}

function onFailureOf(body: JsonObject): Json | undefined {
  const pair = pairsOf(endpointOf(body)).find((one) => isObject(one) && one['key'] === onFailureKey)
  return isObject(pair) ? (own(pair, 'value') ?? null) : undefined
}

/** Ids of the entities that selectors name. */
export const selectedIds = (selectors: Json | undefined): ReadonlySet<string> =>
  new Set(
    listOf<Json>(selectors ?? [])
      .filter(isObject)
      .flatMap((one) => textsOf(own(one, 'id') ?? [])),
  )

export interface ForwardedForm {
  readonly id: string
  /** Address of the orchestrator, with the secret of the subscription. */
  readonly uri: string
  /** Used where the subscription has no @context. */
  readonly context: Json
  /** Pairs for the notifier of the broker. */
  readonly notifierInfo: readonly Json[]
  /** Selectors of alternatives that the subscription was switched to. */
  readonly switchedTo: readonly JsonObject[]
}

/** The subscription as the broker receives it, with media type application/ld+json. */
export function forwardedBody(
  body: JsonObject,
  { id, uri, context, notifierInfo, switchedTo }: ForwardedForm,
): JsonObject {
  const notification = own(body, 'notification')
  const endpoint = endpointOf(body) ?? {}
  const pairs = [...pairsOf(endpoint).filter((pair) => !isOwnPair(pair)), ...notifierInfo]
  const entities = own(body, 'entities')
  const named = selectedIds(entities)
  const further = new Map(switchedTo.map((one) => [own(one, 'id') as string, one]))
  const added = [...further].flatMap(([one, selector]) => (named.has(one) ? [] : [selector]))
  return {
    ...body,
    id,
    type: own(body, 'type') ?? 'Subscription',
    ...(added.length > 0 ? { entities: [...listOf<Json>(entities ?? []), ...added] } : {}),
    notification: {
      ...(isObject(notification) ? notification : {}),
      endpoint: {
        accept: 'application/json',
        ...present({ ...endpoint, notifierInfo: undefined }),
        uri,
        ...(pairs.length > 0 ? { notifierInfo: pairs } : {}),
      },
    },
    '@context': own(body, '@context') ?? context,
  }
}

/**
 * An id that can name an exchange, and a queue in a header: the names beside it are up to 40 bytes longer,
 * and AMQP allows 255.
 * @throws ngsi-ld.bad-request-data
 */
export function checkExchangeName(id: Json): string {
  if (typeof id !== 'string' || !/^[a-z][a-z\d+.-]*:[!-~]+$/i.test(id))
    throw badRequestData('must be a URI, with other characters than printable ASCII percent-encoded', 'id')
  if (Buffer.byteLength(id) > 200)
    throw badRequestData('must have at most 200 bytes to name an exchange', 'id')
  if (/^amq\./i.test(id)) throw badRequestData('must not begin with amq., which AMQP reserves', 'id')
  return id
}

function endpointOf(body: JsonObject): JsonObject | undefined {
  const notification = own(body, 'notification')
  const endpoint = isObject(notification) ? own(notification, 'endpoint') : undefined
  return isObject(endpoint) ? endpoint : undefined
}

function pairsOf(endpoint: JsonObject | undefined): readonly Json[] {
  const pairs = endpoint && own(endpoint, 'notifierInfo')
  return isList(pairs) ? pairs : []
}
