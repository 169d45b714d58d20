/**
 * Subscriptions to registrations of context sources [NGSI-LD 5.11]: like other subscriptions, plus a source
 * filter, a temporal query and an interval. This file parses those three; subscription-parse.ts parses the
 * rest.
 */
import type { Json } from '#contract/pipeline.ts'
import { parseTemporalSelection } from '#ngsi-ld/history/temporal-query.ts'
import { printQuery, type QueryTree } from '#ngsi-ld/query/query.ts'
import {
  renderSubscription,
  type Subscription,
  type SubscriptionRenderOptions,
  streamUri,
} from '#ngsi-ld/subscription/subscription.ts'
import {
  type ParseSubscriptionOptions,
  parseSourceFilter,
  parseSubscription,
  patchSubscription,
  withRemovals,
} from '#ngsi-ld/subscription/subscription-parse.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { attributesOf, type Discovery, type Interest, type TimeInterest } from './registration-match.ts'

export interface SourceSubscription {
  readonly subscription: Subscription
  readonly csf?: QueryTree
  readonly temporalQ?: TimeInterest
  /** Seconds between two notifications of all matching registrations. */
  readonly timeInterval?: number
}

export type TriggerReason = 'newlyMatching' | 'updated' | 'noLongerMatching'

/** @throws GatewayError as parseSubscription does. */
export function parseSourceSubscription(
  json: unknown,
  options: ParseSubscriptionOptions,
): SourceSubscription {
  const { own, rest } = split(json)
  return { ...parseOwn(own, options), subscription: withEndpoint(parseSubscription(rest, options)) }
}

/**
 * The subscription after applying a fragment.
 * @throws GatewayError as patchSubscription does.
 */
export function patchSourceSubscription(
  before: SourceSubscription,
  json: unknown,
  options: Omit<ParseSubscriptionOptions, 'newId'>,
): SourceSubscription {
  const { own, rest } = split(withRemovals(json))
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => own[name] === undefined))
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ngsiLdNull))
  return {
    ...kept,
    ...parseOwn(given, options),
    subscription: withEndpoint(patchSubscription(before.subscription, rest, options)),
  }
}

/** Rejects GeoJSON and streams: these notifications contain registrations and must be sent to an endpoint. */
function withEndpoint(subscription: Subscription): Subscription {
  if (subscription.notification.endpoint.accept === 'application/geo+json')
    throw badRequestData(
      'cannot be GeoJSON, because registrations have no GeoJSON form',
      'notification.endpoint.accept',
    )
  if (subscription.notification.endpoint.uri === streamUri)
    throw badRequestData('cannot be a stream in a subscription to registrations', 'notification.endpoint.uri')
  return subscription
}

/** The registrations that match a subscription: attributes that it watches or would receive. */
export function discoveryOf({ subscription, csf, temporalQ }: SourceSubscription): Discovery {
  const { entities, watchedAttributes, q, geoQ, scopeQ, notification } = subscription
  const isAttribute = (name: string): boolean => !/^(?:id|type|scope)$/.test(name)
  const shown = [...(notification.attributes ?? []), ...(notification.pick ?? []).filter(isAttribute)]
  const named = [...(watchedAttributes ?? []), ...shown]
  const attrs = named.length > 0 ? named : q === undefined ? undefined : attributesOf(q)
  const omit = notification.omit?.filter(isAttribute)
  const interests: readonly Interest[] = (entities ?? [{}]).map((selector) => ({ ...selector, attrs, omit }))
  return { interests, geo: geoQ, scope: scopeQ, time: temporalQ, csf }
}

