/**
 * A subscription as the gateway stores it [NGSI-LD 5.2.12]: plain JSON with core-compacted names. This file
 * derives its status over time, its representation for clients, and the body of its notifications. Defaults
 * are not filled in, so a client reads what it wrote. `subscription-parse.ts` parses requests.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { type EntitySelector, renderEntitySelector } from '#ngsi-ld/query/entity-selector.ts'
import { type GeoQuery, renderGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { printQuery, type QueryTree } from '#ngsi-ld/query/query.ts'
import { printScopeQuery, type ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { renderMembers } from '#ngsi-ld/representation/projection.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, present } from '#ngsi-ld/values/json.ts'
import { type KeyValue, shownAddress, shownPairs, withStoredSecrets } from '#ngsi-ld/values/secrets.ts'

export const notificationTriggers = [
  'entityCreated',
  'entityUpdated',
  'entityDeleted',
  'attributeCreated',
  'attributeUpdated',
  'attributeDeleted',
] as const

export type NotificationTrigger = (typeof notificationTriggers)[number]

export const defaultTriggers: readonly NotificationTrigger[] = ['attributeCreated', 'attributeUpdated']

export const notificationFormats = ['normalized', 'keyValues', 'simplified', 'concise'] as const
export type NotificationFormat = (typeof notificationFormats)[number]

export const notificationMediaTypes = [
  'application/json',
  'application/ld+json',
  'application/geo+json',
] as const
export type NotificationMediaType = (typeof notificationMediaTypes)[number]

/** The endpoint of a subscription whose consumers fetch its notifications as a stream. */
export const streamUri = 'urn:selvedge:stream'

/** Absent members mean the default of the standard. */
export interface Subscription {
  readonly id: string
  readonly name?: string
  readonly description?: string
  /** At least one of them must match; absent means every entity. */
  readonly entities?: readonly EntitySelector[]
  /** Absent means every attribute. */
  readonly watchedAttributes?: readonly string[]
  readonly notificationTrigger: readonly NotificationTrigger[]
  /** Seconds between two notifications of all entities that match at that time; changes trigger none. */
  readonly timeInterval?: number
  /** Minimum seconds between two notifications. */
  readonly throttling?: number
  readonly q?: QueryTree
  readonly geoQ?: GeoQuery
  readonly scopeQ?: ScopeQuery
  /** Filter of context source registrations, if sources are queried. */
  readonly csf?: QueryTree
  /** Attributes whose values in `q` are names too; `q` is parsed accordingly. */
  readonly expandValues?: readonly string[]
  /**
   * Attributes whose JSON has keys that are not names; stored only, because the gateway never expands such
   * keys.
   */
  readonly jsonKeys?: readonly string[]
  /** Language ranges as in Accept-Language, for notifications. */
  readonly lang?: string
  /** Instances to send; `@none` for those without a dataset. */
  readonly datasetId?: readonly string[]
  /** Address of the @context of notifications, replacing the one of the create request. */
  readonly jsonldContext?: string
  readonly localOnly?: boolean
  /** Parts of one entity may be stored at several sources. */
  readonly splitEntities?: boolean
  /** The version of the standard that notifications conform to (since 1.9). */
  readonly ngsildConformance?: string
  readonly isActive?: boolean
  /** Milliseconds UTC. */
  readonly expiresAt?: number
  readonly notification: NotificationParameters
  /** The @context of the create request, for notifications. */
  readonly context: readonly Json[]
  /** Properties of the create request, needed to forward the subscription; never shown to clients. */
  readonly asked?: {
    /** Scheme and authority at which clients reach this gateway. */
    readonly origin: string
    /** The Via header of the request. */
    readonly via?: string
    /** Address of the central broker, if the request came through its tunnel. */
    readonly tunnel?: string
  }
}

