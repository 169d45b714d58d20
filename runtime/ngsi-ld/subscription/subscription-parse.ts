/**
 * Parses requests to subscriptions [NGSI-LD 5.8.1, 5.8.2]. Each member is parsed, read-only (ignored, as the
 * standard requires), or rejected (400); none is silently dropped. A fragment replaces whole members, NGSI-LD
 * Null removes them. notification-parse.ts parses the member `notification`.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { languageRanges } from '#ngsi-ld/entity/language.ts'
import { parseEntitySelector } from '#ngsi-ld/query/entity-selector.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import type { QueryTree } from '#ngsi-ld/query/query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { minorOf } from '#ngsi-ld/representation/conformance.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkUri, keyword, ngsiLdNull, refuseJsonNulls } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { flag, names, oneOf, parseNotification, positive, text } from './notification-parse.ts'
import {
  defaultTriggers,
  notificationTriggers,
  type Subscription,
  statusOf,
  withEndpointSecrets,
} from './subscription.ts'

export interface ParseSubscriptionOptions {
  /** The context of the request. */
  readonly context: Pick<Context, 'expand' | 'reference'>
  readonly nowMs: number
  /** Creates a URI for a subscription without an id. */
  readonly newId: () => string
}

/**
 * A subscription from the body of a create request.
 * @throws GatewayError ngsi-ld.bad-request-data or ngsi-ld.not-supported, naming the member.
 */
export function parseSubscription(json: unknown, options: ParseSubscriptionOptions): Subscription {
  const body = subscriptionBody(json)
  const removed = Object.keys(body).find((name) => body[name] === ngsiLdNull)
  if (removed !== undefined) throw badRequestData(`${ngsiLdNull} is not allowed here`, removed)
  checkMembers(body)
  const id = body['id'] === undefined ? options.newId() : checkUri(body['id'], 'id')
  return build(id, withSecrets(parseParts(body, options)), options.context.reference)
}

/**
 * The subscription after applying a fragment.
 * @throws GatewayError as parseSubscription does.
 */
export function patchSubscription(
  before: Subscription,
  json: unknown,
  options: Omit<ParseSubscriptionOptions, 'newId'>,
): Subscription {
  const fragment = subscriptionBody(withRemovals(json), true)
  if (fragment['id'] !== undefined && fragment['id'] !== before.id)
    throw badRequestData('cannot be changed', 'id')
  if (fragment['expandValues'] !== undefined && fragment['q'] === undefined && before.q !== undefined)
    throw badRequestData('changes the meaning of q; send q in the same request', 'expandValues')
  const removed = Object.keys(fragment).filter((name) => fragment[name] === ngsiLdNull)
  const given = Object.fromEntries(Object.entries(fragment).filter(([, value]) => value !== ngsiLdNull))
  checkMembers(fragment)
  const { id, context, ...kept } = before
  const parts: Partial<SubscriptionParts> = {
    ...kept,
    ...withSecrets(parseParts(given, { ...options, expandValues: kept.expandValues }), before),
  }
  const hasExpired = statusOf(before, options.nowMs) === 'expired'
  for (const name of removed) delete parts[partOf(name)]
  // A new expiry alone reactivates an expired subscription, even if it had been paused (5.8.2).
  if (given['expiresAt'] !== undefined && given['isActive'] === undefined && hasExpired) delete parts.isActive
  return build(id, parts, context)
}

/**
 * Applies NGSI-LD Null in a fragment, which removes members (5.5.8). The notification is replaced as a whole,
 * so NGSI-LD Null within it only omits members.
 * @throws ngsi-ld.bad-request-data for JSON null
 */
export function withRemovals(json: unknown): unknown {
  if (!isObject(json)) return json
  refuseJsonNulls(json)
  const { notification } = json
  if (!isObject(notification)) return json
  const kept = withoutNulls(notification, 'notification.')
  const { endpoint } = kept
  if (!isObject(endpoint)) return { ...json, notification: kept }
  const left = withoutNulls(endpoint, 'notification.endpoint.')
  return { ...json, notification: { ...kept, endpoint: left } }
}

