/** Alignment of readings in slots. */
import { describe, expect, it } from 'vitest'
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
    expect(ownInterval(Float64Array.of(0, 10, 30, 60))).toBe(20)
    expect(ownInterval(Float64Array.of(5))).toBeUndefined()
  })
})
