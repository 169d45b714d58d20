/** Training against scikit-learn 1.9 (`KMeans`, `GaussianMixture`) on the same points, and on made days. */
import { describe, expect, it } from 'vitest'
import { featuresOf } from '#plugins/patterns/models/features.ts'
import { parseModel } from '#plugins/patterns/models/pattern-model.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { adjustedRandIndex } from '#test/kit/agreement.ts'
import { clustersOf } from './k-means-training.ts'
import { fitMixture, mixtureCriterion } from './mixture-training.ts'
import { type TrainingTask, train, usualPreparation } from './training.ts'

/** Three groups of 14 points, drawn from normal distributions. */
const points = [
  -1.13, -2.74, -0.22, -0.58, 0.5, 0.36, 1.99, 1.84, -0.23, 1.87, -0.1, -0.33, 0.48, 0.06, 1.12, 0.88, -0.38,
  -0.53, -0.85, -0.97, -0.51, 0.47, -0.36, -0.68, 0, 0.34, -1.75, -1.92, 4.55, -0.34, 3.84, -1.25, 4.32, 1.25,
  4.37, 0.13, 4.56, -4, 3.09, -1.36, 4.38, 0.39, 3.41, -0.63, 3.97, 0.04, 4.41, 1.99, 4.61, 0.27, 3.49, -0.29,
  4.32, 0.83, 3.57, -0.3, -0.13, 3.88, 0.21, 5.85, 3.28, 3.64, 2.57, 4.58, 3.5, 2.79, 0.4, 6.21, 3.81, 2.9,
  0.35, 4.96, -1.58, 5.73, 0.17, 4.75, -0.94, 6.18, 0.95, 3.78, -1.07, 6.83, 0.33, 6.24,
].flatMap((x, i, all) => (i % 2 === 0 ? [Float64Array.of(x, all[i + 1]!)] : []))
const groups = points.map((_, i) => Math.floor(i / 14))

/** The best of several attempts by a misfit. */
function bestOf<T>(attempt: () => T, misfit: (one: T) => number): T {
  return Array.from({ length: 20 }, attempt).reduce((best, one) => (misfit(one) < misfit(best) ? one : best))
}

describe('k-means', () => {
  it.each([
    [2, 240.28363500000006],
    [3, 110.1068708236208],
    [4, 71.76202102564102],
  ])('finds %i clusters with the inertia of scikit-learn', (count, inertia) => {
    const random = createSeededRandom(1)
    const best = bestOf(
      () => clustersOf(points, count, random),
      (one) => one.inertia,
    )
    expect(best.inertia).toBeCloseTo(inertia, 9)
  })

  it('makes fewer clusters if there are fewer different points', () => {
    const same = [Float64Array.of(1), Float64Array.of(1), Float64Array.of(2)]
    expect(clustersOf(same, 3, createSeededRandom(1)).centroids).toHaveLength(2)
  })
})

describe('the fit of a mixture', () => {
  it('has the likelihood and the criterion of scikit-learn', () => {
    const random = createSeededRandom(1)
    const best = bestOf(
      () => fitMixture(points, clustersOf(points, 2, random)),
      ({ likelihood }) => -likelihood,
    )
    expect(best.likelihood).toBeCloseTo(-170.10951958339547, 2)
    expect(mixtureCriterion(best, points.length)).toBeCloseTo(381.333404967908, 2)
    expect(Math.min(...best.weights)).toBeCloseTo(0.43581234653095774, 2)
  })
})

const task = {
  method: 'gaussian-mixture',
  features: 'originals',
  windows: points,
  labels: [],
  neighbours: 3,
  seed: 1,
  preparation: usualPreparation.unlabelled,
} as const satisfies TrainingTask

describe('a training', () => {
  it.each([
    ['k-means', 0.7219531098624298],
    ['gaussian-mixture', 0.7465224111282844],
  ] as const)('by %s finds the clusters that scikit-learn finds', (method, index) => {
    const { model, labelCount } = train({ ...task, method, components: 3 })
    const parsed = parseModel(JSON.parse(JSON.stringify(model)))
    expect(labelCount).toBe(3)
    const found = points.map((point) => parsed.classify(point).label)
    expect(adjustedRandIndex(found, groups)).toBeCloseTo(index, 12)
  })

  it('makes the same model of the same seed', () => {
    const { seed: _, ...rest } = task
    expect(train({ ...rest, seed: 7 })).toEqual(train({ ...rest, seed: 7 }))
  })

  it('reports its progress', () => {
    const shares: number[] = []
    train({ ...task, method: 'k-means' }, (done, total) => shares.push(done / total))
    expect(shares.length).toBeGreaterThanOrEqual(7)
    expect(shares).toEqual(shares.toSorted((a, b) => a - b))
    expect(shares.at(-1)).toBe(1)
  })

  it.each(['k-means', 'gaussian-mixture', 'nearest-neighbour'] as const)(
    'by %s makes a valid model of equal windows',
    (method) => {
      const windows = Array.from({ length: 6 }, () => new Float64Array(16).fill(5))
      const { model } = train({
        ...task,
        method,
        windows,
        features: 'segments',
        labels: windows.map(() => 'a'),
      })
      expect(parseModel(model).classify(windows[0]!).confidence).toBeGreaterThan(0)
    },
  )

  it('rejects a task without windows', () => {
    expect(() => train({ ...task, windows: [] })).toThrow('windows: must have at least one window')
  })
})

describe('on days of three sensors', () => {
  const random = createSeededRandom(4)
  /** Busy days have a peak at noon, idle days a small one. The second sensor drifts, the third is only noise. */
  const days = Array.from({ length: 60 }, (_, day) => {
    const isBusy = day % 3 !== 0
    const course = (hour: number) => (isBusy ? 100 : 40) * Math.exp(-((hour - 12) ** 2) / 18)
    const hours = Array.from({ length: 24 }, (__, hour) => hour)
    const window = [
      Float64Array.from(hours, (hour) => course(hour) + 10 * random()),
      Float64Array.from(hours, (hour) => course(hour) / 4 + 50 * Math.sin(day / 9) + 5 * random()),
      Float64Array.from(hours, () => 400 * random() ** 6 * (day % 7)),
    ]
    return { features: featuresOf('segments', window), label: isBusy ? 'busy' : 'idle' }
  })
  const windows = days.map(({ features }) => features)
  const labels = days.map(({ label }) => label)

  it.each(['k-means', 'gaussian-mixture'] as const)('%s separates kinds of days without labels', (method) => {
    const { model } = train({ ...task, method, features: 'segments', windows, components: 2 })
    const parsed = parseModel(model)
    expect(
      adjustedRandIndex(
        windows.map((window) => parsed.classify(window).label),
        labels,
      ),
    ).toBe(1)
  })

  it('neighbours recognize days that the training did not contain', () => {
    const half = { windows: windows.slice(0, 30), labels: labels.slice(0, 30) }
    const preparation = usualPreparation.labelled
    const { model, labelCount } = train({ ...task, ...half, method: 'nearest-neighbour', features: 'segments', preparation }) // biome-ignore format: one call
    const parsed = parseModel(model)
    expect(labelCount).toBe(2)
    expect(windows.slice(30).map((window) => parsed.classify(window).label)).toEqual(labels.slice(30))
  })
})
