/** Ridge regression, kriging, correlation, weights of a blend and boosted trees on synthetic numbers. */
import { describe, expect, it } from 'vitest'
import { boostedTreesOf, valueOfTrees } from './boosted-trees.ts'
import { correlationOf, effectivePairs, probabilityOf } from './correlation.ts'
import { correlogramOf, krigingWeightsOf } from './kriging.ts'
import { momentsOf } from './moments.ts'
import { penaltyByGcv, ridgeOf } from './ridge.ts'
import { createSeededRandom } from './seeded-random.ts'
import { simplexWeights } from './simplex-weights.ts'

/** Rows of three random columns, and a target: 2 a - b + 5 with noise. */
function rowsOf(seed: number, noise: number, count = 400): Float64Array[] {
  const random = createSeededRandom(seed)
  return Array.from({ length: count }, () => {
    const [a, b, c] = [random() * 10, random() * 5, random()]
    return Float64Array.of(a, b, c, 2 * a - b + 5 + noise * (random() - 0.5))
  })
}

describe('ridge regression', () => {
  it('finds the weights of a linear relation', () => {
    const { weights, intercept } = ridgeOf({ moments: momentsOf(rowsOf(1, 0)), columns: [0, 1, 2] }, 1e-9)
    expect([...weights, intercept].map((value) => Math.round(value * 1e4) / 1e4 + 0)).toEqual([2, -1, 0, 5])
  })

  it.each([1, 2, 3])('without a column equals a regression that never had it (seed %i)', (seed) => {
    const rows = rowsOf(seed, 3)
    const reduced = ridgeOf({ moments: momentsOf(rows), columns: [0, 2] }, 0.1)
    const retrained = momentsOf(rows.map((row) => Float64Array.of(row[0]!, row[2]!, row[3]!)))
    const other = ridgeOf({ moments: retrained, columns: [0, 1] }, 0.1)
    reduced.weights.forEach((weight, i) => {
      expect(weight).toBeCloseTo(other.weights[i]!, 10)
    })
    expect(reduced.intercept).toBeCloseTo(other.intercept, 10)
  })

  it('shrinks to the prior with a large penalty', () => {
    const { weights } = ridgeOf({ moments: momentsOf(rowsOf(1, 1)), columns: [0, 1], prior: [0.7, 0.3] }, 1e9)
    expect(weights[0]).toBeCloseTo(0.7, 5)
    expect(weights[1]).toBeCloseTo(0.3, 5)
  })

  it('chooses a larger penalty for noise than for a clear relation', () => {
    const columns = [0, 1, 2]
    const clear = penaltyByGcv({ moments: momentsOf(rowsOf(1, 0.1, 30)), columns })
    const random = createSeededRandom(4)
    const noise = rowsOf(1, 0, 30).map((row) => Float64Array.of(row[0]!, row[1]!, row[2]!, random()))
    expect(penaltyByGcv({ moments: momentsOf(noise), columns })).toBeGreaterThan(clear)
  })

  it('gives a constant column no weight', () => {
    const rows = rowsOf(1, 1).map((row) => Float64Array.of(row[0]!, 7, row[3]!))
    const { weights, intercept } = ridgeOf({ moments: momentsOf(rows), columns: [0, 1] }, 1e-9)
    expect(weights[1]).toBe(0)
    expect(Number.isFinite(intercept)).toBe(true)
  })
})

describe('ordinary kriging', () => {
  const between = [
    [0, 5, 8],
    [5, 0, 4],
    [8, 4, 0],
  ]
  const correlogram = { level: 0.9, range: 6 }

  it('is exact at a sensor', () => {
    const { weights, variance } = krigingWeightsOf({ between, toPlace: [5, 0, 4], correlogram })!
    expect([...weights].map((weight) => weight.toFixed(9)).map(Number)).toEqual(
      [0, 1, 0].map((one) => one + 0),
    )
    expect(variance).toBeCloseTo(0, 9)
  })

  it('gives weights that add up to 1, the largest to the nearest sensor', () => {
    const { weights, variance } = krigingWeightsOf({ between, toPlace: [1, 5, 8], correlogram })!
    expect(weights.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12)
    expect(Math.max(...weights)).toBe(weights[0])
    expect(variance).toBeGreaterThan(0)
  })

  it('has no weights without sensors', () => {
    expect(krigingWeightsOf({ between: [], toPlace: [], correlogram })).toBeUndefined()
  })

  it('finds the correlogram that made the correlations', () => {
    const pairs = [1, 2, 4, 8, 16].map((distance) => ({
      distance,
      correlation: 0.8 * Math.exp(-distance / 5),
    }))
    const found = correlogramOf(pairs)
    expect(found.level).toBeCloseTo(0.8, 1)
    expect(found.range / 5).toBeCloseTo(1, 0)
  })
})

