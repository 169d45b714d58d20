/** Requests on subscriptions of one tenant (GS CIM 009, 5.8), and their consumers. */

import type { SystemTimes } from '#broker/state/stored-entity.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'

/** Counters of a subscription's deliveries; times are ms UTC, absent until they happen (GS CIM 009, 5.2.14). */
export interface SubscriptionStats {
  readonly timesSent: number
  readonly timesFailed: number
  readonly lastNotification?: number | undefined
  readonly lastSuccess?: number | undefined
  readonly lastFailure?: number | undefined
  readonly createdAt: number
  readonly modifiedAt: number
}

export interface SubscriptionView {
  readonly subscription: Subscription
  readonly stats: SubscriptionStats
}

/** A notification as consumers who come for it are told: the id to confirm it by, and the body as JSON text. */
export interface StreamEvent {
  readonly id: string
  readonly body: string
}

/** Somebody who came for the notifications of a subscription. */
export interface Consumer {
  /** Returns false when it can take no more until it is `ready`. */
  write(event: StreamEvent): boolean
  /** Its place was taken, or the gateway stops. */
  close(): void
}

export interface Listening {
  ready(): void
  end(): void
}

/** An entity as a context source told it, and as it is taken together with what is here; a deleted one is not judged. */
export interface ToldEntity {
  readonly owed: EntityReport
  readonly judged?: { readonly entity: Entity; readonly times: SystemTimes }
}

/** The use-cases on subscriptions of one tenant. Every promise settles when on disk. */
export interface SubscriptionBroker {
  /** @throws ngsi-ld.already-exists, ngsi-ld.too-many-results at `subscriptionsMax`, `followersMax`. */
  create(subscription: Subscription): Promise<void>
  get(id: string): SubscriptionView | undefined
  /** In order of creation; what components of this gateway follow only where it is asked for. */
  list(page: { limit: number; offset: number; followers?: boolean }): {
    views: readonly SubscriptionView[]
    count: number
  }
  /** Applies a parsed fragment. @throws ngsi-ld.not-found, ngsi-ld.bad-request-data. */
  patch(id: string, change: (before: Subscription) => Subscription): Promise<void>
  /** @throws ngsi-ld.not-found */
  delete(id: string): Promise<void>
  /** Tells what is owed and not confirmed, then what comes. @throws ngsi-ld.not-found */
  listen(id: string, consumer: Consumer): Listening
  /** Owes what a context source told; nothing where the subscription is gone or does not want it. */
  tell(id: string, told: readonly ToldEntity[]): Promise<void>
  /** All up to this event was taken. @throws ngsi-ld.not-found, ngsi-ld.bad-request-data */
  confirm(id: string, eventId: string): Promise<void>
}
