/**
 * The content of `model.json`, which describes an ONNX model: what its tensors mean, how its inputs are
 * scaled, and to which streams it applies. Its format is in docs/guides/models.md. Rules that need more than
 * one value are in `model-mistakes.ts`.
 */
import type * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { maybe } from './setting.ts'
import * as kind from './value-kinds.ts'

const widthMax = limits.modelRowNumbersMax.value

const tensor = kind.groupOf('a group with name and shape', {
  name: kind.text(128),
  /** Sizes of the dimensions. The first one, the number of rows, is null. */
  shape: kind.tensorShape(widthMax),
  /** Label of the observable property; left out if the tensor mixes several. */
  property: maybe(kind.text(256)),
  /** UN/CEFACT common code. */
  unit: maybe(kind.text(32)),
})

const tensors = kind.filledListOf('tensors', limits.modelTensorsMax.value, tensor)

const numbers = kind.filledListOf('numbers', widthMax, kind.finiteNumber())

/** The streams that a model applies to: exactly one of the three. */
export const modelAssignment = {
  /** Observable property. Its label. */
  property: maybe(kind.text(256)),
  /** Stream. Id of its entity. */
  stream: maybe(kind.text(1024)),
  /** Query. Selects the streams whose entities match it (NGSI-LD query language). */
  q: maybe(kind.text(1024)),
}

export const modelSchema = kind.groupOf('a JSON object', {
  name: kind.modelName(),
  version: kind.text(64),
  kind: kind.oneOf('fault', 'virtual-sensor', 'pattern'),
  inputs: tensors,
  outputs: tensors,
  /** The window of values that makes one row. */
  window: maybe(
    kind.groupOf('a group with length and stepSeconds', {
      length: kind.wholeNumber(1, widthMax),
      stepSeconds: kind.seconds(),
    }),
  ),
  /** Applied to each input number: (number - mean) / deviation. */
  scaler: maybe(
    kind.groupOf('a group with mean and deviation', {
      mean: numbers,
      deviation: kind.filledListOf('numbers greater than 0', widthMax, kind.above0('')),
    }),
  ),
  /** Least and greatest input number of the training data, before scaling. */
  trainedRange: maybe(kind.filledListOf('pairs of least and greatest number', widthMax, kind.range())),
  assign: maybe(kind.groupOf('a group with one of property, stream and q', modelAssignment)),
  licence: kind.text(256),
  /** SHA-256 of model.onnx. */
  sha256: kind.digest(),
})

/** A checked `model.json`. */
export type ModelDocument = v.InferOutput<typeof modelSchema>
