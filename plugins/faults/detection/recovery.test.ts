/** What is estimated for a stream whose sensor is faulty. */
import { expect, it } from 'vitest'
import { createRecoveryState, estimateAt, isNewEstimate, learnGood } from './recovery.ts'

const minute = 60_000

/** A state that learned values of 19 and 21 in turn. */
function learned(count: number) {
  const state = createRecoveryState()
  for (let i = 0; i < count; i++)
    learnGood(state, { time: i * minute, value: 20 + (i % 2 === 0 ? 1 : -1), slots: 1, neighbour: undefined })
  return state
}

const at = (count: number) => ({ time: count * minute, neighbour: undefined })

it('is the last good value until the daily profile is known', () => {
  expect(estimateAt(createRecoveryState(), at(0), minute)).toBeUndefined()
  expect(estimateAt(learned(199), at(199), minute)).toMatchObject({ method: 'last-value', value: 21 })
  expect(estimateAt(learned(200), at(200), minute)).toMatchObject({ method: 'profile' })
})

it('is that of the neighbours if they have one', () => {
  const neighbour = { value: 7, error: 1, isVarying: false, areAgreeing: true }
  expect(estimateAt(learned(300), { time: 0, neighbour }, minute)).toEqual({
    value: 7,
    error: 1,
    method: 'neighbours',
  })
})

it('moves by five standard deviations at most for an outlier', () => {
  const [large, huge] = [1000, 1_000_000].map((outlier) => {
    const state = learned(290)
    learnGood(state, { time: 290 * minute, value: 20 + outlier, slots: 1, neighbour: undefined })
    return state.profile[4]!
  })
  expect(huge).toBe(large)
  // From the 50th value of an hour on, each weighs a fiftieth.
  expect(huge! - learned(290).profile[4]!).toBeCloseTo((5 * Math.sqrt(learned(290).variance)) / 50, 6)
})

it('says something new after a tenth of its error', () => {
  const before = { value: 20, error: 1, method: 'profile' as const }
  expect(isNewEstimate({ ...before, value: 20.09 }, before)).toBe(false)
  expect(isNewEstimate({ ...before, value: 20.11 }, before)).toBe(true)
  expect(isNewEstimate({ ...before, method: 'last-value' }, before)).toBe(true)
})