/** The subscription as a client reads it, without @context. */
export function renderSourceSubscription(
  one: SourceSubscription,
  options: SubscriptionRenderOptions,
): JsonObject {
  const { csf, temporalQ, timeInterval } = one
  // Only a change of a registration triggers a notification; triggers of entities do not apply.
  const { notificationTrigger: _, ...rendered } = renderSubscription(one.subscription, options)
  return {
    ...rendered,
    ...(csf === undefined ? {} : { csf: printQuery(csf, (name) => options.context.compact(name)) }),
    ...(temporalQ === undefined ? {} : { temporalQ: renderTime(temporalQ) }),
    ...(timeInterval === undefined ? {} : { timeInterval }),
  }
}

function renderTime({ timerel, timeAtMs, endTimeAtMs, timeproperty }: TimeInterest): JsonObject {
  return {
    timerel,
    timeAt: msToDateTime(timeAtMs),
    ...(endTimeAtMs === undefined ? {} : { endTimeAt: msToDateTime(endTimeAtMs) }),
    timeproperty,
  }
}

const ownMembers = ['csf', 'temporalQ', 'timeInterval'] as const

/** Members that concern entities and their values, and do not apply here. */
const inapplicable = ['datasetId', 'expandValues', 'jsonKeys', 'splitEntities', 'localOnly']
const inapplicableInNotification = ['showChanges', 'join', 'joinLevel']

function rejectInapplicable(json: JsonObject, names: readonly string[], prefix: string): void {
  const found = names.find((name) => json[name] !== undefined && json[name] !== ngsiLdNull)
  if (found !== undefined)
    throw notSupported(`${prefix}${found} does not apply to a subscription to context sources`)
}

function split(json: unknown): { own: JsonObject; rest: unknown } {
  if (!isObject(json)) return { own: {}, rest: json }
  const isOwn = (name: string): boolean => (ownMembers as readonly string[]).includes(name)
  rejectInapplicable(json, inapplicable, '')
  const { notification } = json
  if (isObject(notification)) rejectInapplicable(notification, inapplicableInNotification, 'notification.')
  const entries = Object.entries(json)
  const own = Object.fromEntries(entries.filter(([name]) => isOwn(name)))
  if (own['timeInterval'] !== undefined && own['timeInterval'] !== ngsiLdNull) {
    for (const other of ['watchedAttributes', 'throttling']) {
      if (json[other] !== undefined) throw badRequestData(`cannot be combined with ${other}`, 'timeInterval')
    }
  }
  return { own, rest: Object.fromEntries(entries.filter(([name]) => !isOwn(name))) }
}

function parseOwn(
  { csf, temporalQ, timeInterval }: JsonObject,
  { context }: Pick<ParseSubscriptionOptions, 'context'>,
): Omit<SourceSubscription, 'subscription'> {
  if (timeInterval !== undefined && !(typeof timeInterval === 'number' && timeInterval > 0))
    throw badRequestData('must be a number above 0', 'timeInterval')
  if (temporalQ !== undefined && !isObject(temporalQ)) throw badRequestData('must be an object', 'temporalQ')
  return {
    ...(csf === undefined ? {} : { csf: parseSourceFilter(csf, context) }),
    ...(temporalQ === undefined ? {} : { temporalQ: parseTime(temporalQ) }),
    ...(timeInterval === undefined ? {} : { timeInterval }),
  }
}

/**
 * A temporal query.
 * @throws GatewayError ngsi-ld.bad-request-data
 */
export function parseTime(given: { readonly [name: string]: Json | undefined }): TimeInterest {
  const text = (name: string): string | undefined => {
    const value = given[name]
    if (value !== undefined && typeof value !== 'string') throw badRequestData('must be a text', name)
    return value
  }
  const selection = parseTemporalSelection({
    timerel: text('timerel'),
    timeAt: text('timeAt'),
    endTimeAt: text('endTimeAt'),
    timeproperty: text('timeproperty'),
  })
  const { timerel, timeAtMs, endTimeAtMs, timeproperty } = selection
  if (timerel === undefined || timeAtMs === undefined) throw badRequestData('is required', 'timerel')
  return { timerel, timeAtMs, timeproperty, ...(endTimeAtMs === undefined ? {} : { endTimeAtMs }) }
}
