/**
 * The values that cross the broker's door: who writes, what a use-case answers, how an entity is read.
 */
import type { Json } from '#contract/pipeline.ts'
import type { AggregateMethod } from '#ngsi-ld/aggregate.ts'
import type { Duration } from '#ngsi-ld/duration.ts'
import type { Attribute, AttributeInstance, Entity, Fragment } from '#ngsi-ld/entity.ts'
import type { GeoQuery } from '#ngsi-ld/geo.ts'
import type { JsonObject } from '#ngsi-ld/json.ts'
import type { MergeOptions } from '#ngsi-ld/merge.ts'
import type { OwedEntity } from '#ngsi-ld/notification-data.ts'
import type { EntityOrder } from '#ngsi-ld/order.ts'
import type { Pattern } from '#ngsi-ld/pattern.ts'
import type { QueryTree } from '#ngsi-ld/query.ts'
import type { Registration, RegistrationView } from '#ngsi-ld/registration.ts'
import type { Discovery } from '#ngsi-ld/registration-match.ts'
import type { Stamps } from '#ngsi-ld/representation.ts'
import type { ScopeQuery } from '#ngsi-ld/scope-query.ts'
import type { EntitySelector, TypeSelection } from '#ngsi-ld/selection.ts'
import type { SourceSubscription } from '#ngsi-ld/source-subscription.ts'
import type { WrittenTimes } from '#ngsi-ld/stated.ts'
import type { Subscription } from '#ngsi-ld/subscription.ts'
import type { TemporalSelection } from '#ngsi-ld/temporal.ts'
import type { TemporalEntity, TemporalFragment } from '#ngsi-ld/temporal-entity.ts'
import type { CutEvolution } from '#ngsi-ld/temporal-part.ts'
import type { ViaOrigin } from '#ngsi-ld/via.ts'
import type { SourceCopyRow } from '#store/context-sources.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Digests } from './digests.ts'
import type { HostedContexts } from './hosted-contexts.ts'
import type { OwnInventory } from './inventory.ts'
import type { PassedOnBroker } from './passed-on.ts'

/** By whose hand a change was made; kept in the log. */
export type Origin = 'http' | 'mqtt' | 'provisioning' | 'plugin' | 'import' | 'expiry' | ViaOrigin

/**
 * createdAt and modifiedAt (ms) of an entity and of its attribute instances, keyed `name` or `name datasetId`. What was
 * written through other brokers names their chain; '' stands for the entity itself where it was created that way.
 */
export interface SystemTimes {
  readonly created: number
  readonly modified: number
  readonly attributes: Readonly<Record<string, Stamps>>
}

/** A stored entity with its newest values laid over it. Reading it is lazy: text costs nothing when nothing is newer. */
export interface EntityView {
  readonly id: string
  /** The document as JSON text: core-compacted, normalized, without system attributes and @context. */
  text(): string
  entity(): Entity
  times(): SystemTimes
  /** Number of its last change: another one whenever the entity became something else. */
  version(): number
}

/** What must hold of the entity for a write to take place. */
export interface Precondition {
  /** Types it has to have; else it is as if it were not there. */
  readonly selection?: TypeSelection | undefined
  /** Versions of which it has to be one. @see EntityView.version */
  readonly versions?: ReadonlySet<number> | undefined
}

/** By whose hand an entity is written, and on which condition. */
export interface WriteOptions {
  readonly by: Origin
  readonly when?: Precondition | undefined
}

/** Attribute names (core-compacted) that changed and those refused (GS CIM 009, 5.2.18). */
export interface UpdateResult {
  readonly updated: readonly string[]
  readonly notUpdated: readonly { readonly attributeName: string; readonly reason: string }[]
}

/** An array, or what makes its parts when they are asked for: a part may be shorter than asked for, but not empty. */
export interface Items<T> {
  readonly length: number
  slice(from: number, to: number): readonly T[] | Promise<readonly T[]>
}

export interface BatchItemError {
  readonly entityId: string
  readonly error: unknown
}

/** Outcome per item (GS CIM 009, 5.2.17). `created` is the subset of `success` that did not exist before. */
export interface BatchResult {
  readonly success: readonly string[]
  readonly created: readonly string[]
  readonly errors: readonly BatchItemError[]
}

