/** From when and until when a rule matches. */
import { expect, it } from 'vitest'
import { createHold, takeHold } from './hold.ts'

it('matches from the threshold on until the statistic is below 0.7 of it', () => {
  const hold = createHold()
  const matches = [0.9, 1, 0.71, 0.69, 0.9].map(
    (statistic, time) => takeHold(hold, { statistic, time }) !== undefined,
  )
  expect(matches).toEqual([false, true, true, false, false])
})

it('begins when the statistic rose above half the threshold', () => {
  const hold = createHold()
  const begun = [0.6, 0.4, 0.5, 0.9, 1.2].map((statistic, time) => takeHold(hold, { statistic, time }))
  expect(begun.at(-1)).toBe(2)
})

it('ends at a share of its own, if the rule has one', () => {
  const hold = createHold()
  takeHold(hold, { statistic: 1, time: 0 })
  expect(takeHold(hold, { statistic: 0.6, time: 1, endShare: 0.5 })).toBe(0)
  expect(takeHold(hold, { statistic: 0.49, time: 2, endShare: 0.5 })).toBeUndefined()
})