export interface NotificationParameters {
  readonly attributes?: readonly string[]
  /** Members to send, and to omit: id, type, scope or attributes. */
  readonly pick?: readonly string[]
  readonly omit?: readonly string[]
  readonly format?: NotificationFormat
  readonly sysAttrs?: boolean
  /** Include the values before the change. */
  readonly showChanges?: boolean
  readonly join?: 'flat' | 'inline' | '@none'
  readonly joinLevel?: number
  readonly endpoint: NotificationEndpoint
}

export interface NotificationEndpoint {
  readonly uri: string
  readonly accept?: NotificationMediaType
  /** Milliseconds. */
  readonly timeout?: number
  readonly cooldown?: number
  readonly receiverInfo?: readonly KeyValue[]
  readonly notifierInfo?: readonly KeyValue[]
}

type Notifying = Pick<Subscription, 'notification'>

/** Whether its endpoint is another broker to synchronize, rather than a receiver of notifications. */
export const isUplink = (subscription: Notifying): boolean => hasMode(subscription, 'uplink')

/**
 * Whether it describes what a component of this gateway watches. The component follows the log; it receives
 * no notifications.
 */
export const isFollower = (subscription: Notifying): boolean => hasMode(subscription, 'follower')

/**
 * The component of this gateway that receives its notifications; they are passed to it in the same process,
 * whatever the address.
 */
export function componentOf({ notifierInfo = [] }: NotificationEndpoint): string | undefined {
  if (!notifierInfo.some(({ key, value }) => key === 'selvedge:mode' && value === 'component'))
    return undefined
  return notifierInfo.find(({ key }) => key === 'selvedge:component')?.value
}

const hasMode = ({ notification: { endpoint } }: Notifying, mode: string): boolean =>
  endpoint.notifierInfo?.some(({ key, value }) => key === 'selvedge:mode' && value === mode) === true

/** Results of its notifications; times are milliseconds UTC. */
export interface NotificationStatistics {
  readonly timesSent: number
  readonly timesFailed: number
  readonly lastNotification?: number | undefined
  readonly lastSuccess?: number | undefined
  readonly lastFailure?: number | undefined
  readonly createdAt?: number | undefined
  readonly modifiedAt?: number | undefined
}

export type SubscriptionStatus = 'active' | 'paused' | 'expired'

/** Status at a time (ms UTC). An expired subscription becomes active again only with a new expiresAt. */
export function statusOf(subscription: Subscription, nowMs: number): SubscriptionStatus {
  if (subscription.expiresAt !== undefined && subscription.expiresAt <= nowMs) return 'expired'
  return subscription.isActive === false ? 'paused' : 'active'
}

/** Whether it may notify at a time (ms UTC). */
export function isActive(subscription: Subscription, nowMs: number): boolean {
  return statusOf(subscription, nowMs) === 'active'
}

/** The body of a notification with `data` (rendered entities) [NGSI-LD 5.3.1]. */
export function notificationOf(
  subscription: Subscription,
  { id, notifiedAtMs, data }: { id: string; notifiedAtMs: number; data: string },
): string {
  const notification = {
    id,
    type: 'Notification',
    subscriptionId: subscription.id,
    notifiedAt: msToDateTime(notifiedAtMs),
  }
  return `${JSON.stringify(notification).slice(0, -1)},"data":${data}}`
}

export interface SubscriptionRenderOptions {
  /** The client's context, which determines the names in the result. */
  readonly context: Pick<Context, 'compact'>
  readonly nowMs: number
  readonly statistics?: NotificationStatistics | undefined
  /** Include createdAt and modifiedAt. */
  readonly sysAttrs?: boolean | undefined
}

