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

/** One observed value of an attribute instance, identified by id, name, dataset, time and value. */
export interface Observation {
  readonly id: string
  /** Canonical name of the attribute. */
  readonly name: string
  /** datasetId; '' if the instance has none. */
  readonly dataset: string
  /** observedAt, ms. */
  readonly time: number
  readonly value: Json
  /** Number of its log row. */
  readonly n: number
  /** Commit time, ms. */
  readonly committed: number
  /** Whether it did not become current, since a newer value was. */
  readonly isLate: boolean
  /** Via chain of the write; undefined if it came from a client or device of this gateway. */
  readonly via: string | undefined
}

/** An observation as history holds it. */
export type PastObservation = Pick<Observation, 'id' | 'name' | 'dataset' | 'time' | 'value'>

/** Changes of entities between two log positions; each entity occurs once, in its latest state. */
export interface ChangeBatch {
  /** Number of its last log row: the cursor to store in the same transaction as the derived data. */
  readonly through: number
  /** Commit time of that row, ms. */
  readonly at: number
  readonly changed: readonly EntityState[]
  readonly deleted: readonly string[]
  /**
   * Empty unless the follower observes. `newest`: the newest current value of each attribute instance in the
   * batch, without those of `changed`. `each`: every observation in log order, late ones included,
   * of entities that exist or left a tombstone.
   */
  readonly observed: readonly Observation[]
}

export interface Follower {
  /** Canonical names of the followed types; default: all. Deletions of all types are reported. */
  readonly types?: ReadonlySet<string> | undefined
  /**
   * Which observations are reported, of all types; left out, none. With `each`, a write that changes other
   * members of an instance repeats its observation, and so may a client that sends an observation again.
   * While the clock of the gateway is not set, times are those of that clock.
   */
  readonly observes?: 'newest' | 'each'
  /**
   * Processes a batch, which may contain nothing but a new cursor. If it throws, the same changes, or more,
   * are passed again with a growing delay. After `limits.pluginAttemptsMax` attempts the plugin is disabled.
   */
  take(batch: ChangeBatch): void | Promise<void>
  /**
   * Called if the log no longer contains the cursor: the follower reads all entities again by `entities`, and
   * missed observations by `history`, and returns the log number to continue after.
   */
  readAnew(): number | Promise<number>
}

/** The numbered log of this gateway's own broker, default tenant. */
export interface ChangesPort {
  /** Number of the last log row on disk. Read it before `entities`; follow from it after a full read. */
  position(): number
  /** Commit time of that row, ms. */
  lastCommitAt(): number
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
  /**
   * Reads the observations that history still holds of those committed within from <= ms < to: instance by
   * instance, each in order of time, in slices of at most `limits.pluginSliceObservations`. Yields between
   * slices.
   */
  history(span: { readonly from: number; readonly to: number }): AsyncIterable<readonly PastObservation[]>
}
