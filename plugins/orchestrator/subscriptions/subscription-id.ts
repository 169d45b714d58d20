/**
 * The id of a subscription that a client created without one: a version 3 UUID without a namespace, as the
 * original orchestrator formed it, so that clients that ask for the same get the same id. Pure.
 *
 * The original key has only entity ids, address and watched attributes. All other members that change what is
 * delivered are appended to it as JSON with sorted members, except those that have their default value.
 */
import { hash } from 'node:crypto'
import type { Json } from '#contract'
import { isList, isObject, type JsonObject, own, present, stableJson } from '#ngsi-ld/values/json.ts'

/** A subscription as its client sent it. */
export interface SentSubscription {
  readonly body: JsonObject
  /** `@context` of the Link header. */
  readonly linkedContext?: string | undefined
  /** '' is the default tenant. */
  readonly tenant: string
}

/** Members that do not change what is delivered, and those that the original key has. */
const inKey = new Set(['id', 'type', 'entities', 'watchedAttributes', 'notification', '@context'])
const labels = new Set(['subscriptionName', 'name', 'description'])

/** The pair that selects the delivery for one client; every client of a subscription has its own. */
export const deliveryKey = 'selvedge:delivery'

/** The pair that asks for observations of an alternative while a stream fails. All clients share it. */
export const onFailureKey = 'selvedge:onFailure'

/** @param reference address to which brokers send notifications (HTTP_REFERENCE_URL). */
export function subscriptionIdOf(sent: SentSubscription, reference: string): string {
  return nameUuid(keyOf(sent, reference))
}

/** The id to use if a different subscription has the first one, since the parts of a key may contain `_`. */
export function otherIdOf(sent: SentSubscription, reference: string): string {
  return nameUuid(`${keyOf(sent, reference)}${fingerprintOf(sent)}`)
}

/** Equal for subscriptions that deliver the same under the same id. */
export function fingerprintOf(sent: SentSubscription): string {
  const { id, entities, watchedAttributes } = sent.body
  return `${sent.tenant}\n${stableJson(present({ ...furtherMembers(sent), id, entities, watchedAttributes }))}`
}

function keyOf(sent: SentSubscription, reference: string): string {
  const ids = entitiesOf(sent.body).map((entity) => `${textIn(entity, 'id') ?? 'null'}_`)
  const further = furtherMembers(sent)
  const end = Object.keys(further).length === 0 ? '' : stableJson(further)
  return `${ids.join('_')}--${reference}${watchedOf(sent.body).map(textOf).join('_')}${end}`
}

/** Members that change what is delivered, without those of the original key. */
function furtherMembers({ body, linkedContext, tenant }: SentSubscription): JsonObject {
  const others = Object.entries(body).filter(
    ([name, value]) => !inKey.has(name) && !labels.has(name) && !(name === 'isActive' && value === true),
  )
  const entities = entitiesOf(body).map(furtherOfEntity)
  const notification = furtherOfNotification(own(body, 'notification'))
  return present({
    ...Object.fromEntries(others),
    entities: entities.some((one) => Object.keys(one).length > 0) ? entities : undefined,
    notification: Object.keys(notification).length > 0 ? notification : undefined,
    '@context': own(body, '@context') ?? linkedContext,
    tenant: tenant === '' ? undefined : tenant,
  })
}

/** The type is part of the key only where there is no id. */
function furtherOfEntity(entity: Json): JsonObject {
  if (!isObject(entity)) return { entity }
  const { id, type, ...others } = entity
  return present({ ...others, type: id === undefined ? type : undefined })
}

function furtherOfNotification(notification: Json | undefined): JsonObject {
  if (!isObject(notification)) return notification === undefined ? {} : { notification }
  const { endpoint, format, ...others } = notification
  const further = isObject(endpoint) ? furtherOfEndpoint(endpoint) : {}
  return present({
    ...others,
    format: format === 'normalized' ? undefined : format,
    endpoint: Object.keys(further).length > 0 ? further : undefined,
  })
}

function furtherOfEndpoint({ uri: _, accept, notifierInfo, ...others }: JsonObject): JsonObject {
  const pairs = isList(notifierInfo) ? notifierInfo.filter((pair) => !isDelivery(pair)) : []
  return present({
    ...others,
    accept: accept === 'application/json' ? undefined : accept,
    notifierInfo: pairs.length > 0 ? pairs : undefined,
  })
}

export const isDelivery = (pair: Json): boolean => isObject(pair) && pair['key'] === deliveryKey

/** Whether a pair is for the orchestrator, and not for the broker. */
export const isOwnPair = (pair: Json): boolean =>
  isDelivery(pair) || (isObject(pair) && pair['key'] === onFailureKey)

const entitiesOf = (body: JsonObject): readonly Json[] => {
  const entities = own(body, 'entities')
  return isList(entities) ? entities : []
}

const watchedOf = (body: JsonObject): readonly Json[] => {
  const watched = own(body, 'watchedAttributes')
  return isList(watched) ? watched : []
}

/** The broker rejects any name that is not text. */
const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

const textIn = (value: Json, name: string): string | undefined => {
  const found = isObject(value) ? own(value, name) : undefined
  return typeof found === 'string' ? found : undefined
}

/** A version 3 UUID of a text without a namespace [RFC 9562, 5.3]. */
function nameUuid(text: string): string {
  const bytes = hash('md5', text, 'buffer')
  bytes[6] = (bytes[6]! & 0x0f) | 0x30
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return `urn:${parts.join('-')}`
}
