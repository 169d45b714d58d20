/**
 * Parses the notification part of a subscription [NGSI-LD 5.2.14, 5.2.15, 5.2.22]: the part of the entities
 * to send, its form, and the endpoint. It ignores read-only members, and rejects members that are not
 * implemented (422) or unknown (400).
 */

import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import {
  depthOf,
  parseProjection,
  printProjection,
  projectionOf,
} from '#ngsi-ld/representation/projection.ts'
import { isConnectionHeader, isHeaderName, isHeaderValue } from '#ngsi-ld/values/header-text.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'
import { checkListedName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, notSupported, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { KeyValue } from '#ngsi-ld/values/secrets.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import {
  type NotificationEndpoint,
  type NotificationParameters,
  notificationFormats,
  notificationMediaTypes,
  streamUri,
} from './subscription.ts'
import { checkUplink } from './uplink-options.ts'

type Expander = Pick<Context, 'expand'>

const knownMembers: { readonly [name: string]: 'ignored' | 'read' } = {
  status: 'ignored',
  timesSent: 'ignored',
  timesFailed: 'ignored',
  lastNotification: 'ignored',
  lastSuccess: 'ignored',
  lastFailure: 'ignored',
  attributes: 'read',
  pick: 'read',
  omit: 'read',
  format: 'read',
  sysAttrs: 'read',
  showChanges: 'read',
  endpoint: 'read',
  join: 'read',
  joinLevel: 'read',
}

const endpointMembers = new Set(['uri', 'accept', 'timeout', 'cooldown', 'receiverInfo', 'notifierInfo'])

/** @throws GatewayError ngsi-ld.bad-request-data or ngsi-ld.not-supported, naming the member. */
export function parseNotification(value: Json, context: Expander): NotificationParameters {
  if (!isObject(value)) throw badRequestData('must be an object', 'notification')
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(knownMembers, name))
      throw badRequestData('is not a member of a subscription', `notification.${name}`)
  }
  const { attributes, format, sysAttrs, showChanges, endpoint } = value
  const parameters: NotificationParameters = {
    ...(attributes === undefined
      ? {}
      : { attributes: names(attributes, 'notification.attributes', context) }),
    ...projection(value, context),
    ...(format === undefined ? {} : { format: oneOf(format, notificationFormats, 'notification.format') }),
    ...(sysAttrs === undefined ? {} : { sysAttrs: flag(sysAttrs, 'notification.sysAttrs') }),
    ...(showChanges === undefined ? {} : { showChanges: flag(showChanges, 'notification.showChanges') }),
    ...joining(value),
    endpoint: parseEndpoint(endpoint),
  }
  checkDepth(parameters)
  if (parameters.showChanges === true && isSimplified(parameters)) {
    throw badRequestData('cannot be combined with a simplified format', 'notification.showChanges')
  }
  return parameters
}

const isSimplified = ({ format }: NotificationParameters): boolean =>
  format === 'keyValues' || format === 'simplified'

/** pick and omit (since 1.8), which cannot be combined with the older attributes. */
function projection(value: { readonly [name: string]: Json }, context: Expander) {
  const { attributes, pick, omit } = value
  for (const [name, given] of Object.entries({ pick, omit })) {
    if (given !== undefined && attributes !== undefined)
      throw badRequestData('cannot be combined with attributes', `notification.${name}`)
  }
  const picked = pick === undefined ? undefined : members(pick, 'notification.pick', context)
  const omitted = omit === undefined ? undefined : members(omit, 'notification.omit', context)
  const both = picked?.find((name) => omitted?.includes(name))
  if (both !== undefined) throw badRequestData(`${both} is also in pick`, 'notification.omit')
  return {
    ...(picked === undefined ? {} : { pick: picked }),
    ...(omitted === undefined ? {} : { omit: omitted }),
  }
}

/** Canonical names, those of linked entities in braces after them. */
function members(value: Json, field: string, { expand }: Expander): readonly string[] {
  const found = listOf(value).flatMap((item) =>
    printProjection(parseProjection(text(item, field), expand, field)),
  )
  if (found.length === 0) throw badRequestData('must contain at least one member', field)
  return [...new Set(found)]
}

function checkDepth({ pick, omit, join, joinLevel = 1 }: NotificationParameters): void {
  const levels = join === undefined || join === '@none' ? 0 : joinLevel
  for (const [name, given] of Object.entries({ pick, omit })) {
    const projection = projectionOf(given)
    if (projection !== undefined && depthOf(projection) > levels)
      throw badRequestData('must not reach further than linked entities are joined', `notification.${name}`)
  }
}

const joins = ['flat', 'inline', '@none'] as const

function joining({ join, joinLevel }: { readonly [name: string]: Json }) {
  if (join === undefined) {
    if (joinLevel !== undefined) throw badRequestData('requires join', 'notification.joinLevel')
    return {}
  }
  const how = oneOf(join, joins, 'notification.join')
  if (joinLevel === undefined) return { join: how }
  if (!Number.isInteger(joinLevel) || (joinLevel as number) < 1)
    throw badRequestData('must be an integer above 0', 'notification.joinLevel')
  if ((joinLevel as number) > limits.joinLevelsMax.value)
    throw tooComplex(`notification.joinLevel must be at most ${limits.joinLevelsMax.value}`)
  return { join: how, joinLevel: joinLevel as number }
}

