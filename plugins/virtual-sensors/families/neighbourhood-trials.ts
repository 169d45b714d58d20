/**
 * The data of an ONNX model for a place without a history: plain, so that they cross to a worker thread and
 * are stored as JSON.
 */
import type { IntervalModel } from './intervals.ts'
import type { NeighbourhoodScale } from './neighbourhood-features.ts'

/** The part of the input rows that depends on the place alone. */
export interface PlaceNeighbourhood {
  /** Indices of the sources of a row, nearest first. */
  readonly nearest: readonly number[]
  readonly scale: NeighbourhoodScale
  /** The usual value of each of them. */
  readonly means: readonly number[]
}

/** An ONNX model that takes part in the predictions. */
export interface NeighbourhoodMember {
  readonly model: string
  readonly sha256: string
  /** The rest of the estimate is that of the other members. */
  readonly share: number
  /** Root mean square error in validation. */
  readonly error: number
  readonly interval: IntervalModel
}

/** A source as the place of an estimation. */
export interface SourceTrial {
  readonly source: number
  readonly truth: number
  /** The estimate of the built-in families. */
  readonly blended: number
  readonly spread: number
  readonly scale: NeighbourhoodScale
}

export interface Trials {
  readonly trials: readonly SourceTrial[]
  /** The input row of each trial, one after the other. */
  readonly rows: Float32Array
}
