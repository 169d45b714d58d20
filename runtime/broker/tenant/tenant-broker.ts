/** Everything that other rooms may request from one tenant, and the tenants. */

import type { HostedContexts } from '#broker/contexts/hosted-contexts.ts'
import type { Provision } from '#broker/entities/entity-requests.ts'
import type { OwnInventory } from '#broker/entities/inventory.ts'
import type { EntityHistory, TemporalBroker, TemporalQuery } from '#broker/history/temporal-requests.ts'
import type { PassedOnBroker } from '#broker/sources/passed-subscriptions.ts'
import type { RegistrationBroker, SourceSubscriptionBroker } from '#broker/sources/source-requests.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { DeadLetters } from '#broker/subscriptions/dead-letters.ts'
import type { SubscriptionBroker } from '#broker/subscriptions/subscription-requests.ts'
import type { Digests } from './digests.ts'

/** Is told of entities that others link to and that are not known, with the types that they are said to have. */
export type Linked = (id: string, types: readonly string[]) => void

/** Everything the HTTP room may ask of one tenant. Reads see what is committed. */
export interface TenantBroker extends Provision {
  retrieve(id: string): EntityView | undefined
  /** There where linked entities may be elsewhere. */
  readonly linked?: Linked
  /** A page, at once when one turn is enough. @param linked is told of entities that conditions lead to. */
  query(query: EntityQuery, linked?: Linked): QueryPage | Promise<QueryPage>
  /** A page of this tenant alone; undefined when it is not found within one turn. */
  shortQuery(query: EntityQuery): QueryPage | undefined
  /** A page of this tenant alone, found without a pause. */
  queryAtOnce(query: EntityQuery): QueryPage
  history(id: string, query: TemporalQuery): EntityHistory | undefined
  readonly temporal: TemporalBroker
  readonly subscriptions: SubscriptionBroker
  readonly passedOn: PassedOnBroker
  readonly inventory: OwnInventory
  readonly hosted: HostedContexts
  readonly registrations: RegistrationBroker
  readonly sourceSubscriptions: SourceSubscriptionBroker
  readonly deadLetters: DeadLetters
  readonly digests: Digests
}

/** The tenants; the default one has the name ''. */
export interface Broker {
  tenant(name: string): TenantBroker | undefined
  /** Opens the tenant, making it when it does not exist. @throws ngsi-ld.too-many-results at `limits.tenantsMax`. */
  tenantForCreate(name: string): TenantBroker | Promise<TenantBroker>
}