/** @throws ngsi-ld.bad-request-data naming the invalid member */
export function parseEndpoint(
  value: Json | undefined,
  field = 'notification.endpoint',
): NotificationEndpoint {
  if (!isObject(value)) throw badRequestData('must be an object with a uri', field)
  const unknown = Object.keys(value).find((name) => !endpointMembers.has(name))
  if (unknown !== undefined) throw badRequestData('is not a member of an endpoint', `${field}.${unknown}`)
  const { uri, accept, timeout, cooldown, receiverInfo, notifierInfo } = value
  const address = endpointUri(uri, `${field}.uri`)
  const endpoint: NotificationEndpoint = {
    uri: address,
    ...(accept === undefined ? {} : { accept: oneOf(accept, notificationMediaTypes, `${field}.accept`) }),
    ...(timeout === undefined ? {} : { timeout: positive(timeout, `${field}.timeout`) }),
    ...(cooldown === undefined ? {} : { cooldown: positive(cooldown, `${field}.cooldown`) }),
    ...(receiverInfo === undefined ? {} : { receiverInfo: headers(receiverInfo, `${field}.receiverInfo`) }),
    ...(notifierInfo === undefined
      ? {}
      : { notifierInfo: notifier(notifierInfo, address, `${field}.notifierInfo`) }),
  }
  checkUplink(endpoint, field)
  return endpoint
}

function endpointUri(value: Json | undefined, field: string): string {
  const uri = checkUri(value, field)
  if (uri === streamUri || isTunnelled(uri)) return uri
  if (!/^(?:https?|mqtts?):\/\//i.test(uri) || !URL.canParse(uri))
    throw badRequestData(`must be an http, https, mqtt or mqtts URL, or ${streamUri}`, field)
  if (/^mqtt/i.test(uri)) checkTopic(uri, field)
  return uri
}

/** The path of an MQTT endpoint is its topic, without the first slash. */
function checkTopic(uri: string, field: string): void {
  const topic = mqttTopicOf(uri)
  if (topic === undefined) throw badRequestData('must have a topic in valid percent-encoding', field)
  if (topic === '') throw badRequestData('must have a topic', field)
  if (/[+#\0]/.test(topic)) throw badRequestData('must not have a topic with a wildcard', field)
}

/** Topic of an mqtt or mqtts URI; undefined if its encoding is invalid. */
export function mqttTopicOf(uri: string): string | undefined {
  const path = /^[a-z]+:\/\/[^/?#]*\/?([^?]*)/i.exec(uri)?.[1] ?? ''
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

function headers(value: Json, field: string): readonly KeyValue[] {
  const found = pairs(value, field)
  for (const pair of found) {
    if (!isHeaderName(pair.key)) throw badRequestData('must be a header name', `${field}.key`)
    if (isConnectionHeader(pair.key))
      throw badRequestData(`${pair.key} is set by the gateway and cannot be given`, `${field}.key`)
    if (!isHeaderValue(pair.value)) throw badRequestData('must be a header value', `${field}.value`)
  }
  return found
}

const notifierValues: { readonly [key: string]: readonly string[] } = {
  'MQTT-Version': ['mqtt3.1.1', 'mqtt5.0'],
  'MQTT-QoS': ['0', '1', '2'],
}

/** Validates MQTT options; for an HTTP endpoint the pairs have no meaning and are stored unchecked. */
function notifier(value: Json, uri: string, field: string): readonly KeyValue[] {
  const found = pairs(value, field)
  if (!/^mqtt/i.test(uri)) return found
  for (const { key, value: chosen } of found) {
    const allowed = notifierValues[key]
    if (allowed === undefined) throw notSupported(`${field}: ${key} is not supported`)
    if (!allowed.includes(chosen)) throw badRequestData(`${key} must be one of ${allowed.join(', ')}`, field)
  }
  return found
}

function pairs(value: Json, field: string): readonly KeyValue[] {
  if (!Array.isArray(value)) throw badRequestData('must be an array of {key, value}', field)
  return value.map((pair: Json) => {
    if (!isObject(pair)) throw badRequestData('must be an array of {key, value}', field)
    const { key, value: chosen } = pair
    return { key: text(key, `${field}.key`), value: text(chosen, `${field}.value`) }
  })
}

// ---- Values

/** Canonical names without repetition. */
export function names(value: Json, field: string, context: Expander): readonly string[] {
  const found = listOf(value).map((name) => checkListedName(context.expand(text(name, field)), field))
  if (found.length === 0) throw badRequestData('must contain at least one attribute', field)
  return [...new Set(found)]
}

export function text(value: Json | undefined, field: string): string {
  if (typeof value !== 'string' || value === '') throw badRequestData('must be a non-empty text', field)
  return value
}

export function flag(value: Json, field: string): boolean {
  if (typeof value !== 'boolean') throw badRequestData('must be true or false', field)
  return value
}

export function positive(value: Json, field: string): number {
  if (typeof value !== 'number' || !(value > 0)) throw badRequestData('must be a number above 0', field)
  return value
}

export function oneOf<T extends string>(value: Json, allowed: readonly T[], field: string): T {
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw badRequestData(`must be one of ${allowed.join(', ')}`, field)
  return found
}