describe('correlation', () => {
  it('finds the lag of a delayed series and passes over gaps', () => {
    const random = createSeededRandom(1)
    const first = Float64Array.from({ length: 200 }, random)
    const delayed = first.map((_, i) => (i % 17 === 0 ? Number.NaN : (first[i - 2] ?? Number.NaN)))
    expect(correlationOf(delayed, first, 2).correlation).toBeCloseTo(1, 9)
    expect(Math.abs(correlationOf(delayed, first).correlation)).toBeLessThan(0.3)
  })

  it('is zero for a constant series', () => {
    expect(
      correlationOf(new Float64Array(9).fill(3), Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9])).correlation,
    ).toBe(0)
  })

  it('counts smooth series as fewer independent values', () => {
    const smooth = Float64Array.from({ length: 300 }, (_, i) => Math.sin(i / 20))
    expect(effectivePairs(300, smooth, smooth)).toBeLessThan(30)
  })

  it('has the probability of the normal distribution', () => {
    expect(probabilityOf(Math.tanh(1.96 / 10), 103)).toBeCloseTo(0.05, 3)
    expect(probabilityOf(0.9, 3)).toBe(1)
  })
})

describe('weights of a blend', () => {
  it('prefer the prediction without error', () => {
    const weights = simplexWeights(
      [Float64Array.of(1, -1, 1), Float64Array.of(0.001, 0, 0), Float64Array.of(2, 2, 2)],
      0,
    )
    expect(weights[1]).toBeCloseTo(1, 2)
  })

  it('are never negative, add up to 1, and are not worse than the best prediction', () => {
    const random = createSeededRandom(3)
    const errors = [1, 2, 3, 1].map((scale) =>
      Float64Array.from({ length: 100 }, () => scale * (random() - 0.5)),
    )
    const weights = simplexWeights(errors, 0)
    expect(Math.min(...weights)).toBeGreaterThanOrEqual(0)
    expect(weights.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9)
    const square = (of: (i: number) => number): number =>
      errors[0]!.reduce((sum, _, i) => sum + of(i) ** 2, 0)
    const blended = square((i) => errors.reduce((sum, one, j) => sum + weights[j]! * one[i]!, 0))
    expect(blended).toBeLessThanOrEqual(Math.min(...errors.map((one) => square((i) => one[i]!))))
  })
})

describe('boosted trees', () => {
  const settings = {
    trees: 60,
    depth: 3,
    rate: 0.2,
    leafMin: 5,
    shrinkage: 1,
    rowShare: 0.8,
    featureShare: 1,
    seed: 1,
  }

  it('learn a product, which no linear regression can', () => {
    const random = createSeededRandom(2)
    const rows = Array.from({ length: 1000 }, () => Float64Array.of(random() - 0.5, random() - 0.5))
    const targets = Float64Array.from(rows, (row) => row[0]! * row[1]!)
    const trees = boostedTreesOf(rows, targets, settings)
    const rest = rows.reduce((sum, row, i) => sum + (valueOfTrees(trees, row) - targets[i]!) ** 2, 0)
    expect(rest).toBeLessThan(0.1 * targets.reduce((sum, value) => sum + value ** 2, 0))
    expect(JSON.stringify(boostedTreesOf(rows, targets, settings))).toBe(JSON.stringify(trees))
  })

  it('give the mean where all features are constant', () => {
    const rows = Array.from({ length: 20 }, () => Float64Array.of(1, 2))
    const trees = boostedTreesOf(
      rows,
      Float64Array.from(rows, (_, i) => i),
      settings,
    )
    expect(valueOfTrees(trees, Float64Array.of(1, 2))).toBeCloseTo(9.5, 0)
  })
})
