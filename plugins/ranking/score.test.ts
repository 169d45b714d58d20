/** The weighted sum: the examples of the original component, and properties for arbitrary values. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bestOf, scoreOf, shareOf, spansOf, type Weight } from './score.ts'

const plain = (weight: number): Weight => ({ weight, isFalling: false })
const weights = (...all: number[]): Weight[] => all.map(plain)
const values = (...all: number[]): Float64Array => Float64Array.from(all)

describe('the score', () => {
  it('is the weighted sum of the examples', () => {
    expect(scoreOf(weights(0.4, 0.6), values(0.88, 0.92))).toBe(0.904)
    expect(scoreOf(weights(0.8, 0.2), values(0.88, 0.92))).toBe(0.888)
    expect(scoreOf(weights(0.8, 0.2), values(0.92, 0.88))).toBe(0.912)
  })

  it('counts missing values as 0 and stays finite', () => {
    expect(scoreOf(weights(0.4, 0.6), values(Number.NaN, 0.5))).toBe(0.3)
    expect(scoreOf([{ weight: 1, isFalling: true }], values(Number.NaN))).toBe(0)
    expect(Number.isFinite(scoreOf(weights(1e6, -1e6), values(1.7e308, 1.7e308)))).toBe(true)
    expect(Object.is(scoreOf(weights(-1), values(0)), 0)).toBe(true)
  })

  it('inverts values if small is good', () => {
    expect(scoreOf([{ weight: 0.5, isFalling: true }], values(0.2))).toBe(0.4)
  })

  it('is in 0 to 1 if the values are and the weights add up to 1', () => {
    const one = fc.record({
      w: fc.integer({ min: 0, max: 1000 }),
      v: fc.double({ min: 0, max: 1, noNaN: true }),
      f: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 32 }), fc.boolean(), (parts, isNormalized) => {
        const sum = parts.reduce((all, { w }) => all + w, 0)
        fc.pre(sum > 0)
        const terms = parts.map(({ w, f }) => ({ weight: w / sum, isFalling: f }))
        const candidate = { item: 0, values: values(...parts.map(({ v }) => v)) }
        const spans = isNormalized
          ? spansOf(terms.length, [candidate, { item: 1, values: values(...parts.map(() => 0.5)) }])
          : undefined
        const score = scoreOf(terms, candidate.values, spans)
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('equals an independently computed sum, and the sum of its shares', () => {
    const number = fc.double({ min: -1000, max: 1000, noNaN: true })
    const part = fc.tuple(number, fc.option(number, { nil: Number.NaN }))
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 20 }), (parts) => {
        const score = scoreOf(
          parts.map(([w]) => plain(w)),
          values(...parts.map(([, v]) => v)),
        )
        const known = parts.filter(([, v]) => !Number.isNaN(v))
        const expected = known.toReversed().reduce((all, [w, v]) => all + w * v, 0)
        expect(score).toBeCloseTo(expected, 6)
        expect(score).toBeCloseTo(
          parts.reduce((all, [w, v]) => all + shareOf(plain(w), v), 0),
          6,
        )
      }),
    )
  })
})

describe('normalization', () => {
  const all = [[10], [20], [40], [Number.NaN]].map((one, item) => ({ item, values: values(...one) }))

  it('scales a value to the range of all candidates', () => {
    const spans = spansOf(1, all)
    expect(all.map((one) => scoreOf(weights(1), one.values, spans))).toEqual([0, 0.333333333333, 1, 0])
    expect(all.map((one) => scoreOf([{ weight: 1, isFalling: true }], one.values, spans))).toEqual([
      1, 0.666666666667, 0, 0,
    ])
  })

  it('gives 1 if all values are equal', () => {
    const equal = [5, 5].map((value, item) => ({ item, values: values(value) }))
    expect(equal.map((one) => scoreOf(weights(0.7), one.values, spansOf(1, equal)))).toEqual([0.7, 0.7])
  })
})

describe('the order', () => {
  it('is descending, and stable for equal scores', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 200 }),
        fc.nat(220),
        (scores, keep) => {
          const ranked = scores.map((score, item) => ({ item, score, values: values(score) }))
          const best = bestOf(ranked, keep)
          const expected = scores
            .map((score, item) => [score, item] as const)
            .sort((a, b) => b[0] - a[0] || a[1] - b[1])
            .slice(0, keep)
          expect(best.map(({ score, item }) => [score, item])).toEqual(expected)
        },
      ),
    )
  })

  it('treats scores that differ only by rounding as equal', () => {
    const sums = [values(0.1, 0.2), values(0.3, 0)].map((one, item) => ({
      item,
      values: one,
      score: scoreOf(weights(1, 1), one),
    }))
    expect(bestOf(sums, 2).map(({ item }) => item)).toEqual([0, 1])
    expect(sums[0]!.score).toBe(sums[1]!.score)
  })
})
