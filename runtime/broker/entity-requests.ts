/** Requests that read and write entities of one tenant, and their results (GS CIM 009, 5.6 and 5.7). */

import type { Json } from '#contract/pipeline.ts'
import type { Attribute, Entity, Fragment } from '#ngsi-ld/entity.ts'
import type { GeoQuery } from '#ngsi-ld/geo.ts'
import type { MergeOptions } from '#ngsi-ld/merge.ts'
import type { EntityOrder } from '#ngsi-ld/order.ts'
import type { Pattern } from '#ngsi-ld/pattern.ts'
import type { QueryTree } from '#ngsi-ld/query.ts'
import type { ScopeQuery } from '#ngsi-ld/scope-query.ts'
import type { EntitySelector, TypeSelection } from '#ngsi-ld/selection.ts'
import type { WrittenTimes } from '#ngsi-ld/stated.ts'
import type { EntityView, Origin } from './stored-entity.ts'

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