function withoutNulls(members: JsonObject, prefix: string): JsonObject {
  refuseJsonNulls(members, prefix)
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ngsiLdNull))
}

/** A subscription without the members assigned at its creation. */
type SubscriptionParts = {
  -readonly [part in Exclude<keyof Subscription, 'id' | 'context'>]: Subscription[part]
}

/** Replaces placeholders in the parts of a request with the stored secrets. */
function withSecrets(parts: Partial<SubscriptionParts>, before?: Subscription): Partial<SubscriptionParts> {
  const { notification } = parts
  if (notification === undefined) return parts
  const endpoint = withEndpointSecrets(notification.endpoint, before?.notification.endpoint)
  return { ...parts, notification: { ...notification, endpoint } }
}

function build(id: string, parts: Partial<SubscriptionParts>, context: readonly Json[]): Subscription {
  const { notification, notificationTrigger = defaultTriggers, ...rest } = parts
  if (notification === undefined) throw badRequestData('is required', 'notification')
  if (rest.entities === undefined && rest.watchedAttributes === undefined && rest.localOnly !== true) {
    throw badRequestData('entities or watchedAttributes is required', 'entities')
  }
  if (rest.timeInterval !== undefined) {
    for (const other of ['watchedAttributes', 'throttling'] as const) {
      if (rest[other] !== undefined) throw badRequestData(`cannot be combined with ${other}`, 'timeInterval')
    }
  }
  return { id, ...rest, notificationTrigger, notification, context }
}

function subscriptionBody(json: unknown, isFragment = false): JsonObject {
  if (!isObject(json)) throw badRequestData('a subscription must be a JSON object')
  const [id, type] = [keyword(json, 'id'), keyword(json, 'type')]
  const { '@id': _, '@type': __, ...body } = json
  const named = { ...(id === undefined ? {} : { id }), ...(type === undefined ? {} : { type }), ...body }
  if (
    isFragment ? ![undefined, 'Subscription'].includes(named.type as string) : named.type !== 'Subscription'
  ) {
    throw badRequestData('must be Subscription', 'type')
  }
  return named
}

/** Maps a member to parts; read-only members have no parts. */
type MemberRule = 'ignored' | 'foreign' | ((value: Json, options: PartOptions) => Partial<SubscriptionParts>)
type PartOptions = Omit<ParseSubscriptionOptions, 'newId'> & {
  /** Attributes whose values in q are names. */
  readonly expandValues?: readonly string[] | undefined
}

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
  timeInterval: (value) => ({ timeInterval: positive(value, 'timeInterval') }),
  throttling: (value) => ({ throttling: positive(value, 'throttling') }),
  q: parseFilter,
  geoQ: (value, { context }) => parseGeo(value, context),
  scopeQ: (value) => ({ scopeQ: parseScopeQuery(text(value, 'scopeQ')) }),
  csf: (value, { context }) => ({ csf: parseSourceFilter(value, context) }),
  lang: parseLanguages,
  datasetId: parseDatasets,
  temporalQ: 'foreign',
  jsonldContext: parseContextUrl,
  expandValues: (value, { context }) => ({ expandValues: names(value, 'expandValues', context) }),
  jsonKeys: (value, { context }) => ({ jsonKeys: names(value, 'jsonKeys', context) }),
  splitEntities: (value) => ({ splitEntities: flag(value, 'splitEntities') }),
  ngsildConformance: parseConformance,
  localOnly: (value) => ({ localOnly: flag(value, 'localOnly') }),
  isActive: (value) => ({ isActive: flag(value, 'isActive') }),
  expiresAt: (value, { nowMs }) => ({ expiresAt: future(value, 'expiresAt', nowMs) }),
  expires: (value, { nowMs }) => ({ expiresAt: future(value, 'expires', nowMs) }),
  notification: (value, { context }) => ({ notification: parseNotification(value, context) }),
}

/** Maps alternative spellings of a member, for null in a fragment. */
function partOf(member: string): keyof SubscriptionParts {
  if (member === 'subscriptionName') return 'name'
  return (member === 'expires' ? 'expiresAt' : member) as keyof SubscriptionParts
}

