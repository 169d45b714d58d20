/**
 * Models: classification against values of scikit-learn 1.9 (`GaussianMixture.predict_proba`,
 * `KNeighborsClassifier.predict_proba`), and the error for each kind of mistake.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { parseModel } from './pattern-model.ts'

const mixture = {
  weights: [0.5, 0.3, 0.2],
  means: [
    [0.8, 0.6],
    [0.1, 0.99],
    [-0.7, 0.7],
  ],
  covariances: [
    [
      [0.04, 0.01],
      [0.01, 0.09],
    ],
    [
      [0.02, -0.005],
      [-0.005, 0.01],
    ],
    [
      [0.5, 0.2],
      [0.2, 0.3],
    ],
  ] as unknown[],
}
const diagonal = {
  ...mixture,
  covariances: [
    [0.04, 0.09],
    [0.02, 0.01],
    [0.5, 0.3],
  ],
}
const centroids = {
  kind: 'k-means',
  centroids: [
    [0, 0],
    [4, 0],
    [0, 8],
  ],
}
const examples = {
  kind: 'nearest-neighbour',
  examples: [
    [0, 0],
    [1, 0],
    [0, 1],
    [5, 5],
    [6, 5],
    [5, 6],
    [3, 3],
  ],
  labels: ['a', 'a', 'a', 'b', 'b', 'b', 'c'],
  neighbours: 3,
}

const classify = (json: unknown, ...features: number[]) =>
  parseModel(json).classify(Float64Array.from(features))

describe('a Gaussian mixture', () => {
  it.each([
    [[0.7, 0.7], 0, 0.9937994776856253],
    [[0.3, 0.9], 1, 0.9578736152419692],
    [[0, 0], 2, 0.9734394608238881],
    [[1000, -3000], 2, 1],
  ])('classifies %j as scikit-learn does with full covariances', (features, label, confidence) => {
    const result = classify(mixture, ...features)
    expect(result.label).toBe(label)
    expect(result.confidence).toBeCloseTo(confidence, 12)
  })

  it.each([
    [[0.7, 0.7], 0, 0.9896467649179578],
    [[0.3, 0.9], 1, 0.9286692076302767],
    [[0, 0], 2, 0.9973010553977982],
  ])('classifies %j as scikit-learn does with diagonal covariances', (features, label, confidence) => {
    const result = classify({ kind: 'gaussian-mixture', ...diagonal }, ...features)
    expect(result.label).toBe(label)
    expect(result.confidence).toBeCloseTo(confidence, 12)
  })
})

describe('k-means', () => {
  it('returns the nearest centroid; the confidence compares it with the next one', () => {
    expect(classify(centroids, 1, 0)).toEqual({ label: 0, confidence: 1 - 1 / 3 })
    expect(classify(centroids, 4, 0)).toEqual({ label: 1, confidence: 1 })
    expect(classify(centroids, 2, 0)).toEqual({ label: 0, confidence: 0 })
  })

  it('is certain of its only centroid', () => {
    expect(classify({ kind: 'k-means', centroids: [[3]] }, -8)).toEqual({ label: 0, confidence: 1 })
  })
})

describe('nearest neighbours', () => {
  it.each([
    [[0.2, 0.3], 'a', 1],
    [[5.4, 5.1], 'b', 1],
    [[2.4, 2.2], 'a', 2 / 3],
  ])('label %j as scikit-learn does', (features, label, confidence) => {
    expect(classify(examples, ...features)).toEqual({ label, confidence })
  })

  it('return the label of the nearest example among equally frequent ones', () => {
    const tie = { ...examples, examples: [[0], [1], [2]], labels: ['a', 'b', 'c'] }
    expect(classify(tie, 1.9)).toEqual({ label: 'c', confidence: 1 / 3 })
  })

  it('are three if the model names no number', () => {
    const { neighbours: _, ...rest } = examples
    expect(classify(rest, 2.4, 2.2).confidence).toBe(2 / 3)
  })
})

describe('a preparation', () => {
  it('standardizes and projects features before they are classified', () => {
    const preparation = { means: [10, 20, 30], scales: [1, 2, 5], axes: [[1, 0, 0], [0, 0.6, 0.8]] } // biome-ignore format: one row per axis
    const model = parseModel({ ...centroids, preparation })
    expect(model.featureCount).toBe(3)
    // Standardized: 0, 5, 5; projected: 0, 7.
    expect(model.classify(Float64Array.of(10, 30, 55))).toEqual({ label: 2, confidence: 1 - 1 / 7 })
  })
})

describe('any model', () => {
  it('answers with a label and a confidence within 0..1 for any features', () => {
    const value = fc.double({ noDefaultInfinity: true, noNaN: true })
    const models = [mixture, diagonal, centroids, examples].map(parseModel)
    fc.assert(
      fc.property(value, value, (x, y) => {
        for (const model of models) {
          const { label, confidence } = model.classify(Float64Array.of(x, y))
          expect(['string', 'number']).toContain(typeof label)
          expect(confidence).toBeGreaterThanOrEqual(0)
          expect(confidence).toBeLessThanOrEqual(1)
        }
      }),
    )
  })

  it('rejects features of another length', () => {
    expect(() => classify(mixture, 1)).toThrow('the model expects 2 features, got 1')
  })
})

describe('the parser', () => {
  const wide = new Array<number>(limits.patternFeaturesMax.value + 1).fill(0)
  const many = new Array<number[]>(limits.patternComponentsMax.value + 1).fill([0])
  const singular = [[1, 2], [2, 4]] // biome-ignore format: one matrix
  const indefinite = [[1, 2], [2, 1]] // biome-ignore format: one matrix
  const withCovariance = (matrix: unknown) => ({
    ...mixture,
    covariances: [mixture.covariances[0], matrix, mixture.covariances[2]],
  })
  it.each([
    ['no object', [], 'model: must be a JSON object'],
    ['no JSON value at all', undefined, 'model: must be a JSON object'],
    ['another kind', { kind: 'svm' }, 'kind: must be one of gaussian-mixture, k-means, nearest-neighbour'],
    ['an unknown member', { ...centroids, inertia: 1 }, 'inertia: is not known here'],
    ['missing means', { weights: [1] }, 'means: must be a list of components; it is missing'],
    ['no components', { ...mixture, means: [] }, 'means: must have 1 to'],
    ['means of different lengths', { ...mixture, means: [[1, 2], [1], [1, 2]] }, 'means[1]: must have 2'],
    ['a text in a mean', { ...mixture, means: [[1, 'x']] }, 'means[0][1]: must be a number'],
    ['a number too large', { ...mixture, means: [[1, 1e200]] }, 'means[0][1]: must be a number within'],
    ['a weight too few', { ...mixture, weights: [0.5, 0.5] }, 'weights: must have 3 components, got 2'],
    ['a negative weight', { ...mixture, weights: [0.8, -0.1, 0.3] }, 'weights[1]: must be at least 0'],
    ['weights beyond 1', { ...mixture, weights: [0.5, 0.3, 0.4] }, 'weights: must add up to 1'],
    ['a singular covariance', withCovariance(singular), 'covariances[1]: is singular'],
    ['an indefinite covariance', withCovariance(indefinite), 'covariances[1]: is singular'],
    [
      'a covariance that is not symmetric',
      withCovariance([
        [1, 0.5],
        [0, 1],
      ]),
      'covariances[1]: must be sym',
    ],
    ['a row too few', withCovariance([[1, 0]]), 'covariances[1]: must have 2 rows, got 1'],
    ['a variance of 0', withCovariance([1, 0]), 'covariances[1][1]: must be above 0'],
    [
      'a variance of 0 in a matrix',
      withCovariance([
        [1, 0],
        [0, 0],
      ]),
      'covariances[1][1][1]: must be above 0',
    ],
    ['too many centroids', { kind: 'k-means', centroids: many }, 'centroids: must have 1 to 64 centroids'],
    ['too many features', { kind: 'k-means', centroids: [wide] }, 'centroids[0]: must have 1 to 256 numbers'],
    ['a label too few', { ...examples, labels: ['a'] }, 'labels: must have 7 labels, got 1'],
    [
      'an empty label',
      { ...examples, examples: [[1]], labels: [''] },
      'labels[0]: must be a number or a text',
    ],
    ['no neighbour', { ...examples, neighbours: 0 }, 'neighbours: must be a whole number from 1 to 7'],
    [
      'a scale of 0',
      { ...centroids, preparation: { means: [0, 0], scales: [1, 0] } },
      'preparation.scales[1]',
    ],
    [
      'another size',
      { ...centroids, preparation: { means: [0], scales: [1] } },
      'preparation: makes 1 numbers',
    ],
  ])('rejects %s', (_, json, message) => {
    expect(() => parseModel(json)).toThrow(message)
  })

  it('answers any JSON by a model or by an error that is the fault of the caller', () => {
    const shaped = fc.record({
      kind: fc.constantFrom('k-means', 'gaussian-mixture', 'nearest-neighbour', undefined),
      means: fc.jsonValue(),
      weights: fc.jsonValue(),
      covariances: fc.jsonValue(),
    })
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), shaped), (json) => {
        try {
          parseModel(json)
        } catch (error) {
          expect(error).toHaveProperty('code', 'ngsi-ld.bad-request-data')
        }
      }),
    )
  })
})
