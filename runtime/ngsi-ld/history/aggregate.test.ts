/** Aggregates of values over periods. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import { aggregateMethods, createAggregation, periodOf } from './aggregate.ts'

const hour = parseDuration('PT1H')!
const from = Date.UTC(2025, 0, 1)
const all = new Set(aggregateMethods)
const resultsOf = (values: readonly (readonly [minute: number, value: Json])[], kind = 'Property') => {
  const aggregation = createAggregation(all, { from, duration: hour }, from, kind)
  for (const [minute, value] of values) aggregation.add(from + minute * 60_000, value)
  return aggregation.results()
}
const counted = ['totalCount', 'distinctCount']
const typed = (type: string, value: string): Json => ({ '@type': type, '@value': value })
const first = ['2025-01-01T00:00:00Z', '2025-01-01T01:00:00Z']

it("returns each method's results per period, and omits periods without values", () => {
  const third = ['2025-01-01T02:00:00Z', '2025-01-01T03:00:00Z']
  const results = resultsOf([
    [0, 2],
    [59, 4],
    [120, 4],
  ])
  expect(results).toEqual({
    totalCount: [
      [2, ...first],
      [1, ...third],
    ],
    distinctCount: [
      [2, ...first],
      [1, ...third],
    ],
    sum: [
      [6, ...first],
      [4, ...third],
    ],
    avg: [
      [3, ...first],
      [4, ...third],
    ],
    min: [
      [2, ...first],
      [4, ...third],
    ],
    max: [
      [4, ...first],
      [4, ...third],
    ],
    stddev: [
      [1, ...first],
      [0, ...third],
    ],
    sumsq: [
      [20, ...first],
      [16, ...third],
    ],
  })
})

it('computes the exact deviation of integers', () => {
  const aggregation = createAggregation(new Set(['stddev']), {}, 0)
  for (const [i, value] of [1, 2, 2, 5].entries()) aggregation.add(i, value)
  expect(aggregation.results()['stddev']).toEqual([[1.5, expect.any(String), expect.any(String)]])
})

describe('values that are not numbers', () => {
  it.each<[string, Json[], object]>([
    ['booleans are 0 and 1', [true, false, true], { sum: [[2, ...first]], max: [[1, ...first]] }],
    ['arrays count by size', [[1, 2], [], [7]], { sum: [[3, ...first]], min: [[0, ...first]] }],
    ['texts have an order', ['b', 'a'], { min: [['a', ...first]], max: [['b', ...first]] }],
    [
      'date-times have an order',
      [typed('DateTime', '2025-01-01T00:00:00.5Z'), typed('DateTime', '2025-01-01T00:00:00Z')],
      {
        min: [[typed('DateTime', '2025-01-01T00:00:00Z'), ...first]],
        max: [[typed('DateTime', '2025-01-01T00:00:00.5Z'), ...first]],
      },
    ],
    [
      'times of day have a mean',
      [typed('Time', '10:00:00Z'), typed('Time', '13:00:00Z')],
      { avg: [[typed('Time', '11:30:00Z'), ...first]], max: [[typed('Time', '13:00:00Z'), ...first]] },
    ],
  ])('%s', (_, values, expected) => {
    expect(resultsOf(values.map((value, i) => [i, value] as const))).toMatchObject(expected)
  })

  it('texts have no sum, objects only a count', () => {
    expect(Object.keys(resultsOf([[0, 'a']]))).toEqual(['totalCount', 'distinctCount', 'min', 'max'])
    expect(Object.keys(resultsOf([[0, { a: 1 }]]))).toEqual(counted)
  })

  it('dates have no mean, sizes of arrays no deviation and no squares', () => {
    const keysOf = (value: Json): string[] => Object.keys(resultsOf([[0, value]]))
    expect(keysOf(typed('Date', '2025-01-01'))).toEqual([...counted, 'min', 'max'])
    expect(keysOf(typed('Date', 'today'))).toEqual(counted)
    expect(keysOf(typed('Colour', 'red'))).toEqual(counted)
    expect(keysOf([1])).toEqual([...counted, 'sum', 'avg', 'min', 'max'])
  })

  it.each(['Relationship', 'ListRelationship', 'VocabProperty', 'LanguageProperty', 'GeoProperty'])(
    'a %s is only counted',
    (kind) => {
      const results = resultsOf(
        [
          [0, 'urn:a:1'],
          [1, ['urn:a:1', 'urn:a:2']],
        ],
        kind,
      )
      expect(results).toEqual({ totalCount: [[2, ...first]], distinctCount: [[2, ...first]] })
    },
  )
})

it('without a duration one period holds all values', () => {
  const aggregation = createAggregation(new Set(['totalCount']), {}, from)
  aggregation.add(from, 1)
  aggregation.add(from + 5000, 1)
  expect(aggregation.results()).toEqual({
    totalCount: [[2, '2025-01-01T00:00:00Z', '2025-01-01T00:00:05Z']],
  })
})

it('the number of periods is bounded', () => {
  const aggregation = createAggregation(new Set(['sum']), { duration: parseDuration('PT1S')! }, from)
  expect(() => {
    for (let i = 0; i <= limits.aggregatePeriodsMax.value; i++) aggregation.add(from + i * 1000, 1)
  }).toThrow(/periods/)
})

it('a time lies in its period, for every duration', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10 * 366 * 86_400_000 }),
      fc.constantFrom('PT1H', 'P1D', 'P1M', 'P1Y', 'P1M3D', 'PT7.5S'),
      (after, text) => {
        const { start, end } = periodOf(from + after, from, parseDuration(text))
        return start <= from + after && from + after < end
      },
    ),
  )
})

it('statistics of many values give the same result as the values', () => {
  const value = fc.double({ min: -1e6, max: 1e6, noNaN: true })
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), fc.array(value, { minLength: 1 }), (a, b) => {
      const methods = new Set(['totalCount', 'sum', 'min', 'max', 'stddev'] as const)
      const [singly, together] = [0, 1].map(() => createAggregation(methods, {}, from))
      for (const one of [...a, ...b]) singly!.add(from, one)
      for (const many of [a, b]) {
        const sum = many.reduce((total, one) => total + one, 0)
        const sumsq = many.reduce((total, one) => total + one * one, 0)
        const [min, max] = [Math.min(...many), Math.max(...many)]
        together!.addMany(from, from, { count: many.length, min, max, sum, sumsq })
      }
      const numbers = (results: object): number[] =>
        Object.values(results).map((rows: [number][]) => rows[0]![0])
      const [x, y] = [numbers(singly!.results()), numbers(together!.results())]
      for (const [i, one] of x.entries()) expect(y[i]).toBeCloseTo(one, 3)
    }),
  )
})
