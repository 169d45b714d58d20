/**
 * Messages between the main thread and the writer thread. At most one group is in flight per tenant.
 */
import type { BootTime } from '#base/time/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Synchronous } from '#store/file/database.ts'
import type { EntityFold, StreamFold } from '#store/history/fold.ts'
import type { WriteRow } from './write-statements.ts'

/** A log row of observations; `triples` is transferred. */
export interface BlobMessage {
  readonly n: number
  readonly at: number
  /** Via chain of the observations. */
  readonly via: string | undefined
  readonly triples: Float64Array
  readonly others: readonly (readonly [position: number, value: Json])[]
  /** The clock of the times, if it was not set. */
  readonly unset: BootTime | undefined
}

export interface GroupMessage {
  readonly kind: 'group'
  readonly tenant: string
  /**
   * WAL size in bytes at which it is checkpointed; 0 when disk space is short, so that it is also truncated.
   */
  readonly walBytesMax: number
  /** Bytes of disk space that the group leaves; 0 for groups of upkeep and deletions alone. */
  readonly keptBytes: number
  readonly rows: readonly WriteRow[]
  readonly blobs: readonly BlobMessage[]
  readonly streamFolds: readonly StreamFold[]
  readonly entityFolds: readonly EntityFold[]
}

export interface OpenMessage {
  readonly kind: 'open'
  readonly tenant: string
  readonly file: string
  readonly synchronous: Synchronous
}

/** Requests a checkpoint of a file that the main thread writes. Its path takes the place of the tenant. */
export interface CopyBackMessage {
  readonly kind: 'copyBack'
  readonly tenant: string
}

export type ToWriter =
  | OpenMessage
  | GroupMessage
  | CopyBackMessage
  | { readonly kind: 'close'; readonly tenant: string }

export type FromWriter =
  | { readonly kind: 'opened' | 'closed'; readonly tenant: string }
  | { readonly kind: 'copied'; readonly tenant: string; readonly isEnded: boolean }
  | { readonly kind: 'written'; readonly tenant: string; readonly chunks: number; readonly logBytes: number }
  | { readonly kind: 'failed'; readonly tenant: string; readonly code: string; readonly message: string }
