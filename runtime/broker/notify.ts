/**
 * Renders one delivery into the request that tells it to the subscriber (GS CIM 009, 5.8.6 and 6.3.8), at the
 * moment it is sent. An observation is told with the value that matched, whatever came since; the rest of its entity
 * is told as it is now.
 */
import type { Clock } from '#base/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import { ngsiLdNull } from '#ngsi-ld/attribute-kind.ts'
import type { Context } from '#ngsi-ld/context.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import { renderEntity } from '#ngsi-ld/representation.ts'
import { notificationOf, type Subscription } from '#ngsi-ld/subscription.ts'
import type { Delivery } from '#store/deliveries.ts'
import type { Contexts } from './contexts.ts'
import type { OwedEntity } from './matcher.ts'
import type { Inside } from './tenant.ts'
import { layValue } from './view.ts'

/** A notification ready to be sent. */
export interface RenderedNotification {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs?: number | undefined
  readonly cooldownMs?: number | undefined
}

export interface NotifyPorts {
  readonly tenant: Inside
  readonly contexts: Contexts
  readonly clock: Clock
  /** Identifies the delivery: the same at every try, unique for ever. */
  readonly newId: () => string
}

/** Returns undefined when the subscription is gone, or an observed entity has left no trace at all. */
export function renderNotification(ports: NotifyPorts, delivery: Delivery): RenderedNotification | undefined {
  const registered = ports.tenant.matcher.get(delivery.sub)
  if (registered === undefined) return undefined
  const owed =
    delivery.body === null
      ? observedEntity(ports.tenant, delivery)
      : (JSON.parse(delivery.body) as OwedEntity)
  if (owed === undefined) return undefined
  const { subscription } = registered
  const { endpoint } = subscription.notification
  const context = contextOf(subscription, ports.contexts)
  const asLd = endpoint.accept === 'application/ld+json'
  const data = renderData(subscription, owed, context, asLd)
  const notification = notificationOf(subscription, {
    id: `urn:ngsi-ld:Notification:${ports.newId()}`,
    notifiedAtMs: ports.clock.now(),
    data: [data],
  })
  return {
    uri: endpoint.uri,
    headers: headersOf(subscription, ports.tenant.name, context),
    body: JSON.stringify(notification),
    timeoutMs: endpoint.timeout,
    cooldownMs: endpoint.cooldown,
  }
}

function observedEntity(tenant: Inside, delivery: Delivery): OwedEntity | undefined {
  const stream = tenant.streamName(delivery.stream!)
  const view = tenant.entityOf(delivery.entity)
  if (stream === undefined || view === undefined) return undefined
  const [time, value] = [delivery.t!, JSON.parse(delivery.value!) as Json]
  const entity = view.entity()
  const instances = instancesOf(entity, stream.name)
  if (instances.some(({ datasetId = '' }) => datasetId === stream.dataset)) {
    layValue(entity, stream, time, value)
    return { entity, times: view.times() }
  }
  // It matched, so it is told, although the attribute has been deleted since.
  const all = [...instances, fromShape(stream.shape, value, time)]
  return { entity: { ...entity, [stream.name]: all.length === 1 ? all[0] : all }, times: view.times() }
}

function renderData(subscription: Subscription, owed: OwedEntity, context: Context, asLd: boolean): Json {
  const { attributes, format, sysAttrs } = subscription.notification
  const atContext = asLd ? context.reference : undefined
  if (owed.deletedAt !== undefined) {
    const gone = renderEntity(bare(owed.entity), undefined, { context, format: 'normalized', atContext })
    return { ...gone, deletedAt: msToDateTime(owed.deletedAt) }
  }
  const attrs = attributes === undefined ? undefined : new Set(attributes)
  const gone = (owed.deleted ?? []).filter((name) => attrs?.has(name) ?? true)
  const data = renderEntity(owed.entity, owed.times, {
    context,
    format: format === 'keyValues' || format === 'simplified' ? 'simplified' : (format ?? 'normalized'),
    sysAttrs: sysAttrs ?? false,
    attrs,
    atContext,
  })
  return { ...data, ...Object.fromEntries(gone.map((name) => [context.compact(name), ngsiLdNull])) }
}

const bare = ({ id, type }: Entity): Entity => ({ id, type })

/** The context a subscription was made with; without its documents, full IRIs are told under the core context. */
export function contextOf(subscription: Subscription, contexts: Contexts): Context {
  try {
    const resolved = contexts.resolve(subscription.context)
    if (!(resolved instanceof Promise)) return resolved
    resolved.catch(() => {})
  } catch {
    // No copy and no way to fetch one: the core context says the same in full.
  }
  return contexts.core
}

export function headersOf(
  subscription: Subscription,
  tenant: string,
  context: Context,
): Record<string, string> {
  const { endpoint } = subscription.notification
  const headers: Record<string, string> = { 'content-type': endpoint.accept ?? 'application/json' }
  const link = context.reference.find((reference) => typeof reference === 'string')
  if (endpoint.accept !== 'application/ld+json' && link !== undefined) {
    headers['link'] = `<${link}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  }
  if (tenant !== '') headers['ngsild-tenant'] = tenant
  for (const { key, value } of endpoint.receiverInfo ?? []) headers[key.toLowerCase()] = value
  return headers
}
