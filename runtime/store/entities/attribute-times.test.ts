/** The times of attributes are read back from their stored text unchanged. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type StoredTimes, storedTimes, timesText } from './attribute-times.ts'

const time = fc.integer({ min: Date.UTC(-1), max: 4_000_000_000_000 })
const stamps = fc.oneof(
  fc.tuple(time, time),
  fc.tuple(time, time, fc.string()),
  fc.constant<[number, number]>([7, 9]),
) as fc.Arbitrary<StoredTimes[string]>
const key = fc.string().filter((name) => name !== '__proto__')

it('reads what it wrote', () => {
  fc.assert(
    fc.property(time, fc.dictionary(key, stamps, { noNullPrototype: true }), (created, times) => {
      expect(storedTimes({ created, sys: timesText(created, times) })).toEqual(times)
    }),
  )
})

it('stores equal times once, so the text of a device is short', () => {
  const created = 1_795_268_405_857
  const times: StoredTimes = {
    temperature: [created, created + 60_000],
    humidity: [created, created + 60_000],
    location: [created, created],
    'name urn:d': [created + 5, created + 5, 'a 1.1 b'],
  }
  expect(timesText(created, times)).toBe(
    '[[0,60000,["temperature","humidity"]],[0,0,["location"]],[5,5,["name urn:d"],"a 1.1 b"]]',
  )
})

it('distinguishes an absent Via chain from an empty one', () => {
  const times: StoredTimes = { a: [1, 1], b: [1, 1, ''] }
  expect(storedTimes({ created: 1, sys: timesText(1, times) })).toEqual(times)
})
