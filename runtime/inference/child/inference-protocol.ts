/** Messages between the gateway and its inference process. One request is in flight at a time. */
import type { ErrorCode } from '#base/register/errors.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'

export type ToInference =
  /** Checks the files of a folder, and loads the model under a key. */
  | {
      readonly kind: 'load'
      readonly key: string
      readonly folder: string
      readonly document: ModelDocument
    }
  /** Runs a loaded model on rows of numbers. */
  | { readonly kind: 'run'; readonly key: string; readonly rows: number; readonly inputs: Float32Array }
  | { readonly kind: 'unload'; readonly key: string }
  /** Measures a loaded model inside the process. */
  | { readonly kind: 'measure'; readonly key: string }

/** Times in microseconds. */
export interface ModelTimes {
  /** One call with one row. */
  readonly p50: number
  readonly p99: number
  /** One row of a call with `batchRows` rows. */
  readonly batchedRow: number
  readonly batchRows: number
}

export type InferenceAnswer =
  | { readonly kind: 'loaded' | 'unloaded' }
  | { readonly kind: 'outputs'; readonly outputs: Float32Array }
  | { readonly kind: 'measured'; readonly times: ModelTimes }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string }

/** An answer with the resident memory of the process, bytes. */
export type FromInference = InferenceAnswer & { readonly resident: number }
