/**
 * Requests to subscriptions [NGSI-LD 5.8.1, 5.8.2]. Every member is either understood, read-only (ignored, as the
 * standard says), in the standard but not built (422), or unknown (400): none is dropped in silence. A fragment
 * replaces whole members, null removes them.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from './context.ts'
import { dateTimeToMs } from './datetime.ts'
import { parseGeoQuery } from './geo.ts'
import { isObject, type JsonObject, listOf, own } from './json.ts'
import { checkName, checkUri } from './name.ts'
import { badRequestData, notSupported } from './problem.ts'
import { compileQuery } from './query-match.ts'
import { parseQuery } from './query-parse.ts'
import { parseEntitySelector } from './selection.ts'
import {
  defaultTriggers,
  type KeyValue,
  type NotificationEndpoint,
  type NotificationParameters,
  notificationFormats,
  notificationMediaTypes,
  notificationTriggers,
  type Subscription,
} from './subscription.ts'

export interface ParseSubscriptionOptions {
  /** The context of the request. */
  readonly context: Pick<Context, 'expand' | 'reference'>
  readonly nowMs: number
  /** A URI for a subscription that brings none. */
  readonly newId: () => string
}

/**
 * A subscription from the body of a create request.
 * @throws GatewayError ngsi-ld.bad-request-data or ngsi-ld.not-supported, naming the member.
 */
export function parseSubscription(json: unknown, options: ParseSubscriptionOptions): Subscription {
  const body = subscriptionBody(json)
  checkMembers(body, subscriptionMembers, '')
  const id = body['id'] === undefined ? options.newId() : checkUri(body['id'], 'id')
  return build(id, parseParts(body, options), options.context.reference)
}

/**
 * The subscription after a fragment.
 * @throws GatewayError as parseSubscription does.
 */
export function patchSubscription(
  before: Subscription,
  json: unknown,
  options: Omit<ParseSubscriptionOptions, 'newId'>,
): Subscription {
  const fragment = subscriptionBody(json, true)
  if (fragment['id'] !== undefined && fragment['id'] !== before.id)
    throw badRequestData('cannot be changed', 'id')
  const removed = Object.keys(fragment).filter((name) => fragment[name] === null)
  const given = Object.fromEntries(Object.entries(fragment).filter(([, value]) => value !== null))
  checkMembers(fragment, subscriptionMembers, '')
  const { id, context, ...kept } = before
  const parts: Partial<SubscriptionParts> = { ...kept, ...parseParts(given, options) }
  for (const name of removed) delete parts[partOf(name)]
  return build(id, parts, context)
}

/** A subscription without what its maker gives it. */
type SubscriptionParts = {
  -readonly [part in Exclude<keyof Subscription, 'id' | 'context'>]: Subscription[part]
}

function build(id: string, parts: Partial<SubscriptionParts>, context: readonly Json[]): Subscription {
  const { notification, notificationTrigger = defaultTriggers, ...rest } = parts
  if (notification === undefined) throw badRequestData('is needed', 'notification')
  if (rest.entities === undefined && rest.watchedAttributes === undefined && rest.localOnly !== true) {
    throw badRequestData('entities or watchedAttributes is needed', 'entities')
  }
  return { id, ...rest, notificationTrigger, notification, context }
}

function subscriptionBody(json: unknown, isFragment = false): JsonObject {
  if (!isObject(json)) throw badRequestData('a subscription must be a JSON object')
  const { '@id': id, '@type': type, ...body } = json
  const named = { ...(id === undefined ? {} : { id }), ...(type === undefined ? {} : { type }), ...body }
  if (
    isFragment ? ![undefined, 'Subscription'].includes(named.type as string) : named.type !== 'Subscription'
  ) {
    throw badRequestData('must be Subscription', 'type')
  }
  return named
}

/** How a member becomes parts; read-only ones become nothing. */
type MemberRule = 'ignored' | 'unbuilt' | ((value: Json, options: PartOptions) => Partial<SubscriptionParts>)
type PartOptions = Omit<ParseSubscriptionOptions, 'newId'>

