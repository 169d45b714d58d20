/** The change log as plugins follow it. */
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Json } from './pipeline.ts'

/** The current state of an entity: core-compacted, normalized, with the newest values. */
export interface EntityState {
  /** Increases with each created entity; never reused. */
  readonly rid: number
  readonly id: string
  /** Canonical names. */
  readonly types: readonly string[]
  entity(): Entity
  /** The entity as JSON text; cheap if no value is newer than the stored document. */
  text(): string
  /** createdAt and modifiedAt, ms; for attribute instances the key is `name` or `name datasetId`. */
  times(): {
    readonly created: number
    readonly modified: number
    readonly attributes: Readonly<
      Record<string, readonly [created: number, modified: number, via?: string | undefined]>
    >
  }
}

/** A value that became current. */
export interface ObservedValue {
  readonly id: string
  /** Canonical name of the attribute. */
  readonly name: string
  /** ms */
  readonly time: number
  readonly value: Json
}

/** Changes of entities between two log positions; each entity occurs once, in its latest state. */
export interface ChangeBatch {
  /** Number of its last log row: the cursor to store in the same transaction as the derived data. */
  readonly through: number
  /** Commit time of that row, ms. */
  readonly at: number
  readonly changed: readonly EntityState[]
  readonly deleted: readonly string[]
  /** Only if the follower observes: the newest value of each attribute instance in the batch. */
  readonly observed: readonly ObservedValue[]
}

export interface Follower {
  /** Canonical names of the followed types; default: all. Deletions of all types are reported. */
  readonly types?: ReadonlySet<string> | undefined
  /** Whether observed values of all types are reported. If not, observations cause no batch. */
  readonly observes?: boolean
  /**
   * Processes a batch. If it throws, the same changes, or more, are passed again with a growing delay; after
   * `limits.pluginAttemptsMax` attempts the plugin is quarantined.
   */
  take(batch: ChangeBatch): void | Promise<void>
  /**
   * Called if the log no longer contains the cursor: the follower reads all entities again by `entities` and
   * returns the log number to continue after.
   */
  readAnew(): number | Promise<number>
}

/** The numbered log of this gateway's own broker, default tenant. */
export interface ChangesPort {
  /** Number of the last log row on disk. Read it before `entities`; follow from it after a full read. */
  position(): number
  /**
   * Current states of the first entities after a rid, in order of creation. Slices of up to 256 do not stall
   * the event loop.
   */
  entities(behind: number, limit: number): readonly EntityState[]
  entity(id: string): EntityState | undefined
  /**
   * Follows the log after a number: at least once, in order, soon after each commit, `limits.pluginBatchRows`
   * log rows at most per batch.
   */
  follow(from: number, follower: Follower): { close(): void }
}
