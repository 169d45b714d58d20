/** Requests that read and write entities of one tenant, and their results (GS CIM 009, 5.6 and 5.7). */

import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { ChangeOrigin } from '#broker/state/stored-entity.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Attribute } from '#ngsi-ld/entity/attribute.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import type { MergeOptions } from '#ngsi-ld/entity/merge.ts'
import type { WrittenTimes } from '#ngsi-ld/federation/uplink-statements.ts'
import type { TypeSelection } from '#ngsi-ld/query/entity-selector.ts'

/** A condition on the entity; the write is refused if it does not hold. */
export interface Precondition {
  /** Required types; an entity without them counts as not found. */
  readonly selection?: TypeSelection | undefined
  /** Accepted versions. @see EntityView.version */
  readonly versions?: ReadonlySet<number> | undefined
}

/** The origin and condition of a write. */
export interface WriteOptions {
  readonly by: ChangeOrigin
  readonly when?: Precondition | undefined
}

/** Attribute names (core-compacted) that changed and those refused (GS CIM 009, 5.2.18). */
export interface UpdateResult {
  readonly updated: readonly string[]
  readonly notUpdated: readonly { readonly attributeName: string; readonly reason: string }[]
}

/**
 * An array, or a source that creates its parts on demand: a part may be shorter than requested, but not
 * empty.
 */
export interface ItemSource<T> {
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

/** The write operations of one tenant's broker. Every promise settles when the write is on disk. */
export interface Provision {
  create(entity: Entity, by: ChangeOrigin): Promise<void>
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
  /** PUT entity: replaces everything except the creation time. */
  replace(entity: Entity, options: WriteOptions): Promise<void>
  /** PATCH attrs/{name}: overwrites the given members of one instance, keeps the others. */
  partial(
    id: string,
    name: string,
    instance: Readonly<Record<string, Json | undefined>>,
    options: WriteOptions,
  ): Promise<void>
  /** PUT attrs/{name}: replaces existing instances as a whole. */
  replaceAttribute(id: string, name: string, attribute: Attribute, options: WriteOptions): Promise<void>
  deleteAttribute(
    id: string,
    name: string,
    options: WriteOptions & { readonly datasetId?: string | undefined; readonly deleteAll: boolean },
  ): Promise<void>
  remove(id: string, by: ChangeOrigin, when?: Precondition): Promise<void>
  batchCreate(entities: ItemSource<Entity>, by: ChangeOrigin): Promise<BatchResult>
  batchUpsert(entities: ItemSource<Entity>, options: UpsertOptions): Promise<BatchResult>
  batchUpdate(
    entities: ItemSource<Entity>,
    options: { noOverwrite: boolean; by: ChangeOrigin },
  ): Promise<BatchResult>
  batchMerge(entities: ItemSource<Entity>, by: ChangeOrigin): Promise<BatchResult>
  batchDelete(ids: readonly string[], by: ChangeOrigin): Promise<BatchResult>
  /** Deletes all matching entities, regardless of pages, or some of their attributes. */
  purge(query: EntityQuery, options: PurgeOptions): Promise<BatchResult>
}

export interface UpsertOptions {
  /** True adds attributes to an existing entity; false replaces the entity. */
  readonly update: boolean
  readonly by: ChangeOrigin
  /** Facts about the items that another gateway states. */
  readonly stated?:
    | {
        /** The types of an item are all types of its entity. */
        readonly types: boolean
        /** When the instances of an item were first written. */
        readonly written: (entity: Entity) => WrittenTimes | undefined
      }
    | undefined
}

/** Attributes that a purge deletes (`drop`) or keeps (`keep`); without either it deletes the whole entity. */
export interface PurgeOptions {
  readonly by: ChangeOrigin
  readonly keep?: ReadonlySet<string> | undefined
  readonly drop?: ReadonlySet<string> | undefined
}
