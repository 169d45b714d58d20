/**
 * Use-cases on subscriptions (GS CIM 009, 5.8). Subscribing is itself a work in the queue: later works are
 * notified, earlier ones are not. Readers see committed subscriptions; the matcher sees staged ones.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { createStaged } from '#broker/commit/staged-values.ts'
import { isFollower, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { notFound, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Records, SubscriptionRow } from '#store/tables/records.ts'
import type { Matcher, Registered } from './matcher.ts'
import type { Periodic } from './periodic.ts'
import type { Consumer, Listening, SubscriptionBroker, SubscriptionView } from './subscription-requests.ts'
import { parseStatistics, unusedStatistics } from './subscription-statistics.ts'

export interface SubscribePorts extends ClockAndLog {
  readonly door: Door
  readonly records: Records
  readonly matcher: Matcher
  readonly periodic: Pick<Periodic, 'watch' | 'forget'>
  /** The notification lists that streaming consumers read. */
  readonly streams: () => NotificationStreams
  /** Called when pending deliveries of an endpoint were moved or deleted. */
  readonly onEndpointChange: (endpoint: string) => void
}

/** Lists of notifications that consumers read and confirm, by endpoint. */
export interface NotificationStreams {
  listen(endpoint: string, consumer: Consumer): Listening
  confirm(endpoint: string, eventId: string): Promise<void>
}

export function createSubscribe(ports: SubscribePorts): SubscriptionBroker {
  const { door, matcher, periodic, clock } = ports
  const all = createStaged<Registered>('subscriptions')
  let last = 0
  for (const row of ports.records.subscriptions()) {
    last = Math.max(last, row.i)
    const stored = registerStored(ports, row)
    if (stored === undefined) continue
    all.load(row.id, stored)
    periodic.watch(stored)
  }

  function found(stage: Stage, id: string): Registered {
    const one = all.find(stage, id)
    if (one === undefined) throw unknown(id)
    return one
  }

  function known(id: string): Registered {
    const one = all.stored.get(id)
    if (one === undefined) throw unknown(id)
    return one
  }

  const view = (one: Registered): SubscriptionView => ({
    subscription: one.subscription,
    stats: one.statistics,
  })

  return Object.freeze({
    create: (subscription) =>
      door.commit((stage) => {
        if (all.find(stage, subscription.id) !== undefined) {
          throw new GatewayError(
            'ngsi-ld.already-exists',
            `the subscription ${subscription.id} already exists`,
          )
        }
        const counts = isFollower(subscription) ? limits.followersMax : limits.subscriptionsMax
        if (matcher.count(subscription) >= counts.value) {
          throw tooManyResults(`the tenant already has the maximum of ${counts.value} subscriptions`)
        }
        const i = ++last
        const statistics = unusedStatistics(clock.now())
        const one = matcher.register(i, subscription, statistics)
        stage.undone(() => matcher.unregister(i))
        stage.write(
          'subscription.insert',
          i,
          subscription.id,
          JSON.stringify(subscription),
          JSON.stringify(statistics),
        )
        all.put(stage, subscription.id, one, () => periodic.watch(one))
      }),
    get: (id) => {
      const one = all.stored.get(id)
      return one === undefined ? undefined : view(one)
    },
    list({ limit, offset, followers = false }) {
      const listed = [...all.stored.values()].filter((one) => followers || !isFollower(one.subscription))
      return { views: listed.slice(offset, offset + limit).map(view), count: listed.length }
    },
    patch: (id, change) =>
      door.commit((stage) => {
        const before = found(stage, id)
        const { i, statistics } = before
        const subscription = change(before.subscription)
        const { modifiedAt } = statistics
        const after = matcher.replace(before, subscription)
        stage.undone(() => {
          statistics.modifiedAt = modifiedAt
          matcher.restore(before)
        })
        statistics.modifiedAt = clock.now()
        stage.write('subscription.update', JSON.stringify(subscription), i)
        stage.write('subscription.stats', JSON.stringify(statistics), i)
        all.put(stage, id, after, () => periodic.watch(after))
        if (after.endpoint === before.endpoint) return
        stage.write('delivery.redirect', after.endpoint, before.endpoint, i)
        stage.published(() => {
          ports.onEndpointChange(before.endpoint)
          ports.onEndpointChange(after.endpoint)
        })
      }),
    delete: (id) =>
      door.commit(
        (stage) => {
          const before = found(stage, id)
          matcher.unregister(before.i)
          stage.undone(() => matcher.restore(before))
          stage.write('subscription.delete', before.i)
          stage.write('delivery.forget', before.endpoint, before.i)
          all.put(stage, id, undefined, () => periodic.forget(before.i))
          stage.published(() => ports.onEndpointChange(before.endpoint))
        },
        { isSparing: true },
      ),
    report: (id, entities) =>
      door.commit((stage) => {
        const one = all.find(stage, id)
        if (one !== undefined) for (const each of entities) matcher.report(stage, one, each)
      }),
    listen: (id, consumer) => ports.streams().listen(known(id).endpoint, consumer),
    confirm: async (id, eventId) => ports.streams().confirm(known(id).endpoint, eventId),
  } satisfies SubscriptionBroker)
}

const unknown = (id: string): GatewayError => notFound(`the subscription ${id} does not exist`)

/**
 * Loads a subscription from disk. An invalid one must not keep the gateway from starting: it is logged, and
 * matches nothing until a client corrects or deletes it.
 */
function registerStored({ matcher, log }: SubscribePorts, row: SubscriptionRow): Registered | undefined {
  const facts = { subscription: row.id, during: 'start' }
  try {
    const subscription = JSON.parse(row.doc) as Subscription
    const statistics = parseStatistics(row.stats)
    try {
      return matcher.register(row.i, subscription, statistics)
    } catch (error) {
      log.error('gateway.fault', { ...facts, error })
      return matcher.register(row.i, subscription, statistics, () => false)
    }
  } catch (error) {
    log.error('gateway.fault', { ...facts, error })
    return undefined
  }
}
