/** Features of windows against values computed by numpy 2.4 (`linalg.norm`, `cov`, `linalg.eig`). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eigenpairsOf } from '#statistics/symmetric-eigen.ts'
import { featureCountOf, featuresOf } from './features.ts'

const first = [60.0, 62.7, 57.5, 52.0, 55.9, 51.1, 60.5, 72.1, 55.6, 54.4, 64.4, 63.2]
const second = [24.2, 21.9, 24.2, 26.2, 21.7, 24.0, 20.1, 20.2, 20.8, 24.1, 21.0, 24.2]
const third = [5.5, 4.4, -2.6, 3.4, 4.9, 5.3, 0.4, 3.6, 2.1, 2.6, 8.2, 2.6]
const seven = new Array<number>(12).fill(7)
const windowOf = (...series: number[][]) => series.map((values) => Float64Array.from(values))

function expectClose(actual: Iterable<number>, expected: readonly number[], tolerance = 1e-12): void {
  const values = [...actual]
  expect(values).toHaveLength(expected.length)
  values.forEach((value, i) => {
    expect(Math.abs(value - expected[i]!), `${i}: ${value}`).toBeLessThan(tolerance)
  })
}

describe('the features of the originals', () => {
  it.each([
    ['two streams', [first, second], [0.7854671237531461, -0.6189033830114035]],
    ['two streams in the other order', [second, first], [0.6189033830114035, -0.7854671237531461]],
    ['a stream that is constant', [first, seven], [1, 0]],
    ['constant streams', [seven, seven, seven], [1, 0, 0]],
    ['a stream of zeros', [new Array<number>(12).fill(0), second], [0, 1]],
    ['one stream', [first], [1]],
  ])('are those of numpy for %s', (_, series, expected) => {
    expectClose(featuresOf('originals', windowOf(...series)), expected)
  })

  it('have a positive largest component if there are three streams', () => {
    const numpy = [-0.021604147222007406, 0.01504016192938983, -0.9996534671334599]
    const expected = numpy.map((value) => -value)
    expectClose(featuresOf('originals', windowOf(first, second, third)), expected)
  })

  it('have length 1 for any numbers', () => {
    const series = fc.array(fc.double({ min: -1e150, max: 1e150, noNaN: true }), {
      minLength: 12,
      maxLength: 12,
    })
    fc.assert(
      fc.property(fc.array(series, { minLength: 1, maxLength: 6 }), (window) => {
        const features = featuresOf('originals', windowOf(...window))
        expect(features).toHaveLength(featureCountOf('originals', window.length))
        expect(Math.hypot(...features)).toBeCloseTo(1, 9)
      }),
    )
  })
})

describe('the means of segments', () => {
  it('are the means of eight equal parts of the window, also within a row', () => {
    const expected = [60.9, 59.23333333333333, 53.3, 52.7, 64.36666666666667, 61.1, 57.73333333333333, 63.6]
    expectClose(featuresOf('segments', windowOf(first)), expected)
    expectClose(featuresOf('segments', windowOf([1, 2, 3])), [1, 1, 4 / 3, 2, 2, 8 / 3, 3, 3])
  })

  it('stand stream after stream', () => {
    const features = featuresOf('segments', windowOf(first, seven))
    expect(features).toHaveLength(featureCountOf('segments', 2))
    expectClose(features.slice(8), new Array<number>(8).fill(7))
  })
})

describe('eigenpairs', () => {
  const matrix = windowOf([4, 1, -2, 2], [1, 2, 0, 1], [-2, 0, 3, -2], [2, 1, -2, -1])

  it('have the eigenvalues of numpy, ordered by magnitude', () => {
    const expected = [6.844621107234966, 2.2685314064312423, -2.197516977439427, 1.0843644637732177]
    expectClose(
      eigenpairsOf(matrix).map(({ value }) => value),
      expected,
    )
  })

  it('fulfil their equation', () => {
    for (const { value, vector } of eigenpairsOf(matrix)) {
      const product = matrix.map((row) => row.reduce((sum, one, i) => sum + one * vector[i]!, 0))
      expectClose(
        product,
        [...vector].map((one) => one * value),
      )
    }
  })
})
