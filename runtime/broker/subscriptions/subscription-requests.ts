/** Requests on subscriptions of one tenant (GS CIM 009, 5.8), and their consumers. */

import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import type { NotificationStatistics, Subscription } from '#ngsi-ld/subscription/subscription.ts'

/**
 * Counters of a subscription's deliveries; times are ms UTC, absent before the event (GS CIM 009, 5.2.14).
 */
export interface SubscriptionStats extends NotificationStatistics {
  readonly createdAt: number
  readonly modifiedAt: number
}

export interface SubscriptionView {
  readonly subscription: Subscription
  readonly stats: SubscriptionStats
}

/** A notification for a streaming consumer: the id to confirm it by, and the body as JSON text. */
export interface StreamEvent {
  readonly id: string
  readonly body: string
}

/** A client that reads the notifications of a subscription as a stream. */
export interface Consumer {
  /** Returns false if it cannot accept more until it is `ready`. */
  write(event: StreamEvent): boolean
  /** Called when another consumer replaces it, or the gateway stops. */
  close(): void
}

export interface Listening {
  ready(): void
  end(): void
}

/**
 * An entity reported by a context source, and its combination with local attributes; absent for a deleted
 * one.
 */
export interface ReportedEntity {
  readonly report: EntityReport
  readonly combined?: { readonly entity: Entity; readonly times: SystemTimes }
}

/** The use-cases on subscriptions of one tenant. Every promise settles when the write is on disk. */
export interface SubscriptionBroker {
  /** @throws ngsi-ld.already-exists, ngsi-ld.too-many-results at `subscriptionsMax`, `followersMax`. */
  create(subscription: Subscription): Promise<void>
  get(id: string): SubscriptionView | undefined
  /** In order of creation; subscriptions of components of this gateway only with `followers`. */
  list(page: { limit: number; offset: number; followers?: boolean }): {
    views: readonly SubscriptionView[]
    count: number
  }
  /** Applies a parsed fragment. @throws ngsi-ld.not-found, ngsi-ld.bad-request-data. */
  patch(id: string, change: (before: Subscription) => Subscription): Promise<void>
  /** @throws ngsi-ld.not-found */
  delete(id: string): Promise<void>
  /** Sends pending and unconfirmed notifications, then new ones. @throws ngsi-ld.not-found */
  listen(id: string, consumer: Consumer): Listening
  /**
   * Notifies entities reported by a context source; nothing if the subscription was deleted or they do not
   * match.
   */
  report(id: string, entities: readonly ReportedEntity[]): Promise<void>
  /** Confirms all events up to this one. @throws ngsi-ld.not-found, ngsi-ld.bad-request-data */
  confirm(id: string, eventId: string): Promise<void>
}
