/** Concordance of streams with their neighbours: agreement over common time slots. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agreement, concordanceOf, ratedConcordance } from './concordance.ts'
import { createRecordRows } from './record-rows.ts'
import {
  addToSlots,
  beginSlots,
  changeSlots,
  firstMean,
  shortestFor,
  slotsKept,
  type TimeSlots,
} from './time-slots.ts'

const begin = Date.parse('2026-06-01T00:00:00Z')
const minute = 60_000

const records = createRecordRows()

function newSlots(everyMs: number, origin: number): TimeSlots {
  const slots = records.create()
  beginSlots(slots, shortestFor(everyMs), origin)
  return slots
}

function slotsOf(values: readonly number[], { everyMs = minute, from = begin } = {}): TimeSlots {
  const slots = newSlots(everyMs, values[0]!)
  for (const [i, value] of values.entries()) addToSlots(slots, from + i * everyMs, value)
  return slots
}

const wave = (count: number, of = (i: number) => Math.sin(i / 3)): number[] =>
  Array.from({ length: count }, (_, i) => of(i))

const meansOf = ({ table, first }: TimeSlots, level = 0): number[] => {
  const at = first + firstMean + level * slotsKept
  return [...table.subarray(at, at + slotsKept)]
}

describe('the agreement of a stream with a neighbour', () => {
  it('is 1 if both move alike, whatever their levels and scales', () => {
    const values = wave(30)
    expect(agreement(slotsOf(values), slotsOf(values.map((value) => 100 + 5 * value)))).toBe(1)
  })

  it('is 0 for a stream that is constant while its neighbour changes, and for an opposite one', () => {
    const values = wave(30)
    expect(agreement(slotsOf(values.map(() => 21.3)), slotsOf(values))).toBe(0)
    expect(agreement(slotsOf(values.map((value) => -value)), slotsOf(values))).toBe(0)
  })

  it('is unknown before 10 slots in common, and if the neighbour does not change', () => {
    expect(agreement(slotsOf(wave(9)), slotsOf(wave(30)))).toBeUndefined()
    expect(agreement(slotsOf(wave(9)), slotsOf(wave(9)))).toBeUndefined()
    expect(agreement(slotsOf(wave(10)), slotsOf(wave(10)))).toBe(1)
    expect(agreement(slotsOf(wave(30)), slotsOf(wave(30).map(() => 5)))).toBeUndefined()
  })

  it('falls to 0 while a stream is stuck, and rises when it moves again', () => {
    const [stuckFrom, stuckUntil] = [40, 70]
    const truth = wave(110)
    const seen = truth.map((value, i) => (i >= stuckFrom && i < stuckUntil ? truth[stuckFrom]! : value))
    const at = (count: number): number =>
      agreement(slotsOf(seen.slice(0, count)), slotsOf(truth.slice(0, count)))!
    expect(at(stuckFrom)).toBe(1)
    expect(at(stuckFrom + slotsKept / 2)).toBeLessThan(0.9)
    expect(at(stuckFrom + slotsKept + 1)).toBe(0)
    expect(at(stuckUntil + slotsKept)).toBe(1)
  })

  it('compares streams of different update intervals in the slots of the slower one', () => {
    const hours = 10
    const curve = (hour: number): number => Math.sin(hour / 2)
    const fast = slotsOf(wave(hours * 60, (i) => curve(i / 60)))
    const slow = slotsOf(
      wave(hours * 4, (i) => curve(i / 4)),
      { everyMs: 15 * minute },
    )
    expect(agreement(fast, slow)).toBeGreaterThan(0.95)
    expect(agreement(slow, fast)).toBeGreaterThan(0.95)
  })

  it('does not depend on the order of slots that arrive late', () => {
    const values = wave(20)
    const late = newSlots(minute, values[0]!)
    for (const [i, value] of values.entries()) if (i % 4 !== 2) addToSlots(late, begin + i * minute, value)
    for (const [i, value] of values.entries()) if (i % 4 === 2) addToSlots(late, begin + i * minute, value)
    expect(meansOf(late)).toEqual(meansOf(slotsOf(values)))
  })

  it('forgets slots that are older than those it keeps', () => {
    const values = wave(20)
    const slots = slotsOf(values)
    addToSlots(slots, begin + 100 * minute, 7)
    expect(agreement(slots, slotsOf(wave(101)))).toBeUndefined()
  })

  it('keeps the slots that a changed update interval has in common with the former one', () => {
    const values = wave(600, (i) => Math.sin(i / 60))
    const slots = newSlots(minute, values[0]!)
    const stuck = newSlots(minute, 5)
    const add = (i: number): void => {
      addToSlots(slots, begin + i * minute, values[i]!)
      addToSlots(stuck, begin + i * minute, 5)
    }
    for (let i = 0; i < 595; i++) add(i)
    for (const each of [slots, stuck]) changeSlots(each, shortestFor(10 * minute))
    // The latest slot goes on with the values that it has.
    for (let i = 595; i < 600; i++) add(i)
    const expected = slotsOf(values)
    expect(meansOf(slots)).toEqual(meansOf(expected, 2))
    expect(agreement(slots, expected)).toBe(1)
    expect(agreement(stuck, slots)).toBe(0)
    // Means of 10 s are not known from those of 15 minutes; the longer ones are.
    changeSlots(slots, shortestFor(10_000))
    expect(meansOf(slots).every(Number.isNaN)).toBe(true)
    expect(agreement(slots, expected)).toBe(1)
  })

  it('is within 0..1 for any values, and each value of a slot counts in its mean', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.double({ min: -1e6, max: 1e6, noNaN: true }),
            fc.double({ min: -1e6, max: 1e6, noNaN: true }),
          ),
          {
            minLength: 10,
            maxLength: 60,
          },
        ),
        (pairs) => {
          const share = agreement(slotsOf(pairs.map(([x]) => x)), slotsOf(pairs.map(([, y]) => y)))
          if (share === undefined) return
          expect(share).toBeGreaterThanOrEqual(0)
          expect(share).toBeLessThanOrEqual(1 + 1e-9)
        },
      ),
    )
    const slots = newSlots(minute, 10)
    for (const [i, value] of [10, 20, 60].entries()) addToSlots(slots, begin + i * 20_000, value)
    expect(10 + meansOf(slots).find((mean) => !Number.isNaN(mean))!).toBe(30)
  })
})

describe('the concordance', () => {
  it('is the median of the agreements', () => {
    expect(concordanceOf([])).toBeUndefined()
    expect(concordanceOf([0.9, 0.1, 0.8])).toBe(0.8)
    expect(concordanceOf([0.4, 0.9])).toBe(0.65)
  })

  it('is rated in tenths, which change only if it moved by a tenth', () => {
    expect(ratedConcordance(undefined, 0.8499)).toBe(0.8)
    expect(ratedConcordance(0.8, 0.89)).toBe(0.8)
    expect(ratedConcordance(0.9, 1)).toBe(1)
    expect(ratedConcordance(0.1, 0)).toBe(0)
  })
})