export interface QueryPage {
  readonly entities: readonly EntityView[]
  /** All that match, when count was asked for. */
  readonly count?: number
  /** True when more follow after this page. */
  readonly more: boolean
  /** Position behind the last entity. */
  readonly next?: string | undefined
  /** How many of the list the page covers, where lists have no positions: fewer than its limit when they are large. */
  readonly taken?: number | undefined
}

/** What the HTTP room (and later plugins) may ask of one tenant's broker. Every promise settles when on disk. */
export interface Provision {
  create(entity: Entity, by: Origin): Promise<void>
  /** POST attrs: adds; existing ones are replaced unless `noOverwrite`. */
  append(
    id: string,
    fragment: Fragment,
    options: WriteOptions & { readonly noOverwrite: boolean },
  ): Promise<UpdateResult>
  /** PATCH attrs: replaces; a missing attribute is appended or refused by the conformance profile. */
  update(
    id: string,
    fragment: Fragment,
    options: WriteOptions & { readonly appendMissing: boolean },
  ): Promise<UpdateResult>
  /** PATCH entity: merges members and values recursively. */
  merge(
    id: string,
    fragment: Fragment,
    options: WriteOptions & { readonly merge: MergeOptions },
  ): Promise<void>
  /** PUT entity: nothing of the old one remains but the time of its creation. */
  replace(entity: Entity, options: WriteOptions): Promise<void>
  /** PATCH attrs/{name}: overwrites given members of one instance, keeps the others. */
  partial(
    id: string,
    name: string,
    instance: Readonly<Record<string, Json | undefined>>,
    options: WriteOptions,
  ): Promise<void>
  /** PUT attrs/{name}: replaces whole instances that are there. */
  replaceAttribute(id: string, name: string, attribute: Attribute, options: WriteOptions): Promise<void>
  deleteAttribute(
    id: string,
    name: string,
    options: WriteOptions & { readonly datasetId?: string | undefined; readonly deleteAll: boolean },
  ): Promise<void>
  remove(id: string, by: Origin, when?: Precondition): Promise<void>
  batchCreate(entities: Items<Entity>, by: Origin): Promise<BatchResult>
  batchUpsert(entities: Items<Entity>, options: UpsertOptions): Promise<BatchResult>
  batchUpdate(entities: Items<Entity>, options: { noOverwrite: boolean; by: Origin }): Promise<BatchResult>
  batchMerge(entities: Items<Entity>, by: Origin): Promise<BatchResult>
  batchDelete(ids: readonly string[], by: Origin): Promise<BatchResult>
  /** Deletes what matches, whatever its page, or attributes of it. */
  purge(query: EntityQuery, options: PurgeOptions): Promise<BatchResult>
}

export interface UpsertOptions {
  /** Attributes are added to an entity that exists; else it is replaced. */
  readonly update: boolean
  readonly by: Origin
  /** What another gateway states about the items. */
  readonly stated?:
    | {
        /** The types of an item are all that its entity has. */
        readonly types: boolean
        /** When the instances of an item were written first. */
        readonly written: (entity: Entity) => WrittenTimes | undefined
      }
    | undefined
}

/** Attributes that a purge removes, or those that it leaves; without either the whole entity goes. */
export interface PurgeOptions {
  readonly by: Origin
  readonly keep?: ReadonlySet<string> | undefined
  readonly drop?: ReadonlySet<string> | undefined
}

/** What a query asks for; names core-compacted, members joined by AND, absent ones do not restrict. */
export interface EntityQuery {
  readonly selection?: TypeSelection | undefined
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: Pattern | undefined
  /** Entities that at least one of these means. */
  readonly selectors?: readonly EntitySelector[] | undefined
  readonly scope?: ScopeQuery | undefined
  /** Entities that have at least one of these attributes. */
  readonly attrs?: readonly string[] | undefined
  readonly q?: QueryTree | undefined
  readonly geo?: GeoQuery | undefined
  /** Without one, in order of creation. */
  readonly order?: EntityOrder | undefined
  readonly limit: number
  readonly offset: number
  /** Only what stands behind this position, the `next` of an earlier page; `offset` does not count then. */
  readonly after?: string | undefined
  readonly count: boolean
}

