/**
 * The models that compare distances: k-means and nearest neighbours. Reads their JSON and classifies a point.
 * Distances are Euclidean.
 */
import { limits } from '#base/limits/limits.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { countIn, itemsIn, matrixIn, type Placed } from './model-json.ts'
import { features } from './preparation.ts'

export type Label = string | number

/** Result of a classification. */
export interface Classified {
  /** Index of the component or cluster, or the label of the examples. */
  readonly label: Label
  /** 0 to 1; `parseModel` defines it for each kind. */
  readonly confidence: number
}

export interface Examples {
  readonly neighbours: number
  readonly points: readonly Float64Array[]
  readonly labels: readonly Label[]
}

/** @throws ngsi-ld.bad-request-data with the path of the mistake */
export const parseCentroids = (json: JsonObject): readonly Float64Array[] =>
  matrixIn(
    { json: json['centroids'], path: 'centroids' },
    { most: limits.patternComponentsMax.value, what: 'centroids' },
    features,
  )

/** @throws ngsi-ld.bad-request-data with the path of the mistake */
export function parseExamples(json: JsonObject): Examples {
  const most = limits.patternExamplesMax.value
  const points = matrixIn({ json: json['examples'], path: 'examples' }, { most, what: 'examples' }, features)
  const count = { least: points.length, most: points.length, what: 'labels' }
  const labels = itemsIn({ json: json['labels'], path: 'labels' }, count).map(labelIn)
  const written = json['neighbours'] ?? Math.min(3, points.length)
  return { neighbours: countIn({ json: written, path: 'neighbours' }, points.length), points, labels }
}

export function labelIn({ json, path }: Placed): Label {
  const most = limits.nameCharactersMax.value
  if (typeof json === 'number' && Number.isFinite(json)) return json
  if (typeof json === 'string' && json !== '' && json.length <= most) return json
  throw badRequestData(`must be a number or a text of 1 to ${most} characters`, path)
}

export function squaredDistance(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i]! - b[i]!) ** 2
  return sum
}

/** The nearest centroid; the first one among equally near ones. */
export function nearestCentroid(centroids: readonly Float64Array[], point: Float64Array): Classified {
  let label = 0
  let least = Number.POSITIVE_INFINITY
  let second = Number.POSITIVE_INFINITY
  centroids.forEach((centroid, i) => {
    const distance = Math.sqrt(squaredDistance(centroid, point))
    if (distance < least) {
      second = least
      least = distance
      label = i
    } else if (distance < second) second = distance
  })
  return { label, confidence: marginOf(least, second) }
}

/** 1 - ratio of two distances; 1 without a second centroid, 0 if both are 0 or too far to be compared. */
function marginOf(least: number, second: number): number {
  if (least === Number.POSITIVE_INFINITY) return 0
  return least === second ? 0 : 1 - least / second
}

/** The most frequent label of the nearest examples; of equally frequent ones that of the nearest example. */
export function votedLabel({ neighbours, points, labels }: Examples, point: Float64Array): Classified {
  const nearest = points
    .map((example, i) => ({ label: labels[i]!, distance: squaredDistance(example, point) }))
    .sort((a, b) => a.distance - b.distance || 0)
    .slice(0, neighbours)
  const votes = new Map<Label, number>()
  for (const { label } of nearest) votes.set(label, (votes.get(label) ?? 0) + 1)
  const [label, count] = [...votes].reduce((best, one) => (one[1] > best[1] ? one : best))
  return { label, confidence: count / nearest.length }
}
