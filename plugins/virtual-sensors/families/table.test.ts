/** Which sources and slots a virtual sensor learns from. */
import { expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { trainingTable } from './table.ts'

const slotMs = 60_000
const count = 400
const random = createSeededRandom(3)
const values = Float64Array.from({ length: count }, random)
const times = Float64Array.from(values, (_, i) => i * slotMs)

/** A source that equals the target, with a value in the first slots only. */
const source = (id: string, known: number) => ({
  id,
  latitude: 0,
  longitude: 0,
  distance: 1,
  times,
  values: values.map((value, i) => (i < known ? value : Number.NaN)),
})
const keptOf = (...known: readonly number[]) => {
  const sources = known.map((one, i) => source(`s${i}`, one))
  const table = trainingTable({ target: { latitude: 0, longitude: 0 }, sources, slotMs }, { times, values })
  return typeof table === 'string' ? table : table.sources.map(({ id }) => id)
}

it('keeps sources of which at least 60 % of the slots have all', () => {
  expect(keptOf(count, 250)).toEqual(['s0', 's1'])
  expect(keptOf(count, 240 - 10)).toEqual(['s0'])
})

it('leaves out the source with the most gaps first', () => {
  expect(keptOf(100, count, 300)).toEqual(['s1', 's2'])
})

it('says why there is no table', () => {
  expect(keptOf(40)).toBe('not-enough-data')
  const noise = { ...source('n', count), values: values.map(random) }
  const input = { target: { latitude: 0, longitude: 0 }, sources: [noise], slotMs }
  expect(trainingTable(input, { times, values })).toBe('no-correlating-source')
})
