/** ONNX models as plugins use them. A process of its own runs them and may end; then calls fail. */
import type { ModelDocument } from '#config/schema/model-schema.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

export type ModelKind = ModelDocument['kind']

/** A model that passed the checks of its description; its other files are checked at the first call. */
export interface ModelDescription
  extends Pick<
    ModelDocument,
    'name' | 'version' | 'kind' | 'inputs' | 'outputs' | 'window' | 'trainedRange'
  > {
  /** SHA-256 of its ONNX file. */
  readonly sha256: string
  /** Numbers of one row of all inputs. */
  readonly inputNumbers: number
  /** Numbers of one row of all outputs. */
  readonly outputNumbers: number
  /** Whether the model scales its inputs itself; else the caller standardizes them. */
  readonly isScaled: boolean
}

/** The stream for which a model is needed. */
export interface ModelSubject {
  readonly kind: ModelKind
  /** Label of its observable property. */
  readonly property?: string | undefined
  /** Id of its entity. */
  readonly stream?: string | undefined
  /** Its entity, core-compacted and normalized, for models that are assigned by a query. */
  readonly entity?: Entity | undefined
}

/** A linear model that was fitted on this gateway: output = intercept + sum of coefficient x scaled input. */
export interface LinearModel {
  readonly name: string
  readonly version: string
  readonly kind: ModelKind
  readonly coefficients: readonly number[]
  readonly intercept: number
  /** Each input is (number - mean) / deviation; left out, inputs are not scaled. */
  readonly scaler?: { readonly mean: readonly number[]; readonly deviation: readonly number[] } | undefined
  readonly trainedRange?: readonly (readonly [least: number, greatest: number])[] | undefined
  /** Id of the stream that it is for. */
  readonly stream?: string | undefined
  readonly property?: string | undefined
  readonly unit?: string | undefined
  readonly licence: string
  /** Text of card.md: data, method and evaluation. */
  readonly card: string
  /** Input rows whose outputs are computed here and compared with those of the ONNX runtime. */
  readonly examples: readonly (readonly number[])[]
}

/** An ONNX file without a folder; its description is made from the graph. */
export interface ModelFile {
  readonly name: string
  readonly kind: ModelKind
  readonly file: Uint8Array
  /** Numbers of one row of its only input. */
  readonly inputNumbers: number
  readonly licence: string
  /** Text of card.md. */
  readonly card: string
}

export interface ModelsPort {
  /**
   * The model that is assigned to a stream: by the settings, else by the models themselves; a model for the
   * stream before one by query, and this before one for its property.
   */
  assigned(subject: ModelSubject): ModelDescription | undefined
  /** Calls the listener whenever models were added, changed, removed or refused. */
  onChange(listener: () => void): { close(): void }
  /**
   * Runs a model on rows of numbers. Rows of calls that wait for the same model are joined to one batch.
   * @returns the rows of its outputs.
   * @throws GatewayError model.not-found, model.invalid, model.failed; inference.ended, inference.paused or
   * inference.no-runtime if the process does not run; inference.busy if too much is queued. The caller goes
   * on with its built-in method.
   */
  run(name: string, inputs: Float32Array, rows: number): Promise<Float32Array>
  /**
   * Stores a linear model as an ONNX model of this gateway; it replaces one of this name. Before, the ONNX
   * runtime must give the outputs that are computed here.
   */
  storeLinear(model: LinearModel): Promise<ModelDescription>
  /** The description of a model that can be used. */
  described(name: string): ModelDescription | undefined
  /**
   * Stores an ONNX file with one input and one float32 output as a model of this gateway, after the checks of
   * a folder. Its author gave no golden vectors: one row must have finite outputs.
   * @throws GatewayError model.invalid, model.too-many; inference errors if the process does not run.
   */
  storeFile(model: ModelFile): Promise<ModelDescription>
  /** Removes a model that was stored. @throws model.not-found, model.shipped */
  remove(name: string): Promise<void>
}