/** The subscription as a client reads it, without @context. */
export function renderSubscription(
  subscription: Subscription,
  options: SubscriptionRenderOptions,
): JsonObject {
  const { context, nowMs, statistics, sysAttrs } = options
  const show = (name: string): string => context.compact(name)
  const { entities, watchedAttributes, q, geoQ, csf, expiresAt } = subscription
  return present({
    id: subscription.id,
    type: 'Subscription',
    subscriptionName: subscription.name,
    description: subscription.description,
    entities: entities?.map((selector) => renderEntitySelector(selector, show)),
    watchedAttributes: watchedAttributes?.map(show),
    notificationTrigger: subscription.notificationTrigger,
    timeInterval: subscription.timeInterval,
    throttling: subscription.throttling,
    q: q === undefined ? undefined : printQuery(q, show),
    geoQ: geoQ === undefined ? undefined : renderGeoQuery(geoQ, show),
    scopeQ: subscription.scopeQ === undefined ? undefined : printScopeQuery(subscription.scopeQ),
    csf: csf === undefined ? undefined : printQuery(csf, show),
    expandValues: subscription.expandValues?.map(show),
    jsonKeys: subscription.jsonKeys?.map(show),
    lang: subscription.lang,
    datasetId: subscription.datasetId,
    jsonldContext: subscription.jsonldContext,
    localOnly: subscription.localOnly,
    splitEntities: subscription.splitEntities,
    ngsildConformance: subscription.ngsildConformance,
    isActive: subscription.isActive,
    expiresAt: expiresAt === undefined ? undefined : msToDateTime(expiresAt),
    status: statusOf(subscription, nowMs),
    notification: renderNotification(subscription.notification, show, statistics),
    ...(sysAttrs === true
      ? { createdAt: time(statistics?.createdAt), modifiedAt: time(statistics?.modifiedAt) }
      : {}),
  })
}

function renderNotification(
  notification: NotificationParameters,
  show: (name: string) => string,
  statistics: NotificationStatistics | undefined,
): JsonObject {
  const { attributes, pick, omit, endpoint, ...how } = notification
  const { timesSent = 0, timesFailed = 0, lastNotification, lastSuccess, lastFailure } = statistics ?? {}
  const failed = lastFailure !== undefined && (lastSuccess === undefined || lastFailure > lastSuccess)
  return present({
    attributes: attributes?.map(show),
    pick: renderMembers(pick, show),
    omit: renderMembers(omit, show),
    ...how,
    endpoint: shownEndpoint(endpoint) as unknown as JsonObject,
    status: lastNotification === undefined ? undefined : failed ? 'failed' : 'ok',
    timesSent: timesSent > 0 ? timesSent : undefined,
    timesFailed: timesFailed > 0 ? timesFailed : undefined,
    lastNotification: time(lastNotification),
    lastSuccess: time(lastSuccess),
    lastFailure: time(lastFailure),
  })
}

/** An endpoint with its secrets hidden. */
export function shownEndpoint({ uri, receiverInfo, notifierInfo, ...rest }: NotificationEndpoint) {
  return {
    uri: shownAddress(uri),
    ...rest,
    ...(receiverInfo === undefined ? {} : { receiverInfo: shownPairs(receiverInfo)! }),
    ...(notifierInfo === undefined ? {} : { notifierInfo: shownPairs(notifierInfo)! }),
  } satisfies NotificationEndpoint
}

/**
 * Replaces placeholders in an endpoint from a client with the stored secrets.
 * @throws ngsi-ld.bad-request-data if nothing is stored
 */
export function withEndpointSecrets(
  given: NotificationEndpoint,
  stored: NotificationEndpoint | undefined,
  field = 'notification.endpoint',
): NotificationEndpoint {
  const kept = (name: 'receiverInfo' | 'notifierInfo') =>
    withStoredSecrets(
      { uri: given.uri, pairs: given[name] },
      stored && { uri: stored.uri, pairs: stored[name] },
      { uri: `${field}.uri`, pairs: `${field}.${name}` },
    )
  const [{ uri, pairs: receiverInfo }, { pairs: notifierInfo }] = [kept('receiverInfo'), kept('notifierInfo')]
  return {
    ...given,
    uri,
    ...(receiverInfo === undefined ? {} : { receiverInfo }),
    ...(notifierInfo === undefined ? {} : { notifierInfo }),
  }
}

function time(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : msToDateTime(ms)
}
