/** Requests on registrations of context sources, and on subscriptions to them (GS CIM 009, 5.9 to 5.11). */

import type { SubscriptionStats } from '#broker/subscriptions/subscription-requests.ts'
import type { Registration, RegistrationView } from '#ngsi-ld/federation/registration.ts'
import type { Discovery } from '#ngsi-ld/federation/registration-match.ts'
import type { SourceSubscription } from '#ngsi-ld/federation/source-subscription.ts'
import type { SourceCopyRow } from '#store/tables/source-rows.ts'

/**
 * The use-cases on registrations of context sources of one tenant. Every promise settles when the write is on
 * disk.
 */
export interface RegistrationBroker {
  /** @throws ngsi-ld.already-exists, ngsi-ld.conflict, ngsi-ld.too-many-results. */
  create(registration: Registration): Promise<void>
  get(id: string): RegistrationView | undefined
  /** Cheap, since it is checked before every distributed operation. */
  isEmpty(): boolean
  /** Registrations that have not expired, in order of creation. */
  live(): readonly RegistrationView[]
  discover(
    discovery: Discovery,
    page: { limit: number; offset: number },
  ): { views: readonly RegistrationView[]; count: number }
  /** Applies a parsed fragment. @throws ngsi-ld.not-found, ngsi-ld.conflict, ngsi-ld.bad-request-data. */
  patch(id: string, change: (before: Registration) => Registration): Promise<void>
  /** @throws ngsi-ld.not-found */
  delete(id: string): Promise<void>
  /** Records the outcome of a request to the source. */
  outcome(id: string, isSuccess: boolean): void
  readonly copies: SourceCopies
}

/** The last responses of sources, which outlive a restart. */
export interface SourceCopies {
  /** Oldest first. */
  stored(): readonly SourceCopyRow[]
  put(copy: SourceCopyRow): void
  drop(key: string): void
}

/** The use-cases on subscriptions to registrations, analogous to those on other subscriptions. */
export interface SourceSubscriptionBroker {
  create(one: SourceSubscription): Promise<void>
  get(id: string): SourceSubscriptionView | undefined
  list(page: { limit: number; offset: number }): {
    views: readonly SourceSubscriptionView[]
    count: number
  }
  patch(id: string, change: (before: SourceSubscription) => SourceSubscription): Promise<void>
  delete(id: string): Promise<void>
}

export interface SourceSubscriptionView {
  readonly one: SourceSubscription
  readonly statistics: SubscriptionStats
}
