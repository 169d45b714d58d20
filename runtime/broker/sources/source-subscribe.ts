/**
 * Use-cases on subscriptions to registrations of context sources (GS CIM 009, 5.11). A changed registration
 * is matched while the change is decided. Its notifications use the same outbox as others, in order per
 * subscription. Subscriptions with a time interval are notified of all matching registrations at each
 * interval.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { createStaged } from '#broker/commit/staged-values.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import {
  parseStatistics,
  type SubscriptionStatistics,
  unusedStatistics,
} from '#broker/subscriptions/subscription-statistics.ts'
import type { RegistrationView } from '#ngsi-ld/federation/registration.ts'
import { discover } from '#ngsi-ld/federation/registration-match.ts'
import {
  discoveryOf,
  type SourceSubscription,
  type TriggerReason,
} from '#ngsi-ld/federation/source-subscription.ts'
import { isActive } from '#ngsi-ld/subscription/subscription.ts'
import { alreadyExists, notFound, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ContextSources } from '#store/tables/source-rows.ts'
import type { SourceSubscriptionBroker } from './source-requests.ts'

export interface SourceSubscribePorts extends ClockAndLog {
  readonly door: Door
  readonly rows: ContextSources
  readonly deliver: Matcher['deliver']
  /** Active registrations, as a work being decided sees them. */
  readonly registrations: (stage: Stage) => readonly RegistrationView[]
  readonly onEndpointChange: (endpoint: string) => void
}

/** A subscription with the number of its deliveries, which is negative. */
export interface SourceSubscribed {
  readonly i: number
  readonly one: SourceSubscription
  readonly endpoint: string
  readonly statistics: SubscriptionStatistics
}

/** The content of a delivery until it is rendered. */
export interface SourceReport {
  readonly reason: TriggerReason
  readonly views: readonly RegistrationView[]
}

