/** Alignment of readings in slots, and the correlation test of candidates. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { testCorrelation } from './correlation-test.ts'
import { gridOf, ownInterval, slotValues } from './slots.ts'

const readings = (...pairs: readonly (readonly [number, number])[]) => ({
  times: Float64Array.from(pairs, ([time]) => time),
  values: Float64Array.from(pairs, ([, value]) => value),
})

describe('slots', () => {
  it('hold the last reading of each slot', () => {
    const series = readings([100, 1], [109, 2], [110, 3], [125, 4])
    const grid = gridOf(series, 10, 100)!
    expect(grid).toEqual({ slotMs: 10, first: 10, count: 3 })
    expect([...slotValues(series, grid)]).toEqual([2, 3, 4])
  })

  it('hold a last known value up to the age limit, and none after it', () => {
    const series = readings([0, 1], [50, 2])
    expect([...slotValues(series, { slotMs: 10, first: 0, count: 6 }, 30)]).toEqual([
      1,
      1,
      1,
      1,
      Number.NaN,
      2,
    ])
  })

  it('know a value from before the first slot', () => {
    const series = readings([8, 5])
    expect([...slotValues(series, { slotMs: 10, first: 1, count: 3 }, 10)]).toEqual([
      5,
      Number.NaN,
      Number.NaN,
    ])
  })

  it('are at most the latest ones', () => {
    expect(gridOf(readings([0, 1], [1000, 2]), 10, 5)).toEqual({ slotMs: 10, first: 96, count: 5 })
    expect(gridOf(readings(), 10, 5)).toBeUndefined()
  })

  it('measure the usual interval in spite of an outage', () => {
    expect(ownInterval(Float64Array.of(0, 10, 20, 900, 910))).toBe(10)
    expect(ownInterval(Float64Array.of(5))).toBeUndefined()
  })
})

describe('the correlation test', () => {
  const random = createSeededRandom(1)
  const noise = (): Float64Array => Float64Array.from({ length: 300 }, random)
  const target = noise()

  it('keeps a source that follows the target, also two slots earlier', () => {
    const source = target.map((value) => 3 * value + 1 + 0.1 * random())
    expect(testCorrelation(target, source, 8).isCorrelated).toBe(true)
    const early = target.map((_, i) => target[i + 2] ?? Number.NaN)
    expect(testCorrelation(target, early, 8).isCorrelated).toBe(true)
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
