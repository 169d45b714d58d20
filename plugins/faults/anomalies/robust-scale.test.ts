/** The location and scale of a stream, and what an outlier does to them. */
import { expect, it } from 'vitest'
import { createRobustScale } from './robust-scale.ts'

/** A scale that learned values of -1 and 1 in turn. */
function learned(count: number) {
  const scale = createRobustScale()
  for (let i = 0; i < count; i++) scale.learn(i % 2 === 0 ? -1 : 1)
  return scale
}

it('is the mean and the standard deviation of the values', () => {
  const scale = learned(1000)
  expect([scale.count(), scale.location()]).toEqual([1000, expect.closeTo(0)])
  expect(scale.deviation()).toBeCloseTo(1)
})

it('takes an outlier for one of four deviations', () => {
  const scale = learned(1000)
  scale.learn(1e6)
  expect(scale.location()).toBeCloseTo(4 / 1001, 4)
})

it('takes the first 64 values as they are', () => {
  const scale = learned(63)
  scale.learn(640)
  expect(scale.location()).toBeCloseTo(10, 0)
})

it('follows from the first other value on if all were equal', () => {
  const scale = createRobustScale()
  for (let i = 0; i < 100; i++) scale.learn(7)
  scale.learn(108)
  expect(scale.location()).toBeCloseTo(8)
})
