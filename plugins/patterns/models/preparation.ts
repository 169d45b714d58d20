/**
 * The preparation of features that a trained model carries: standardization by means and scales of its
 * training data, and optionally a projection on its principal axes. Thus a window is prepared exactly as the
 * training data were. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { itemsIn, matrixIn, objectIn, positiveIn, vectorIn } from './model-json.ts'

export interface Preparation {
  readonly means: Float64Array
  readonly scales: Float64Array
  /** One row per axis; without axes the standardized features are used. */
  readonly axes?: readonly Float64Array[] | undefined
}

export const preparedCountOf = ({ means, axes }: Preparation): number => axes?.length ?? means.length

export function prepare({ means, scales, axes }: Preparation, features: Float64Array): Float64Array {
  const standardized = features.map((value, i) => (value - means[i]!) / scales[i]!)
  if (axes === undefined) return standardized
  return Float64Array.from(axes, (axis) =>
    axis.reduce((sum, weight, i) => sum + weight * standardized[i]!, 0),
  )
}

/** @throws ngsi-ld.bad-request-data with the path of the mistake */
export function parsePreparation(json: Json, path: string): Preparation {
  const object = objectIn({ json, path }, ['means', 'scales', 'axes'])
  const means = vectorIn({ json: object['means'], path: `${path}.means` }, features)
  const same = { least: means.length, most: means.length, what: 'numbers' }
  const scales = Float64Array.from(
    itemsIn({ json: object['scales'], path: `${path}.scales` }, same),
    positiveIn,
  )
  if (object['axes'] === undefined) return { means, scales }
  const rows = { most: means.length, what: 'axes' }
  const axes = matrixIn({ json: object['axes'], path: `${path}.axes` }, rows, same)
  return { means, scales, axes }
}

/** The length of every vector of features. */
export const features = { most: limits.patternFeaturesMax.value, what: 'numbers' }
