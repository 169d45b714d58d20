/** Requests on the history of entities (GS CIM 009, 5.6.11 to 5.6.16, 5.7.3, 5.7.4), and their results. */

import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { ChangeOrigin } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import type { TemporalEntity, TemporalFragment } from '#ngsi-ld/history/temporal-entity.ts'
import type { CutEvolution } from '#ngsi-ld/history/temporal-part.ts'
import type { TemporalSelection } from '#ngsi-ld/history/temporal-query.ts'
import type { TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { Duration } from '#ngsi-ld/values/duration.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

/** The parameters of a retrieval of history. Times are ms UTC. */
export interface TemporalQuery extends TemporalSelection {
  /** Attributes to read; all by default. `scope` selects the scopes. */
  readonly attrs?: ReadonlySet<string> | undefined
  /** Instances to read by datasetId; `@none` selects those without. */
  readonly datasets?: ReadonlySet<string> | undefined
  /** The newest N instances of each attribute. */
  readonly lastN?: number | undefined
  /** Only instances without observedAt. */
  readonly unobserved?: boolean
  /** Maximum number of instances per attribute: the oldest ones, with `lastN` the newest ones. */
  readonly limit: number
  /** Maximum approximate size of the instances found; beyond it `LargeHistory` is thrown. */
  readonly bytesMax?: number | undefined
  /** Called between time slices; an exception ends the reading. */
  readonly goOn?: (() => void) | undefined
}

/** Thrown for a query whose instances exceed its `bytesMax`. */
export class LargeHistory extends Error {}

/**
 * History of one entity. Instances are in ascending order of the time property, whatever `lastN` selected.
 */
export interface EntityHistory extends CutEvolution {
  /** The current document, or the last one of a deleted entity. */
  readonly entity: Entity
  /** True if no instance was omitted because it lacks the time property. */
  readonly allTimed?: boolean
}

/** Aggregates of one entity: per attribute one entry for each kind and datasetId. */
export interface EntityAggregates {
  readonly id: string
  readonly type: string | readonly string[]
  readonly attributes: ReadonlyMap<string, readonly JsonObject[]>
}

/** The parameters of an aggregation. */
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
  /** Aggregates in time slices and yields in between. */
  aggregate(id: string, query: AggregateQuery): Promise<EntityAggregates | undefined>
  search(search: EntityQuery, query: TemporalQuery): Promise<TemporalPage<EntityHistory>>
  searchAggregates(search: EntityQuery, query: AggregateQuery): Promise<TemporalPage<EntityAggregates>>
  /** Creates a temporal entity, or adds to an existing one. */
  put(entity: TemporalEntity, by: ChangeOrigin): Promise<'created' | 'extended'>
  append(id: string, fragment: TemporalFragment, by: ChangeOrigin): Promise<void>
  /** With a selection only if the entity has, or last had, such types. */
  remove(id: string, by: ChangeOrigin, selection?: TypeSelection): Promise<void>
  removeAttribute(
    id: string,
    name: string,
    options: { datasetId?: string | undefined; deleteAll: boolean; by: ChangeOrigin },
  ): Promise<void>
  replaceInstance(id: string, name: string, instanceId: string, instance: AttributeInstance): Promise<void>
  removeInstance(id: string, name: string, instanceId: string): Promise<void>
}
