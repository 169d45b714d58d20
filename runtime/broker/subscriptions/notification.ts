/**
 * Renders deliveries of one subscription into one notification (GS CIM 009, 5.8.6 and 6.3.8), at the moment
 * it is sent. An observation is reported with the value that matched, even if it changed since; the rest of
 * its entity is reported in its current state.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { overlayValue } from '#broker/state/entity-view.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { StreamName } from '#broker/state/streams.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, contextMember } from '#ngsi-ld/context/context.ts'
import { instancesOf } from '#ngsi-ld/entity/entity.ts'
import { fromShape } from '#ngsi-ld/entity/merge.ts'
import {
  type EntityReport,
  notificationData,
  notificationItems,
} from '#ngsi-ld/subscription/notification-data.ts'
import {
  componentOf,
  type NotificationEndpoint,
  notificationOf,
  type Subscription,
} from '#ngsi-ld/subscription/subscription.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { renderedOf } from './dead-letters.ts'
import type { Matcher, PeriodReport } from './matcher.ts'
import type { RenderedItems } from './rendered-items.ts'

/** A notification ready to be sent. */
export interface RenderedNotification {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs?: number | undefined
  readonly cooldownMs?: number | undefined
  /** How many of the deliveries it contains, counted from the first. */
  readonly count: number
  /** MQTT parameters if the URI is an MQTT one; the headers are in the body then. */
  readonly mqtt?: { readonly version: 4 | 5 | undefined; readonly qos: 0 | 1 | 2 }
  /** The component of this gateway that receives it, if it is for one. */
  readonly component?: string | undefined
}

/** The parts of its tenant that a notification reads. */
export interface NotifyingTenant {
  readonly name: string
  readonly matcher: Pick<Matcher, 'get'>
  /** The document of an entity with newest values, or the last one of a deleted entity. */
  readonly entityOf: (id: string) => EntityView | undefined
  /** Like `entityOf`, for existing entities only. */
  readonly current: (id: string) => EntityView | undefined
  /** The attribute instance of a stream. */
  readonly streamName: (s: number) => StreamName | undefined
}

export interface NotifyPorts {
  readonly tenant: NotifyingTenant
  readonly contexts: Contexts
  readonly clock: Clock
  /** The id of a notification: the same at every attempt for these deliveries, and unique to them. */
  readonly newId: (deliveries: readonly Delivery[]) => string
  readonly items: RenderedItems
  /** Whether subscriptions in keyValues are notified as normalized (profile `platform`). */
  readonly servesPlatform?: boolean | undefined
}

/**
 * Renders one notification from the first `count` deliveries that fit its size. Undefined if the subscription
 * was deleted, or no delivery has anything to report now.
 */
export function renderNotification(
  ports: NotifyPorts,
  deliveries: readonly Delivery[],
): RenderedNotification | undefined {
  const [first] = deliveries as [Delivery]
  const registered = ports.tenant.matcher.get(first.sub)
  if (registered === undefined) return undefined
  const { statistics } = registered
  const subscription =
    ports.servesPlatform === true ? inFull(registered.subscription) : registered.subscription
  const { endpoint } = subscription.notification
  // In the platform profile, simplified subscriptions receive normalized entities with full names.
  const context =
    subscription === registered.subscription
      ? contextOf(subscription, ports.contexts, ports.tenant.name)
      : ports.contexts.core
  const again = renderedOf(first)
  if (again !== undefined)
    return requestAgain(endpoint, headersOf(subscription, ports.tenant.name, context), again)
  const inBody = isInBody(endpoint) ? contextMember(context) : undefined
  const atContext = endpoint.accept === 'application/ld+json' ? inBody : undefined
  const options = { context, atContext, follow: ports.tenant.current }
  const form = ports.items.formOf(subscription, context)
  const { items, count } = withinSize(deliveries, (delivery) => {
    const render = (): string[] =>
      reportsOf(ports.tenant, delivery, statistics.lastPeriodAt)
        .flatMap((one) => notificationItems(subscription, one, options))
        .map((item) => JSON.stringify(item))
    const isWhole = delivery.entity !== '' && delivery.stream === null
    return form !== undefined && isWhole ? ports.items.of(form, delivery.body!, render) : render()
  })
  if (items.length === 0) return undefined
  const notification = notificationOf(subscription, {
    id: `urn:ngsi-ld:Notification:${ports.newId(deliveries.slice(0, count))}`,
    notifiedAtMs: ports.clock.now(),
    data: notificationData(subscription, items, inBody),
  })
  const headers = headersOf(subscription, ports.tenant.name, context)
  return { ...requestTo(endpoint, headers, notification), count }
}

/** The subscription as the original platform broker served it, which supported only the normalized format. */
function inFull(subscription: Subscription): Subscription {
  const { notification } = subscription
  if (notification.format !== 'keyValues' && notification.format !== 'simplified') return subscription
  return { ...subscription, notification: { ...notification, format: 'normalized' } }
}

/**
 * The items of as many deliveries as fit into one notification; the first delivery always fits. Each is
 * turned into text at once, so that memory holds one entity at a time as objects.
 */
function withinSize(
  deliveries: readonly Delivery[],
  itemsOf: (delivery: Delivery) => readonly string[],
): { items: string[]; count: number } {
  const items: string[] = []
  let bytes = 0
  let count = 0
  for (const delivery of deliveries) {
    const more = itemsOf(delivery)
    for (const text of more) bytes += text.length + 1
    if (count > 0 && bytes > limits.notificationBytes.value) break
    items.push(...more)
    count++
  }
  return { items, count }
}

