/**
 * The blocks of number pairs form a sorted set, however often blocks are split, emptied and filled again.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createNumberPairs } from './number-pairs.ts'

const every = { low: -Infinity, high: Infinity }

it('are a sorted set', () => {
  const pair = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 100 }))
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), pair, fc.integer({ min: 1, max: 99 })), { maxLength: 60 }),
      pair,
      fc.tuple(fc.boolean(), fc.boolean()),
      (steps, [low, width], [lowOpen, highOpen]) => {
        const pairs = createNumberPairs()
        const model = new Map<string, [number, number]>()
        for (let at = 0; at < 1300; at++) {
          const [value, rid] = [Math.floor(at / 40), at % 40]
          pairs.append(value, rid)
          model.set(`${value} ${rid}`, [value, rid])
        }
        for (const [isAdded, [value, first], count] of steps) {
          for (let rid = first; rid < first + count; rid++) {
            if (isAdded) model.set(`${value} ${rid}`, [value, rid])
            else model.delete(`${value} ${rid}`)
            if (isAdded) pairs.add(value, rid)
            else pairs.remove(value, rid)
            expect(pairs.having(value, [rid])).toEqual(isAdded ? [rid] : [])
          }
        }
        const sorted = [...model.values()].sort(([a, i], [b, j]) => a - b || i - j)
        const listed: [number, number][] = []
        pairs.each(every, (value, rid) => listed.push([value, rid]) > 0)
        expect(listed).toEqual(sorted)
        const asked = Array.from({ length: 100 }, (_, rid) => rid)
        expect(pairs.having(low, asked)).toEqual(asked.filter((rid) => model.has(`${low} ${rid}`)))
        const range = { low, high: low + (width % 20), lowOpen, highOpen }
        const within = sorted.filter(
          ([value]) =>
            (lowOpen ? value > low : value >= low) && (highOpen ? value < range.high : value <= range.high),
        )
        expect(pairs.count(range)).toBe(within.length)
      },
    ),
    { numRuns: 150 },
  )
})

it('have none between a number and itself, wherever blocks are split', () => {
  const pairs = createNumberPairs()
  for (let at = 0; at < 1300; at++) pairs.append(Math.floor(at / 40), at % 40)
  for (let value = 0; value < 33; value++) {
    const range = { low: value, high: value, lowOpen: true, highOpen: true }
    expect(pairs.count(range)).toBe(0)
    pairs.each(range, () => expect.unreachable())
  }
})

it('free the memory of removed pairs', () => {
  const pairs = createNumberPairs()
  for (let rid = 0; rid < 10_000; rid++) pairs.append(1, rid)
  const full = pairs.bytes()
  for (let rid = 0; rid < 9_500; rid++) pairs.remove(1, rid)
  expect(pairs.bytes()).toBeLessThanOrEqual(full / 10)
  expect(pairs.count(every)).toBe(500)
})
