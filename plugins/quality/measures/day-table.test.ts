/** Counts of the last 24 hours against a list of all events. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addTo, dayMs, daySums, moveOn, newDayTable } from './day-table.ts'

const begin = Date.parse('2026-06-01T00:00:00Z')
const hour = 3_600_000

it('has the sums of the last 24 hours, within the hour in which they begin', () => {
  const step = fc.integer({ min: 0, max: 5 * hour })
  const event = fc.record({ step, late: fc.integer({ min: 0, max: 30 * hour }) })
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 80 }), step, (events, silence) => {
      const table = newDayTable()
      const times: number[] = []
      let newest = begin
      for (const { step: length, late } of events) {
        moveOn(table, newest, newest + length)
        newest += length
        times.push(newest - late)
        addTo(table, { row: 'received', time: newest - late, count: 1 }, newest)
      }
      const at = newest + silence
      const { received } = daySums(table, at, newest)
      const countFrom = (from: number): number => times.filter((time) => time > from).length
      expect(received).toBeGreaterThanOrEqual(countFrom(at - dayMs + hour) - 1e-6)
      expect(received).toBeLessThanOrEqual(countFrom(at - dayMs - hour) + 1e-6)
    }),
  )
})

it('counts each row by itself, and nothing that is older than its hours', () => {
  const table = newDayTable()
  addTo(table, { row: 'received', time: begin, count: 3 }, begin)
  addTo(table, { row: 'excused', time: begin, count: 2 }, begin)
  addTo(table, { row: 'timely', time: begin - 26 * hour, count: 9 }, begin)
  expect(daySums(table, begin, begin)).toEqual({ received: 3, excused: 2, timely: 0, outageSeconds: 0 })
  moveOn(table, begin, begin + 25 * hour)
  expect(daySums(table, begin + 25 * hour, begin + 25 * hour).received).toBe(0)
})