function parseParts(body: JsonObject, given: PartOptions): Partial<SubscriptionParts> {
  const { expandValues } = body
  const options =
    expandValues === undefined
      ? given
      : { ...given, expandValues: names(expandValues, 'expandValues', given.context) }
  const parts: Partial<SubscriptionParts> = {}
  for (const [name, value] of Object.entries(body)) {
    const rule = subscriptionMembers[name]
    if (typeof rule === 'function') Object.assign(parts, rule(value, options))
  }
  return parts
}

function checkMembers(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    const rule = own(subscriptionMembers, name)
    if (rule === undefined) throw badRequestData('is not a member of a subscription', name)
    if (rule === 'foreign' && value !== ngsiLdNull)
      throw badRequestData('is allowed only in subscriptions to registrations', name)
  }
}

function parseEntities(value: Json, { context }: PartOptions): Partial<SubscriptionParts> {
  const entities = listOf(value).map((selector, index) =>
    parseEntitySelector(selector, context.expand, `entities[${index}]`),
  )
  if (entities.length === 0) throw badRequestData('must contain at least one entity selector', 'entities')
  return { entities }
}

function parseTriggers(value: Json): Partial<SubscriptionParts> {
  const triggers = listOf(value).map((trigger) => oneOf(trigger, notificationTriggers, 'notificationTrigger'))
  if (triggers.length === 0) throw badRequestData('must contain at least one trigger', 'notificationTrigger')
  return { notificationTrigger: [...new Set(triggers)] }
}

function parseFilter(value: Json, { context, expandValues }: PartOptions): Partial<SubscriptionParts> {
  const q = parseQuery(text(value, 'q'), context.expand, { expandValues: new Set(expandValues) })
  compileQuery(q, () => undefined)
  return { q }
}

/** Not a name of the platform, so that no short name resolves within it. */
const ofRegistrations = 'ContextSourceRegistration'

/**
 * Parses a filter of context sources.
 * @throws GatewayError ngsi-ld.bad-request-data
 */
export function parseSourceFilter(value: Json, { expand }: Pick<Context, 'expand'>): QueryTree {
  if (typeof value !== 'string' || value === '' || value === ngsiLdNull)
    throw badRequestData('must be a query over members of registrations', 'csf')
  // Short names of the platform apply only to attributes of entities.
  const tree = parseQuery(value, (term) => expand(term, ofRegistrations), { field: 'csf' })
  compileQuery(tree)
  return tree
}

function parseLanguages(value: Json): Partial<SubscriptionParts> {
  const lang = text(value, 'lang')
  if (languageRanges(lang).length === 0) throw badRequestData('must contain at least one language', 'lang')
  return { lang }
}

function parseDatasets(value: Json): Partial<SubscriptionParts> {
  const datasetId = listOf(value).map((each) => (each === '@none' ? each : checkUri(each, 'datasetId')))
  if (datasetId.length === 0) throw badRequestData('must contain at least one dataset', 'datasetId')
  return { datasetId }
}

function parseConformance(value: Json): Partial<SubscriptionParts> {
  const ngsildConformance = text(value, 'ngsildConformance')
  if (minorOf(ngsildConformance) === undefined)
    throw badRequestData('must be a version such as 1.6', 'ngsildConformance')
  return { ngsildConformance }
}

function parseContextUrl(value: Json): Partial<SubscriptionParts> {
  const url = text(value, 'jsonldContext')
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw badRequestData('must be an http or https URL', 'jsonldContext')
  return { jsonldContext: url }
}

function parseGeo(value: Json, context: Pick<Context, 'expand'>): Partial<SubscriptionParts> {
  if (!isObject(value)) throw badRequestData('must be an object', 'geoQ')
  const geoQ = parseGeoQuery(value, context.expand)
  if (geoQ === undefined) throw badRequestData('requires georel, geometry and coordinates', 'geoQ')
  return { geoQ }
}

// ---- Values

function future(value: Json, field: string, nowMs: number): number {
  const ms = typeof value === 'string' ? dateTimeToMs(value) : undefined
  if (ms === undefined) throw badRequestData('must be a DateTime such as 2030-12-31T23:59:59Z', field)
  if (ms <= nowMs) throw badRequestData('must be in the future', field)
  return ms
}
