/** Intervals are learnt despite jitter, gaps and disorder; irregular observations have none. */
import { expect, it } from 'vitest'
import { learnInterval } from './update-interval.ts'

const start = 1_700_000_000_000
const every = (ms: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => start + index * ms)

it('needs ten intervals', () => {
  expect(learnInterval(every(10_000, 10))).toBeUndefined()
  expect(learnInterval(every(10_000, 11))).toBe(10)
  expect(learnInterval([...every(10_000, 10), ...every(10_000, 10)])).toBeUndefined()
  expect(learnInterval([])).toBeUndefined()
})

it('rounds to the precision that jitter allows', () => {
  const jitter = [0, 140, -90, 60, -20, 110, 35, -130, 80, 15, -60, 0]
  expect(learnInterval(jitter.map((ms, index) => start + index * 60_000 + ms))).toBe(60)
  expect(learnInterval(every(1504, 20))).toBe(1.5)
  expect(learnInterval(every(250, 20))).toBe(0.25)
  expect(learnInterval(every(0.1, 20))).toBe(0.001)
})

it('uses the median despite gaps and late arrivals', () => {
  const times = every(10_000, 30).filter((_, index) => index !== 7 && index !== 20)
  expect(learnInterval(times.reverse())).toBe(10)
})

it('learns nothing from irregular observations', () => {
  const doubling = Array.from({ length: 20 }, (_, index) => start + 1000 * 2 ** index)
  expect(learnInterval(doubling)).toBeUndefined()
  const halfRegular = [...every(1000, 10), ...every(37_000, 10).map((time) => time + 40_000)]
  expect(learnInterval(halfRegular)).toBeUndefined()
})
