/** History that another broker already holds is not sent again; all other history is. */
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

describe('history known at another broker', () => {
  it('is not sent again, in whatever notation the broker returns it', () => {
    const there = {
      instanceId: 'urn:i',
      observedAt: '2026-01-01T00:00:01.000000Z',
      type: 'Property',
      value: 1,
    }
    expect(values({ id: 'urn:a', level: [there] })).toEqual([2, 3])
    expect(values({ id: 'urn:a', level: there })).toEqual([2, 3])
  })

  it('does not cover another value, time or dataset', () => {
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

  it('covers everything if nothing is left to send, and nothing if the response is unreadable', () => {
    expect(left({ level: [observed(1), observed(2), observed(3, { datasetId: 'urn:d' })] }).size).toBe(0)
    for (const answer of ['', '[]', '{"level":7}']) expect(values(answer)).toEqual([1, 2, 3])
  })

  it('is queried with a margin at both edges', () => {
    const query = new URL(historyQuery('urn:a:1', left({})), 'http://x').searchParams
    expect([query.get('timeAt'), query.get('endTimeAt'), query.get('lastN')]).toEqual([
      '2026-01-01T00:00:00.999Z',
      '2026-01-01T00:00:03.001Z',
      '6',
    ])
  })
})
