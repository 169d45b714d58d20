/** The interface of one tenant, and of the tenants, for other rooms. */

import type { HostedContexts } from '#broker/contexts/hosted-contexts.ts'
import type { Provision } from '#broker/entities/entity-requests.ts'
import type { OwnInventory } from '#broker/entities/inventory.ts'
import type { EntityHistory, TemporalBroker, TemporalQuery } from '#broker/history/temporal-requests.ts'
import type { ForwardedSubscriptions } from '#broker/sources/forwarded-subscriptions.ts'
import type { RegistrationBroker, SourceSubscriptionBroker } from '#broker/sources/source-requests.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { DeadLetters } from '#broker/subscriptions/dead-letters.ts'
import type { SubscriptionBroker } from '#broker/subscriptions/subscription-requests.ts'
import type { Digests } from './digests.ts'

/** Called with linked entities that are not known locally, and the types that the link states. */
export type ReportLinked = (id: string, types: readonly string[]) => void

/** The requests of the HTTP room to one tenant. Reads see committed state. */
export interface TenantBroker extends Provision {
  retrieve(id: string): EntityView | undefined
  /** Present if linked entities may be at other brokers. */
  readonly linked?: ReportLinked
  /**
   * A page, synchronously if one time slice is enough. @param linked is called with entities that conditions
   * link to.
   */
  query(query: EntityQuery, linked?: ReportLinked): QueryPage | Promise<QueryPage>
  /** A page of this tenant alone; undefined if it is not found within one time slice. */
  shortQuery(query: EntityQuery): QueryPage | undefined
  /** A page of this tenant alone, found without yielding. */
  queryAtOnce(query: EntityQuery): QueryPage
  history(id: string, query: TemporalQuery): EntityHistory | undefined
  readonly temporal: TemporalBroker
  readonly subscriptions: SubscriptionBroker
  readonly forwardedSubscriptions: ForwardedSubscriptions
  readonly inventory: OwnInventory
  readonly hosted: HostedContexts
  readonly registrations: RegistrationBroker
  readonly sourceSubscriptions: SourceSubscriptionBroker
  readonly deadLetters: DeadLetters
  readonly digests: Digests
  /** The number of the last change, and when (ms) the first entity or attribute expires. */
  validity(): { readonly change: number; readonly until: number }
}

/** The tenants; the default one has the name ''. */
export interface Broker {
  tenant(name: string): TenantBroker | undefined
  /**
   * Opens the tenant, and creates it if it does not exist. @throws ngsi-ld.too-many-results at
   * `limits.tenantsMax`.
   */
  tenantForCreate(name: string): TenantBroker | Promise<TenantBroker>
}