const subscriptionMembers: { readonly [name: string]: MemberRule } = {
  id: 'ignored',
  type: 'ignored',
  '@context': 'ignored',
  status: 'ignored',
  createdAt: 'ignored',
  modifiedAt: 'ignored',
  deletedAt: 'ignored',
  subscriptionName: (value) => ({ name: text(value, 'subscriptionName') }),
  name: (value) => ({ name: text(value, 'name') }),
  description: (value) => ({ description: text(value, 'description') }),
  entities: parseEntities,
  watchedAttributes: (value, { context }) => ({
    watchedAttributes: names(value, 'watchedAttributes', context),
  }),
  notificationTrigger: parseTriggers,
  timeInterval: 'unbuilt',
  throttling: (value) => ({ throttling: positive(value, 'throttling') }),
  q: parseFilter,
  geoQ: (value, { context }) => parseGeo(value, context),
  scopeQ: 'unbuilt',
  csf: 'unbuilt',
  lang: 'unbuilt',
  datasetId: 'unbuilt',
  temporalQ: 'unbuilt',
  jsonldContext: 'unbuilt',
  expandValues: 'unbuilt',
  jsonKeys: 'unbuilt',
  splitEntities: 'unbuilt',
  ngsildConformance: 'unbuilt',
  localOnly: (value) => ({ localOnly: flag(value, 'localOnly') }),
  isActive: (value) => ({ isActive: flag(value, 'isActive') }),
  expiresAt: (value, { nowMs }) => ({ expiresAt: future(value, 'expiresAt', nowMs) }),
  expires: (value, { nowMs }) => ({ expiresAt: future(value, 'expires', nowMs) }),
  notification: (value, { context }) => ({ notification: parseNotification(value, context) }),
}

const notificationMembers: { readonly [name: string]: 'ignored' | 'unbuilt' | 'read' } = {
  status: 'ignored',
  timesSent: 'ignored',
  timesFailed: 'ignored',
  lastNotification: 'ignored',
  lastSuccess: 'ignored',
  lastFailure: 'ignored',
  attributes: 'read',
  format: 'read',
  sysAttrs: 'read',
  showChanges: 'read',
  endpoint: 'read',
  pick: 'unbuilt',
  omit: 'unbuilt',
  join: 'unbuilt',
  joinLevel: 'unbuilt',
}

const endpointMembers = new Set(['uri', 'accept', 'timeout', 'cooldown', 'receiverInfo', 'notifierInfo'])

/** Other spellings of a member, for null in a fragment. */
function partOf(member: string): keyof SubscriptionParts {
  if (member === 'subscriptionName') return 'name'
  return (member === 'expires' ? 'expiresAt' : member) as keyof SubscriptionParts
}

function parseParts(body: JsonObject, options: PartOptions): Partial<SubscriptionParts> {
  checkInterval(body)
  const parts: Partial<SubscriptionParts> = {}
  for (const [name, value] of Object.entries(body)) {
    const rule = subscriptionMembers[name]
    if (typeof rule === 'function') Object.assign(parts, rule(value, options))
  }
  return parts
}

/** A wrong combination is a mistake whatever is built. */
function checkInterval(body: JsonObject): void {
  const interval = body['timeInterval']
  if (interval === undefined) return
  positive(interval, 'timeInterval')
  for (const other of ['watchedAttributes', 'throttling']) {
    if (body[other] !== undefined) throw badRequestData(`cannot stand beside ${other}`, 'timeInterval')
  }
  throw notSupported('timeInterval: periodic subscriptions are not built yet')
}

function checkMembers(body: JsonObject, known: { readonly [name: string]: unknown }, prefix: string): void {
  for (const [name, value] of Object.entries(body)) {
    const rule = own(known, name)
    if (rule === undefined) throw badRequestData('is not a member of a subscription', prefix + name)
    if (rule === 'unbuilt' && value !== null && name !== 'timeInterval') {
      throw notSupported(`${prefix}${name} is not built yet`)
    }
  }
}

function parseEntities(value: Json, { context }: PartOptions): Partial<SubscriptionParts> {
  const entities = listOf(value).map((selector, index) =>
    parseEntitySelector(selector, context.expand, `entities[${index}]`),
  )
  if (entities.length === 0) throw badRequestData('names no entities', 'entities')
  return { entities }
}

function parseTriggers(value: Json): Partial<SubscriptionParts> {
  const triggers = listOf(value).map((trigger) => oneOf(trigger, notificationTriggers, 'notificationTrigger'))
  if (triggers.length === 0) throw badRequestData('names no trigger', 'notificationTrigger')
  return { notificationTrigger: [...new Set(triggers)] }
}

function parseFilter(value: Json, { context }: PartOptions): Partial<SubscriptionParts> {
  const q = parseQuery(text(value, 'q'), context.expand)
  compileQuery(q)
  return { q }
}

function parseGeo(value: Json, context: Pick<Context, 'expand'>): Partial<SubscriptionParts> {
  if (!isObject(value)) throw badRequestData('must be an object', 'geoQ')
  const geoQ = parseGeoQuery(value, context.expand)
  if (geoQ === undefined) throw badRequestData('needs georel, geometry and coordinates', 'geoQ')
  return { geoQ }
}

