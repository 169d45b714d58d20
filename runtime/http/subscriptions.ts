/**
 * Routes of subscriptions (GS CIM 009, 6.10 and 6.11). A @context that their notifications are to be written in must
 * be there, and one that has no address gets one, since notifications name it in a Link header.
 */
import type { Contexts } from '#broker/contexts.ts'
import { isObject } from '#ngsi-ld/json.ts'
import { renderSubscription } from '#ngsi-ld/subscription.ts'
import { parseSubscription, patchSubscription } from '#ngsi-ld/subscription-parse.ts'
import { nameable } from './ask.ts'
import { type ResourceRoutePorts, resourceTable } from './resources.ts'

export const subscriptionsPath = '/ngsi-ld/v1/subscriptions'

export interface SubscriptionRoutePorts extends ResourceRoutePorts {
  readonly contexts: Pick<Contexts, 'resolve'>
}

/** The routes of subscriptions by path and method. */
export function createSubscriptionTable({ contexts, ...ports }: SubscriptionRoutePorts) {
  return resourceTable(ports, {
    path: subscriptionsPath,
    noun: 'subscription',
    idPrefix: 'urn:ngsi-ld:Subscription:',
    storeOf: ({ subscriptions }) => subscriptions,
    page: ({ broker }, paging) => broker.subscriptions.list(paging),
    parse: parseSubscription,
    patch: patchSubscription,
    idOf: ({ id }) => id,
    render: ({ subscription, stats }, options) =>
      renderSubscription(subscription, { ...options, statistics: stats }),
    async check({ body, tenant }) {
      const url = isObject(body) ? body['jsonldContext'] : undefined
      if (typeof url === 'string' && URL.canParse(url)) await contexts.resolve(url, tenant)
    },
    async complete(c, subscription, { ask, broker }) {
      const { address } = await nameable(c, broker, ask.context)
      const isNamed = address === undefined || address === ask.context.address
      return isNamed ? subscription : { jsonldContext: address, ...subscription }
    },
  })
}
