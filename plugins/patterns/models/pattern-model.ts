/**
 * Models of patterns as JSON: parsing and classification. A parsed model is complete and consistent, so that
 * `classify` answers for any numbers. Models never contain code.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  type Classified,
  nearestCentroid,
  parseCentroids,
  parseExamples,
  votedLabel,
} from './distance-models.ts'
import { parseGaussianMixture, sharesOf } from './gaussian-mixture.ts'
import { objectIn } from './model-json.ts'
import { type Preparation, parsePreparation, prepare, preparedCountOf } from './preparation.ts'

export type PatternModelKind = 'gaussian-mixture' | 'k-means' | 'nearest-neighbour'

export interface PatternModel {
  readonly kind: PatternModelKind
  /** Length of the features that `classify` expects. */
  readonly featureCount: number
  /** How many different labels it can return. */
  readonly labelCount: number
  /** @throws for features of another length than `featureCount` */
  classify(features: Float64Array): Classified
}

/** A classifier of prepared features. */
interface Core {
  readonly size: number
  readonly labelCount: number
  readonly classify: (point: Float64Array) => Classified
}

const kinds: Readonly<Record<PatternModelKind, (json: JsonObject) => Core>> = {
  'gaussian-mixture': mixtureCore,
  'k-means': centroidsCore,
  'nearest-neighbour': examplesCore,
}
const members: Readonly<Record<PatternModelKind, readonly string[]>> = {
  'gaussian-mixture': ['weights', 'means', 'covariances'],
  'k-means': ['centroids'],
  'nearest-neighbour': ['examples', 'labels', 'neighbours'],
}

/**
 * Parses a model: `kind` (`gaussian-mixture` if it is left out), the members of this kind, and optionally
 * `preparation`, which is applied to the features first.
 *
 * - `gaussian-mixture`: `weights`, `means`, `covariances` (a matrix or the variances of each component). The
 *   label is the index of the component with the largest weight x density. The confidence is its share in
 *   the sum (responsibility: Bishop, Pattern Recognition and Machine Learning, 9.13).
 * - `k-means`: `centroids`. The label is the index of the nearest one. The confidence is 1 - distance to it /
 *   distance to the next one (the ratio of Lowe, 2004, section 7.1); 1 if there is only one.
 * - `nearest-neighbour`: `examples`, `labels`, `neighbours` (3). The label is the most frequent one of the
 *   nearest examples. The confidence is its share of them (Bishop, 2.5.2).
 *
 * @throws ngsi-ld.bad-request-data with the path of the mistake
 */
export function parseModel(json: unknown): PatternModel {
  if (!isObject(json)) throw badRequestData('must be a JSON object', 'model')
  const kind = kindIn(json)
  objectIn({ json, path: '' }, ['kind', 'preparation', ...members[kind]])
  const core = kinds[kind](json)
  const written = json['preparation']
  const preparation = written === undefined ? undefined : parsePreparation(written, 'preparation')
  if (preparation !== undefined && preparedCountOf(preparation) !== core.size) {
    const prepared = preparedCountOf(preparation)
    throw badRequestData(`makes ${prepared} numbers, but the model expects ${core.size}`, 'preparation')
  }
  return modelOf(kind, core, preparation)
}

function modelOf(kind: PatternModelKind, core: Core, preparation: Preparation | undefined): PatternModel {
  const featureCount = preparation?.means.length ?? core.size
  return Object.freeze({
    kind,
    featureCount,
    labelCount: core.labelCount,
    classify(features) {
      if (features.length !== featureCount) {
        const detail = `the model expects ${featureCount} features, got ${features.length}`
        throw new GatewayError('gateway.internal', detail)
      }
      return core.classify(preparation === undefined ? features : prepare(preparation, features))
    },
  } satisfies PatternModel)
}

function kindIn(json: JsonObject): PatternModelKind {
  const written: Json = json['kind'] ?? 'gaussian-mixture'
  const kind = (Object.keys(kinds) as PatternModelKind[]).find((name) => name === written)
  if (kind !== undefined) return kind
  throw badRequestData(`must be one of ${Object.keys(kinds).join(', ')}`, 'kind')
}

function mixtureCore(json: JsonObject): Core {
  const mixture = parseGaussianMixture(json)
  return {
    size: mixture.means[0]!.length,
    labelCount: mixture.means.length,
    classify(point) {
      const shares = sharesOf(mixture, point)
      const label = shares.reduce((best, share, i) => (share > shares[best]! ? i : best), 0)
      return { label, confidence: shares[label]! }
    },
  }
}

function centroidsCore(json: JsonObject): Core {
  const centroids = parseCentroids(json)
  return {
    size: centroids[0]!.length,
    labelCount: centroids.length,
    classify: (point) => nearestCentroid(centroids, point),
  }
}

function examplesCore(json: JsonObject): Core {
  const examples = parseExamples(json)
  return {
    size: examples.points[0]!.length,
    labelCount: new Set(examples.labels).size,
    classify: (point) => votedLabel(examples, point),
  }
}