function parseNotification(value: Json, context: Pick<Context, 'expand'>): NotificationParameters {
  if (!isObject(value)) throw badRequestData('must be an object', 'notification')
  checkMembers(value, notificationMembers, 'notification.')
  const { attributes, format, sysAttrs, showChanges, endpoint } = value
  if (showChanges !== undefined && flag(showChanges, 'notification.showChanges')) {
    throw notSupported('notification.showChanges is not built yet')
  }
  return {
    ...(attributes === undefined
      ? {}
      : { attributes: names(attributes, 'notification.attributes', context) }),
    ...(format === undefined ? {} : { format: oneOf(format, notificationFormats, 'notification.format') }),
    ...(sysAttrs === undefined ? {} : { sysAttrs: flag(sysAttrs, 'notification.sysAttrs') }),
    ...(showChanges === undefined ? {} : { showChanges: false }),
    endpoint: parseEndpoint(endpoint),
  }
}

function parseEndpoint(value: Json | undefined): NotificationEndpoint {
  const field = 'notification.endpoint'
  if (!isObject(value)) throw badRequestData('must be an object with a uri', field)
  const unknown = Object.keys(value).find((name) => !endpointMembers.has(name))
  if (unknown !== undefined) throw badRequestData('is not a member of an endpoint', `${field}.${unknown}`)
  const { uri, accept, timeout, cooldown, receiverInfo, notifierInfo } = value
  if (accept === 'application/geo+json') throw notSupported(`${field}.accept: GeoJSON is not built yet`)
  return {
    uri: endpointUri(uri, `${field}.uri`),
    ...(accept === undefined ? {} : { accept: oneOf(accept, notificationMediaTypes, `${field}.accept`) }),
    ...(timeout === undefined ? {} : { timeout: positive(timeout, `${field}.timeout`) }),
    ...(cooldown === undefined ? {} : { cooldown: positive(cooldown, `${field}.cooldown`) }),
    ...(receiverInfo === undefined ? {} : { receiverInfo: headers(receiverInfo, `${field}.receiverInfo`) }),
    ...(notifierInfo === undefined ? {} : { notifierInfo: pairs(notifierInfo, `${field}.notifierInfo`) }),
  }
}

// ---- Values

function endpointUri(value: Json | undefined, field: string): string {
  const uri = checkUri(value, field)
  if (/^mqtts?:/i.test(uri)) throw notSupported(`${field}: notifications over MQTT are not built yet`)
  if (!/^https?:\/\//i.test(uri) || !URL.canParse(uri))
    throw badRequestData('must be an http or https URL', field)
  return uri
}

/** Headers that belong to the connection or to the body, not to the subscriber. */
const ownHeaders =
  /^(?:host|connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect)$/i

function headers(value: Json, field: string): readonly KeyValue[] {
  const found = pairs(value, field)
  for (const pair of found) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(pair.key))
      throw badRequestData('is not a header name', `${field}.key`)
    if (ownHeaders.test(pair.key)) throw badRequestData(`${pair.key} cannot be set`, `${field}.key`)
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(pair.value))
      throw badRequestData('is not a header value', `${field}.value`)
  }
  return found
}

function pairs(value: Json, field: string): readonly KeyValue[] {
  if (!Array.isArray(value)) throw badRequestData('must be an array of {key, value}', field)
  return value.map((pair: Json) => {
    if (!isObject(pair)) throw badRequestData('must be an array of {key, value}', field)
    return { key: text(pair['key'], `${field}.key`), value: text(pair['value'], `${field}.value`) }
  })
}

function names(value: Json, field: string, context: Pick<Context, 'expand'>): readonly string[] {
  const found = listOf(value).map((name) => checkName(context.expand(text(name, field)), field))
  if (found.length === 0) throw badRequestData('names no attribute', field)
  return [...new Set(found)]
}

function text(value: Json | undefined, field: string): string {
  if (typeof value !== 'string' || value === '')
    throw badRequestData('must be a text that is not empty', field)
  return value
}

function flag(value: Json, field: string): boolean {
  if (typeof value !== 'boolean') throw badRequestData('must be true or false', field)
  return value
}

function positive(value: Json, field: string): number {
  if (typeof value !== 'number' || !(value > 0)) throw badRequestData('must be a number above 0', field)
  return value
}

function future(value: Json, field: string, nowMs: number): number {
  const ms = typeof value === 'string' ? dateTimeToMs(value) : undefined
  if (ms === undefined) throw badRequestData('must be a DateTime such as 2030-12-31T23:59:59Z', field)
  if (ms <= nowMs) throw badRequestData('lies in the past', field)
  return ms
}

function oneOf<T extends string>(value: Json, allowed: readonly T[], field: string): T {
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw badRequestData(`must be one of ${allowed.join(', ')}`, field)
  return found
}
