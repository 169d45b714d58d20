/**
 * The budget of a backlog: the order in which data is dropped, and that the rest fits.
 */
import { describe, expect, it } from 'vitest'
import { cutPortion, joinedPortions, stretchOf, weigh, withinBudget } from './budget.ts'

const minute = 60_000
const hour = 60 * minute
/** Ten hours of one numeric stream and one of states, each once a second. */
const volumes = Array.from({ length: 10 }, (_, i) => [
  { from: i * hour, to: (i + 1) * hour, observations: 3600, bytes: 7200, isNumeric: true, observedMs: hour },
  { from: i * hour, to: (i + 1) * hour, observations: 3600, bytes: 7200, isNumeric: false, observedMs: hour },
]).flat()
const parts = cutPortion({ from: 0, to: 10 * hour, level: 'full' }, 10, minute)
const weighed = weigh(parts, volumes, minute)
const none = { bytes: Number.POSITIVE_INFINITY, observations: Number.POSITIVE_INFINITY, oldest: 0 }
const levelsFor = (budget: object): string =>
  withinBudget(weighed, { ...none, ...budget })
    .map(({ level }) => level[0])
    .join('')

describe('the budget of a backlog', () => {
  it('changes nothing within the budget', () => {
    expect(levelsFor({ bytes: 144_000 })).toBe('ffffffffff')
  })

  it('thins the oldest numbers first, then drops numbers, then everything, oldest first', () => {
    expect(levelsFor({ observations: 65_000 })).toBe('ttffffffff')
    expect(levelsFor({ observations: 36_400 })).toBe('nnnntttttt')
    expect(levelsFor({ observations: 30_000 })).toBe('bbnnnnnnnn')
    expect(levelsFor({ observations: 0 })).toBe('bbbbbbbbbb')
    expect(levelsFor({ bytes: 130_000 })).toBe('ttffffffff')
  })

  it('drops numbers that are too old, and never restores a level', () => {
    expect(levelsFor({ oldest: 2.5 * hour })).toBe('nnffffffff')
    const before = weighed.map((one, i) => ({ ...one, level: i < 2 ? ('bare' as const) : one.level }))
    expect(
      withinBudget(before, none)
        .map(({ level }) => level)
        .slice(0, 3),
    ).toEqual(['bare', 'bare', 'full'])
  })

  it('produces as few spans as there are levels', () => {
    const portions = withinBudget(weighed, { ...none, observations: 65_000 })
    expect(joinedPortions(portions)).toEqual([
      { from: 0, to: 2 * hour, level: 'thinned' },
      { from: 2 * hour, to: 10 * hour, level: 'full' },
    ])
  })

  it('also counts observations that are fewer than the portions', () => {
    const parts = cutPortion({ from: 0, to: hour, level: 'full' }, 64, 1000)
    const few = { from: 0, to: hour, observations: 11, bytes: 33, isNumeric: true, observedMs: hour }
    const weighed = weigh(parts, [few], minute)
    expect(withinBudget(weighed, { ...none, observations: 11 })).toEqual(parts)
    const levels = withinBudget(weighed, { ...none, observations: 1 }).map(({ level }) => level)
    expect(levels.filter((level) => level === 'numberless').length).toBeGreaterThan(50)
    expect(levels.at(-1)).not.toBe('numberless')
  })

  it('leaves the span being sent alone', () => {
    expect(
      withinBudget(weighed, { ...none, observations: 0 }, 2)
        .map(({ level }) => level[0])
        .join(''),
    ).toBe('ffbbbbbbbb')
  })

  it('is defined for any period, including undecided ones', () => {
    const known = [
      { from: 10, to: 20, level: 'bare' as const },
      { from: 20, to: 30, level: 'thinned' as const },
    ]
    expect(stretchOf(known, 0, 40).map(({ from, level }) => `${from}${level}`)).toEqual([
      '0full',
      '10bare',
      '20thinned',
      '30full',
    ])
    expect(stretchOf(known, 15, 25).map(({ from, to, level }) => `${from}-${to}${level}`)).toEqual([
      '15-20bare',
      '20-25thinned',
    ])
    expect(stretchOf([], 5, 6)).toEqual([{ from: 5, to: 6, level: 'full' }])
    expect(stretchOf(known, 35, 35)).toEqual([])
  })
})
