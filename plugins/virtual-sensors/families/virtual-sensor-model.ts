/**
 * Input and result of the training of a virtual sensor: plain data, so that it crosses to a worker thread
 * and a model can be stored as JSON.
 */
import type { Readings } from '#plugins/virtual-sensors/sources/slots.ts'
import type { IntervalModel } from './intervals.ts'
import type { Member, ModelBase } from './members.ts'
import type { NeighbourhoodMember, PlaceNeighbourhood, Trials } from './neighbourhood-trials.ts'

export interface SourceSeries extends Readings {
  readonly id: string
  /** From the place of the virtual sensor, in metres. */
  readonly distance: number
  readonly latitude: number
  readonly longitude: number
}

/** The place of the virtual sensor, and the readings of the sensor that it replaces, if there is one. */
export interface Target extends Partial<Readings> {
  readonly latitude: number
  readonly longitude: number
}

export interface ValueBounds {
  readonly min?: number
  readonly max?: number
}

export interface TrainingInput {
  readonly target: Target
  readonly sources: readonly SourceSeries[]
  /** The broken sensor's own interval. */
  readonly slotMs: number
  readonly range?: ValueBounds
  /** Whether an ONNX model is assigned that is a candidate without a history. */
  readonly triesModel?: boolean
}

export interface WeightedMember {
  /** The name of the family, such as `ridge`. */
  readonly family: string
  readonly weight: number
  readonly member: Member
}

export interface VirtualSensorModel extends ModelBase {
  /** The name of the family, or `blend`. */
  readonly family: string
  /** Ids of the sources that the model uses, in the order in which `predict` takes their values. */
  readonly sources: readonly string[]
  /** How long the last known value of each source is used, in milliseconds. */
  readonly holdMs: readonly number[]
  readonly slotMs: number
  /** The predictions of the members, added up by weight. */
  readonly members: readonly WeightedMember[]
  /** Root mean square error in validation. */
  readonly error: number
  readonly interval: IntervalModel
  /** The share of `holdMs` after which a value counts as an earlier value only; 1 if absent. */
  readonly freshShare?: number
  /** Slots that the training used. */
  readonly rows: number
  readonly range: ValueBounds
  /** The input of an ONNX model, where one was tried. */
  readonly neighbourhood?: PlaceNeighbourhood
  /** The ONNX model, where validation chose it. */
  readonly onnx?: NeighbourhoodMember
}

export type TrainingFailure = 'no-source' | 'no-correlating-source' | 'not-enough-data'

export type TrainingOutcome =
  /** With trials if an ONNX model is a candidate. */
  | { readonly model: VirtualSensorModel; readonly trials?: Trials | undefined }
  | { readonly failure: TrainingFailure }
