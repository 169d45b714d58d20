/** What another broker says that it holds is not told again; all else is. */
import { describe, expect, it } from 'vitest'
import { historyQuery, withoutKnown } from './dedupe-history.ts'

const observed = (value: number, more: object = {}) => ({
  type: 'Property',
  value,
  observedAt: `2026-01-01T00:00:0${value}Z`,
  ...more,
})
const left = (answer: unknown) =>
  withoutKnown(
    new Map([['level', [observed(1), observed(2), observed(3, { datasetId: 'urn:d' })]]]),
    typeof answer === 'string' ? answer : JSON.stringify(answer),
  )
const values = (answer: unknown): unknown[] => (left(answer).get('level') ?? []).map(({ value }) => value)

describe('what is known at another broker', () => {
  it('is not told again, however it is written there', () => {
    const there = {
      instanceId: 'urn:i',
      observedAt: '2026-01-01T00:00:01.000000Z',
      type: 'Property',
      value: 1,
    }
    expect(values({ id: 'urn:a', level: [there] })).toEqual([2, 3])
    expect(values({ id: 'urn:a', level: there })).toEqual([2, 3])
  })

  it('is another value, another time or another dataset', () => {
    expect(
      values({
        level: [
          { ...observed(1), value: 9 },
          { ...observed(2), observedAt: observed(1).observedAt },
          observed(3),
        ],
      }),
    ).toEqual([1, 2, 3])
  })

  it('is everything where there is nothing left, and nothing where the answer cannot be read', () => {
    expect(left({ level: [observed(1), observed(2), observed(3, { datasetId: 'urn:d' })] }).size).toBe(0)
    for (const answer of ['', '[]', '{"level":7}']) expect(values(answer)).toEqual([1, 2, 3])
  })

  it('is asked for with room at both edges', () => {
    const query = new URL(historyQuery('urn:a:1', left({})), 'http://x').searchParams
    expect([query.get('timeAt'), query.get('endTimeAt'), query.get('lastN')]).toEqual([
      '2026-01-01T00:00:00.999Z',
      '2026-01-01T00:00:03.001Z',
      '6',
    ])
  })
})
