/** Which candidates count as correlated with the broken sensor. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { testCorrelation } from './candidate-correlation.ts'

describe('the correlation test of candidates', () => {
  const random = createSeededRandom(1)
  const noise = (): Float64Array => Float64Array.from({ length: 300 }, random)
  const target = noise()

  it('keeps a source that follows the target, also two slots earlier', () => {
    const source = target.map((value) => 3 * value + 1 + 0.1 * random())
    expect(testCorrelation(target, source, 8).isCorrelated).toBe(true)
    const early = target.map((_, i) => target[i + 2] ?? Number.NaN)
    expect(testCorrelation(target, early, 8).isCorrelated).toBe(true)
  })

  it('keeps a source with 50 common slots', () => {
    const short = target.map((value, i) => (i < 50 ? value : Number.NaN))
    expect(testCorrelation(target, short, 8)).toMatchObject({ commonSlots: 50, isCorrelated: true })
  })

  it('keeps an equal smooth source', () => {
    const smooth = target.map((_, i) => Math.sin(i / 40))
    expect(testCorrelation(smooth, smooth, 8).isCorrelated).toBe(true)
  })

  it('leaves out noise, a reversed source, a constant one and one with 49 common slots', () => {
    expect(testCorrelation(target, noise(), 8).isCorrelated).toBe(false)
    expect(
      testCorrelation(
        target,
        target.map((value) => -value),
        8,
      ).isCorrelated,
    ).toBe(false)
    expect(
      testCorrelation(
        target,
        target.map(() => 4),
        8,
      ).isCorrelated,
    ).toBe(false)
    const short = target.map((value, i) => (i < 49 ? value : Number.NaN))
    expect(testCorrelation(target, short, 8)).toMatchObject({ commonSlots: 49, isCorrelated: false })
  })

  it('leaves out two independent random walks', () => {
    const walk = (): Float64Array => {
      let at = 0
      return Float64Array.from({ length: 60 }, () => (at += random() - 0.5))
    }
    const kept = Array.from({ length: 200 }, () => testCorrelation(walk(), walk(), 8)).filter(
      ({ isCorrelated }) => isCorrelated,
    )
    expect(kept.length).toBeLessThan(30)
  })
})
