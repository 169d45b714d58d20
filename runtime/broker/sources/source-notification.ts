/**
 * Renders notifications of subscriptions to context sources (GS CIM 009, 5.3.2 and 5.11.7): registrations as
 * they were when they matched, with the trigger reason.
 */

import { renderedOf } from '#broker/subscriptions/dead-letters.ts'
import {
  contextOf,
  headersOf,
  type NotifyPorts,
  type RenderedNotification,
  requestAgain,
  requestTo,
} from '#broker/subscriptions/notification.ts'
import { contextMember } from '#ngsi-ld/context/context.ts'
import { inBestLanguage, renderRegistration } from '#ngsi-ld/federation/registration.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import type { SourceReport, SourceSubscribe } from './source-subscribe.ts'

/** Renders one delivery. Undefined if the subscription was deleted. */
export function renderSourceNotification(
  {
    tenant,
    contexts,
    clock,
    newId,
  }: NotifyPorts & {
    readonly tenant: { readonly name: string; readonly sources: Pick<SourceSubscribe, 'get'> }
  },
  [delivery]: readonly Delivery[],
): RenderedNotification | undefined {
  if (delivery === undefined || delivery.body === null) return undefined
  const subscribed = tenant.sources.get(delivery.sub)
  if (subscribed === undefined) return undefined
  const { subscription } = subscribed.one
  const { lang } = subscription
  const { endpoint, sysAttrs } = subscription.notification
  const context = contextOf(subscription, contexts, tenant.name)
  const again = renderedOf(delivery)
  if (again !== undefined) return requestAgain(endpoint, headersOf(subscription, tenant.name, context), again)
  const { reason, views } = JSON.parse(delivery.body) as SourceReport
  const isLd = endpoint.accept === 'application/ld+json'
  const data = (lang === undefined ? views : inBestLanguage(lang, views)).map((view) => ({
    ...renderRegistration(view, { context, sysAttrs: sysAttrs ?? false }),
    ...(isLd ? { '@context': contextMember(context) } : {}),
  }))
  const notification = {
    id: `urn:ngsi-ld:ContextSourceNotification:${newId([delivery])}`,
    type: 'ContextSourceNotification',
    subscriptionId: subscription.id,
    notifiedAt: msToDateTime(clock.now()),
    triggerReason: reason,
    data,
  }
  const headers = headersOf(subscription, tenant.name, context)
  return requestTo(endpoint, headers, JSON.stringify(notification))
}
