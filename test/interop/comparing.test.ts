/** Two brokers hold the same however they write it, and differ where they do not. */
import { describe, expect, it } from 'vitest'
import { canonicalEntity, entityDifferences, historyDifference } from './comparing.ts'

const differences = (ours: object, theirs: object): readonly string[] =>
  entityDifferences(canonicalEntity({ id: 'urn:a', ...ours }), canonicalEntity({ id: 'urn:a', ...theirs }))
const level = (value: number, more: object = {}): object => ({ type: 'Property', value, ...more })

describe('entities', () => {
  it.each([
    [
      'times with fractions',
      { level: level(1, { observedAt: '2026-01-01T00:00:00Z' }) },
      { level: level(1, { observedAt: '2026-01-01T00:00:00.000000Z' }) },
    ],
    [
      'order, and what a broker adds',
      { a: level(1), b: level(2) },
      { b: level(2, { createdAt: 'x' }), a: level(1), modifiedAt: 'x' },
    ],
    ['lists of one', { type: 'Tank', a: level(1) }, { type: ['Tank'], a: [level(1)] }],
    [
      'names with the default context',
      { a: level(1) },
      { 'https://uri.etsi.org/ngsi-ld/default-context/a': level(1) },
    ],
    [
      'datasets in another order',
      { a: [level(1), level(2, { datasetId: 'urn:d' })] },
      { a: [level(2, { datasetId: 'urn:d' }), level(1)] },
    ],
  ])('are the same: %s', (_, ours, theirs) => {
    expect(differences(ours, theirs)).toEqual([])
  })

  it('differ by value, by presence and by existence', () => {
    expect(differences({ a: level(1) }, { a: level(2) })).toHaveLength(1)
    expect(differences({ a: level(1) }, {})).toHaveLength(1)
    expect(differences({}, { a: level(1) })).toHaveLength(1)
    expect(
      differences({ a: { type: 'Property', value: [1, 2] } }, { a: { type: 'Property', value: [2, 1] } }),
    ).toHaveLength(1)
    expect(entityDifferences({}, undefined)).toEqual(['is not there'])
    expect(entityDifferences(undefined, {})).toEqual(['is still there'])
  })
})

it('histories differ by what is missing, what is there twice and what nobody made', () => {
  const difference = historyDifference(
    [
      [1, 10],
      [2, 20],
      [3, 30],
    ],
    [
      [1, 10],
      [1, 10],
      [3, 31],
    ],
  )
  expect(difference).toEqual({ missing: 2, repeated: 1, foreign: 1 })
})