export function createSourceSubscribe(ports: SourceSubscribePorts) {
  const { door, clock } = ports
  const all = createStaged<SourceSubscribed>('csource subscriptions')
  const byNumber = new Map<number, SourceSubscribed>()
  /** Monotonic ms of the last periodic notification. */
  const notifiedAt = new Map<number, number>()
  /** Monotonic ms of the last notified change, for throttling. */
  const changedAt = new Map<number, number>()
  let last = 0
  function number(subscribed: SourceSubscribed): void {
    byNumber.set(subscribed.i, subscribed)
    if (!notifiedAt.has(subscribed.i)) notifiedAt.set(subscribed.i, clock.monotonic())
  }
  function forget(i: number): void {
    byNumber.delete(i)
    notifiedAt.delete(i)
    changedAt.delete(i)
  }
  for (const row of ports.rows.subscriptions()) {
    last = Math.min(last, row.i)
    try {
      const one = JSON.parse(row.doc) as SourceSubscription
      const subscribed = subscribedOf(row.i, one, parseStatistics(row.stats))
      all.load(row.id, subscribed)
      number(subscribed)
    } catch (error) {
      ports.log.error('gateway.fault', { subscription: row.id, during: 'start', error })
    }
  }

  function found(stage: Stage, id: string): SourceSubscribed {
    const subscribed = all.find(stage, id)
    if (subscribed === undefined) throw notFound(`the subscription ${id} does not exist`)
    return subscribed
  }
  function put(stage: Stage, id: string, subscribed: SourceSubscribed): void {
    const { i, one, statistics } = subscribed
    stage.write('csource_subscription.put', i, id, JSON.stringify(one), JSON.stringify(statistics))
    all.put(stage, id, subscribed, () => number(subscribed))
  }

  const isLive = ({ one }: SourceSubscribed): boolean => isActive(one.subscription, clock.now())
  function notify(stage: Stage, subscribed: SourceSubscribed, report: SourceReport): void {
    if (report.views.length === 0) return
    const entity = subscribed.one.subscription.id
    ports.deliver(stage, subscribed, {
      entity,
      stream: null,
      t: null,
      value: null,
      body: JSON.stringify(report),
    })
  }
  /** Whether it was notified of a change within the throttling time; if not, that time starts now. */
  function isThrottled(stage: Stage, { i, one, statistics }: SourceSubscribed): boolean {
    const { throttling } = one.subscription
    if (throttling === undefined) return false
    const now = clock.monotonic()
    const before = changedAt.get(i)
    if (before !== undefined && now - before < throttling * 1000) {
      statistics.timesThrottled++
      stage.undone(() => void statistics.timesThrottled--)
      return true
    }
    changedAt.set(i, now)
    stage.undone(() => {
      if (before === undefined) changedAt.delete(i)
      else changedAt.set(i, before)
    })
    return false
  }
  const notifyAll = (stage: Stage, subscribed: SourceSubscribed, reason: TriggerReason): void => {
    if (!isLive(subscribed)) return
    const views = discover(discoveryOf(subscribed.one), ports.registrations(stage))
    notify(stage, subscribed, { reason, views })
  }

  const broker: SourceSubscriptionBroker = Object.freeze({
    create: (one) =>
      door.commit((stage) => {
        const { id } = one.subscription
        if (all.find(stage, id) !== undefined) throw alreadyExists(`the subscription ${id} already exists`)
        if (all.stored.size >= limits.sourceSubscriptionsMax.value)
          throw tooManyResults(`the maximum of ${all.stored.size} subscriptions is reached`)
        const subscribed = subscribedOf(--last, one, unusedStatistics(clock.now()))
        put(stage, id, subscribed)
        notifyAll(stage, subscribed, 'newlyMatching')
      }),
    get: (id) => all.stored.get(id),
    list: ({ limit, offset }) => ({
      views: [...all.stored.values()].slice(offset, offset + limit),
      count: all.stored.size,
    }),
    patch: (id, change) =>
      door.commit((stage) => {
        const before = found(stage, id)
        const statistics = before.statistics
        const { modifiedAt } = statistics
        const after = subscribedOf(before.i, change(before.one), statistics)
        stage.undone(() => {
          statistics.modifiedAt = modifiedAt
        })
        statistics.modifiedAt = clock.now()
        put(stage, id, after)
        notifyAll(stage, after, 'newlyMatching')
        if (after.endpoint === before.endpoint) return
        stage.write('delivery.redirect', after.endpoint, before.endpoint, before.i)
        stage.published(() => {
          ports.onEndpointChange(before.endpoint)
          ports.onEndpointChange(after.endpoint)
        })
      }),
    delete: (id) =>
      door.commit((stage) => {
        const before = found(stage, id)
        stage.write('csource_subscription.delete', before.i)
        stage.write('delivery.forget', before.endpoint, before.i)
        all.put(stage, id, undefined, () => {
          forget(before.i)
          ports.onEndpointChange(before.endpoint)
        })
      }),
  } satisfies SourceSubscriptionBroker)

  return Object.freeze({
    broker,
    get: (i: number): SourceSubscribed | undefined => byNumber.get(i),
    /** Stages notifications for a registration that was created, changed or deleted. */
    changed(stage: Stage, before: RegistrationView | undefined, after: RegistrationView | undefined): void {
      for (const subscribed of all.all(stage).values()) {
        if (subscribed.one.timeInterval !== undefined || !isLive(subscribed)) continue
        const discovery = discoveryOf(subscribed.one)
        const [was] = before === undefined ? [] : discover(discovery, [before])
        const [is] = after === undefined ? [] : discover(discovery, [after])
        const reason = is === undefined ? 'noLongerMatching' : was === undefined ? 'newlyMatching' : 'updated'
        const view = is ?? was
        if (view !== undefined && !isThrottled(stage, subscribed))
          notify(stage, subscribed, { reason, views: [view] })
      }
    },
    /** Notifies subscriptions whose interval has passed. */
    sweep(): void {
      const now = clock.monotonic()
      for (const [i, { one }] of byNumber) {
        if (one.timeInterval === undefined || now - notifiedAt.get(i)! < one.timeInterval * 1000) continue
        notifiedAt.set(i, now)
        door.submit({
          urgent: true,
          bytes: 256,
          decide(stage) {
            const subscribed = byNumber.get(i)
            if (subscribed !== undefined) notifyAll(stage, subscribed, 'updated')
          },
          answer: () => undefined,
        })
      }
    },
  })
}

export type SourceSubscribe = ReturnType<typeof createSourceSubscribe>

function subscribedOf(
  i: number,
  one: SourceSubscription,
  statistics: SubscriptionStatistics,
): SourceSubscribed {
  return { i, one, endpoint: one.subscription.notification.endpoint.uri, statistics }
}
