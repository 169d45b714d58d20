/**
 * Use-cases on subscriptions (GS CIM 009, 5.8). Subscribing is itself a work in the FIFO: what comes before it is
 * not notified, what comes after is.
 */
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import { notFound } from '#ngsi-ld/problem.ts'
import type { Subscription } from '#ngsi-ld/subscription.ts'
import type { Records } from '#store/records.ts'
import type { Door } from './door.ts'
import type { Matcher, Registered } from './matcher.ts'
import { parseStatistics, unusedStatistics } from './subscription-statistics.ts'
import type { SubscriptionBroker, SubscriptionView } from './types.ts'

export interface SubscribePorts {
  readonly door: Door
  readonly records: Records
  readonly matcher: Matcher
  readonly clock: Clock
  /** Tells that deliveries owed to an endpoint were moved or deleted. */
  readonly onEndpointChange: (endpoint: string) => void
}

export function createSubscribe(ports: SubscribePorts): SubscriptionBroker {
  const { door, matcher, clock } = ports
  const byId = new Map<string, Registered>()
  let last = 0
  for (const row of ports.records.subscriptions()) {
    const subscription = JSON.parse(row.doc) as Subscription
    byId.set(row.id, matcher.register(row.i, subscription, parseStatistics(row.stats)))
    last = Math.max(last, row.i)
  }

  function registered(id: string): Registered {
    const found = byId.get(id)
    if (found === undefined) throw notFound(`the subscription ${id} does not exist`)
    return found
  }

  const view = (one: Registered): SubscriptionView => ({
    subscription: one.subscription,
    stats: one.statistics,
  })

  return Object.freeze({
    create: (subscription) =>
      door.commit((stage) => {
        if (byId.has(subscription.id)) {
          throw new GatewayError(
            'ngsi-ld.already-exists',
            `the subscription ${subscription.id} exists already`,
          )
        }
        if (byId.size >= limits.subscriptionsMax.value) {
          throw new GatewayError(
            'ngsi-ld.too-many-results',
            `there are ${limits.subscriptionsMax.value} subscriptions already, the most a tenant may have`,
          )
        }
        const i = ++last
        const statistics = unusedStatistics(clock.now())
        stage.write(
          'subscription.insert',
          i,
          subscription.id,
          JSON.stringify(subscription),
          JSON.stringify(statistics),
        )
        byId.set(subscription.id, matcher.register(i, subscription, statistics))
        stage.undone(() => {
          byId.delete(subscription.id)
          matcher.unregister(i)
        })
      }),
    get: (id) => {
      const found = byId.get(id)
      return found === undefined ? undefined : view(found)
    },
    list: ({ limit, offset }) => ({
      views: [...byId.values()].slice(offset, offset + limit).map(view),
      count: byId.size,
    }),
    patch: (id, change) =>
      door.commit((stage) => {
        const before = registered(id)
        const subscription = change(before.subscription)
        before.statistics.modifiedAt = clock.now()
        stage.write('subscription.update', JSON.stringify(subscription), before.i)
        matcher.unregister(before.i)
        const after = matcher.register(before.i, subscription, before.statistics)
        byId.set(id, after)
        stage.undone(() => {
          matcher.unregister(before.i)
          byId.set(id, matcher.register(before.i, before.subscription, before.statistics))
        })
        if (after.endpoint !== before.endpoint) {
          stage.write('delivery.redirect', after.endpoint, before.endpoint, before.i)
          stage.published(() => {
            ports.onEndpointChange(before.endpoint)
            ports.onEndpointChange(after.endpoint)
          })
        }
      }),
    delete: (id) =>
      door.commit((stage) => {
        const before = registered(id)
        stage.write('subscription.delete', before.i)
        stage.write('delivery.forget', before.endpoint, before.i)
        matcher.unregister(before.i)
        byId.delete(id)
        stage.undone(() => {
          byId.set(id, matcher.register(before.i, before.subscription, before.statistics))
        })
        stage.published(() => ports.onEndpointChange(before.endpoint))
      }),
  } satisfies SubscriptionBroker)
}