function reportsOf(
  tenant: NotifyingTenant,
  delivery: Delivery,
  lastPeriodAt: number | undefined,
): EntityReport[] {
  if (delivery.entity === '') return periodOf(tenant, delivery, lastPeriodAt)
  const change = changeOf(tenant, delivery)
  return change === undefined ? [] : [change]
}

/**
 * A notification in the form of its endpoint: over MQTT the headers are part of the message (GS CIM 009,
 * 7.2).
 */
export function requestTo(
  endpoint: NotificationEndpoint,
  headers: Readonly<Record<string, string>>,
  body: string,
): RenderedNotification {
  const common = {
    uri: endpoint.uri,
    timeoutMs: endpoint.timeout,
    cooldownMs: endpoint.cooldown,
    component: componentOf(endpoint),
    count: 1,
  }
  if (!/^mqtts?:/i.test(endpoint.uri)) return { ...common, headers, body }
  const message = `{"metadata":${JSON.stringify(headers)},"body":${body}}`
  return { ...common, headers: {}, body: message, mqtt: mqttOptions(endpoint) }
}

/** A notification that was rendered before; over MQTT its headers are in its body. */
export function requestAgain(
  endpoint: NotificationEndpoint,
  headers: Readonly<Record<string, string>>,
  body: string,
): RenderedNotification {
  const { uri, timeout: timeoutMs, cooldown: cooldownMs } = endpoint
  const common = { uri, body, timeoutMs, cooldownMs, component: componentOf(endpoint), count: 1 }
  if (!/^mqtts?:/i.test(endpoint.uri)) return { ...common, headers }
  return { ...common, headers: {}, mqtt: mqttOptions(endpoint) }
}

function mqttOptions({ notifierInfo = [] }: NotificationEndpoint): RenderedNotification['mqtt'] & {} {
  const options = new Map(notifierInfo.map(({ key, value }) => [key, value]))
  const version = options.get('MQTT-Version')
  return {
    version: version === undefined ? undefined : version === 'mqtt3.1.1' ? 4 : 5,
    qos: Number(options.get('MQTT-QoS') ?? 0) as 0 | 1 | 2,
  }
}

function changeOf(tenant: NotifyingTenant, delivery: Delivery): EntityReport | undefined {
  const { stream, body } = delivery
  return stream === null ? (JSON.parse(body!) as EntityReport) : observedEntity(tenant, delivery, stream)
}

/**
 * Entities that matched at the period, in their current state; nothing if a later period reports them too.
 */
function periodOf(
  tenant: NotifyingTenant,
  { at, body }: Delivery,
  lastAt: number | undefined,
): EntityReport[] {
  if (lastAt !== undefined && at < lastAt) return []
  const views = (JSON.parse(body!) as PeriodReport).ids.map(tenant.current)
  return views
    .filter((view) => view !== undefined)
    .map((view) => ({ entity: view.entity(), times: view.times(), at }))
}

function observedEntity(tenant: NotifyingTenant, delivery: Delivery, s: number): EntityReport | undefined {
  const stream = tenant.streamName(s)
  const view = tenant.entityOf(delivery.entity)
  if (stream === undefined || view === undefined) return undefined
  const { at } = delivery
  const changes =
    delivery.body === null
      ? undefined
      : [
          {
            name: stream.name,
            before: fromShape(stream.shape, JSON.parse(delivery.body) as Json, at),
            isDeleted: false,
          },
        ]
  const [time, value] = [delivery.t!, JSON.parse(delivery.value!) as Json]
  const entity = view.entity()
  const instances = instancesOf(entity, stream.name)
  if (instances.some(({ datasetId = '' }) => datasetId === stream.dataset)) {
    overlayValue(entity, stream, time, value)
    return { entity, times: view.times(), changes, at }
  }
  // The attribute was deleted since, but its value matched, so it is reported.
  const all = [...instances, fromShape(stream.shape, value, time)]
  return {
    entity: { ...entity, [stream.name]: all.length === 1 ? all[0] : all },
    times: view.times(),
    changes,
    at,
  }
}

/**
 * The context a subscription was created with. The core context with full IRIs replaces it if its documents
 * are missing, or if it has no URL for a Link header.
 */
export function contextOf(subscription: Subscription, contexts: Contexts, tenant: string): Context {
  const isLd = isInBody(subscription.notification.endpoint)
  try {
    const context = contexts.resolveAtOnce(subscription.jsonldContext ?? subscription.context, tenant)
    if (context !== undefined && (isLd || context.address !== undefined)) return context
  } catch {
    // A document that was replaced meanwhile is invalid: the core context expresses the same with full IRIs.
  }
  return contexts.core
}

/**
 * Whether the @context is in the body instead of a header; for GeoJSON it is, unless Prefer says otherwise.
 */
function isInBody({ accept, receiverInfo = [] }: NotificationEndpoint): boolean {
  if (accept !== 'application/geo+json') return accept === 'application/ld+json'
  return !receiverInfo.some(({ key, value }) => key.toLowerCase() === 'prefer' && /\bbody=json\b/.test(value))
}

export function headersOf(
  subscription: Subscription,
  tenant: string,
  context: Context,
): Record<string, string> {
  const { endpoint } = subscription.notification
  const headers: Record<string, string> = { 'Content-Type': endpoint.accept ?? 'application/json' }
  const link = context.address
  if (!isInBody(endpoint) && link !== undefined) {
    headers['Link'] = `<${link}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  }
  if (tenant !== '') headers['NGSILD-Tenant'] = tenant
  for (const { key, value } of endpoint.receiverInfo ?? []) {
    const known = Object.keys(headers).find((name) => name.toLowerCase() === key.toLowerCase())
    headers[known ?? key] = value
  }
  return headers
}
