/** The check values of reward and punishment, and the definition as a sum over all updates. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { punish, type Rating, rate, ratedValue, unrated } from './rating.ts'

function valuesAfter(updates: readonly boolean[]): (number | undefined)[] {
  let rating: Rating = unrated
  return updates.map((isGood) => {
    rating = rate(rating, isGood)
    return ratedValue(rating)
  })
}

const updatesIn = (text: string): boolean[] => [...text].map((update) => update === '+')

/** The definition, step by step. */
function defined(updates: readonly boolean[]): number[] {
  const window = [1, 1, 1, 1, 1]
  let reward = 1
  return updates.map((isGood) => {
    const alpha = isGood ? 1 : 0
    const good = window.slice(0, 4).reduce((sum, one) => sum + one, 0)
    reward -= 2 * (good / 4 - (good + alpha) / 5)
    window.unshift(alpha)
    window.pop()
    return Math.round(Math.min(1, Math.max(0, reward)) * 100) / 100
  })
}

describe('the rated value', () => {
  it.each([
    ['five failures', '-----', [0.6, 0.3, 0.1, 0, 0]],
    ['one failure, then successes', '-++++', [0.6, 0.7, 0.8, 0.9, 1]],
    ['two failures, then successes', '--++++', [0.6, 0.3, 0.5, 0.7, 0.9, 1]],
    ['recovery from 0', '-----++++', [0.6, 0.3, 0.1, 0, 0, 0.4, 0.7, 0.9, 1]],
  ])('is that of the specification after %s', (_, updates, expected) => {
    expect(valuesAfter(updatesIn(updates))).toEqual(expected)
  })

  it('alternates between 0.4 and 0.6 if updates alternate', () => {
    expect(valuesAfter(updatesIn('-+'.repeat(20))).slice(-2)).toEqual([0.4, 0.6])
  })

  it('is absent before the first update', () => {
    expect(ratedValue(unrated)).toBeUndefined()
    expect(ratedValue(punish(unrated, 0))).toBeUndefined()
  })

  it('equals the definition after any updates', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 300 }), (updates) => {
        expect(valuesAfter(updates)).toEqual(defined(updates))
      }),
    )
  })

  it('is the same after any number of punishments beyond three', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 1e9 }), (times) => {
        expect(ratedValue(punish(unrated, times))).toBe(0)
      }),
    )
  })
})