/** What a retrieval of history asks for. Times are ms UTC. */
export interface TemporalQuery extends TemporalSelection {
  /** Attributes to read; left out, all. `scope` stands for the scopes. */
  readonly attrs?: ReadonlySet<string> | undefined
  /** Instances to read by datasetId, `@none` for those without. */
  readonly datasets?: ReadonlySet<string> | undefined
  /** The newest N instances of each attribute. */
  readonly lastN?: number | undefined
  /** Only what has no observedAt. */
  readonly unobserved?: boolean
  /** Most instances of each attribute: the oldest ones, with `lastN` the newest ones. */
  readonly limit: number
  /** Called between turns; what it throws ends the reading. */
  readonly goOn?: (() => void) | undefined
}

/** History of one entity. Instances are in ascending order of the time property, whatever `lastN` selected. */
export interface EntityHistory extends CutEvolution {
  /** The document as it is, or as it was last. */
  readonly entity: Entity
}

/** Aggregates of one entity: per attribute one entry for each kind and datasetId. */
export interface EntityAggregates {
  readonly id: string
  readonly type: string | readonly string[]
  readonly attributes: ReadonlyMap<string, readonly JsonObject[]>
}

/** How history is to be summed up. */
export interface AggregateQuery extends TemporalQuery {
  readonly methods: ReadonlySet<AggregateMethod>
  readonly duration?: Duration | undefined
}

export interface TemporalPage<Found> {
  readonly found: readonly Found[]
  readonly count?: number | undefined
  readonly more: boolean
}

/** The use-cases on temporal entities of one tenant (GS CIM 009, 5.6.11 to 5.6.16, 5.7.3, 5.7.4). */
export interface TemporalBroker {
  /** Summing up goes in turns, so that others pass. */
  aggregate(id: string, query: AggregateQuery): Promise<EntityAggregates | undefined>
  search(search: EntityQuery, query: TemporalQuery): Promise<TemporalPage<EntityHistory>>
  searchAggregates(search: EntityQuery, query: AggregateQuery): Promise<TemporalPage<EntityAggregates>>
  /** Creates a temporal entity, or adds to the one there is. */
  put(entity: TemporalEntity, by: Origin): Promise<'created' | 'extended'>
  append(id: string, fragment: TemporalFragment, by: Origin): Promise<void>
  /** With a selection only where the entity has, or last had, such types. */
  remove(id: string, by: Origin, selection?: TypeSelection): Promise<void>
  removeAttribute(
    id: string,
    name: string,
    options: { datasetId?: string | undefined; deleteAll: boolean; by: Origin },
  ): Promise<void>
  replaceInstance(id: string, name: string, instanceId: string, instance: AttributeInstance): Promise<void>
  removeInstance(id: string, name: string, instanceId: string): Promise<void>
}

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
  readonly owed: OwedEntity
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

/** The use-cases on registrations of context sources of one tenant. Every promise settles when on disk. */
export interface RegistrationBroker {
  /** @throws ngsi-ld.already-exists, ngsi-ld.conflict, ngsi-ld.too-many-results at `limits.registrationsMax`. */
  create(registration: Registration): Promise<void>
  get(id: string): RegistrationView | undefined
  /** Costs nothing: asked before every distributed operation. */
  isEmpty(): boolean
  /** Those that have not expired, in order of creation. */
  live(): readonly RegistrationView[]
  discover(
    discovery: Discovery,
    page: { limit: number; offset: number },
  ): { views: readonly RegistrationView[]; count: number }
  /** Applies a parsed fragment. @throws ngsi-ld.not-found, ngsi-ld.conflict, ngsi-ld.bad-request-data. */
  patch(id: string, change: (before: Registration) => Registration): Promise<void>
  /** @throws ngsi-ld.not-found */
  delete(id: string): Promise<void>
  /** Takes down what became of a request to the source. */
  outcome(id: string, isSuccess: boolean): void
  readonly copies: KeptCopies
}

/** What sources told last, as it outlives a restart. */
export interface KeptCopies {
  /** The oldest first. */
  stored(): readonly SourceCopyRow[]
  put(copy: SourceCopyRow): void
  drop(key: string): void
}

/** The use-cases on subscriptions to registrations; as those on other subscriptions. */
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
