/** Requests that read and write entities of one tenant, and their results (GS CIM 009, 5.6 and 5.7). */

import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { Origin } from '#broker/state/stored-entity.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Attribute } from '#ngsi-ld/entity/attribute.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import type { MergeOptions } from '#ngsi-ld/entity/merge.ts'
import type { WrittenTimes } from '#ngsi-ld/federation/uplink-statements.ts'
import type { TypeSelection } from '#ngsi-ld/query/entity-selector.ts'

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
