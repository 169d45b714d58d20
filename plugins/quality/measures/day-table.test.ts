/** Counts of the last 24 hours against a list of all events. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addRare, addReceived, addSpan, binMs, dayMs, daySums, moveOn } from './day-table.ts'
import { createRecordRows } from './record-rows.ts'

const begin = Date.parse('2026-06-01T00:00:00Z')
const hour = 3_600_000
const records = createRecordRows()

it('has the sums of the last 24 hours, within the half hour in which they begin', () => {
  const step = fc.integer({ min: 0, max: 5 * hour })
  const event = fc.record({ step, late: fc.integer({ min: 0, max: 30 * hour }) })
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 80 }), step, (events, silence) => {
      const table = records.create()
      const times: number[] = []
      let newest = begin
      for (const { step: length, late } of events) {
        moveOn(table, newest, newest + length)
        newest += length
        times.push(newest - late)
        addReceived(table, newest - late, newest)
      }
      const at = newest + silence
      const { received } = daySums(table, at, { newest, intervalMs: 1000 })
      const countFrom = (from: number): number => times.filter((time) => time > from).length
      expect(received).toBeGreaterThanOrEqual(countFrom(at - dayMs + binMs) - 1e-6)
      expect(received).toBeLessThanOrEqual(countFrom(at - dayMs - binMs) + 1e-6)
    }),
  )
})

it('has the exact sum of regular values that come at most each half hour, whenever they begin', () => {
  const interval = fc.constantFrom(30, 60, 120, 180, 720)
  fc.assert(
    fc.property(
      interval,
      fc.integer({ min: 0, max: 59 }),
      fc.array(fc.boolean(), { minLength: 60, maxLength: 120 }),
      (minutes, phase, present) => {
        const intervalMs = minutes * 60_000
        const table = records.create()
        let newest = begin
        const times = present.flatMap((isPresent, i) =>
          isPresent ? [begin + phase * 60_000 + i * intervalMs] : [],
        )
        for (const time of times) {
          moveOn(table, newest, time)
          newest = time
          addReceived(table, time, newest)
        }
        expect(daySums(table, newest, { newest, intervalMs }).received).toBeCloseTo(
          times.filter((time) => time > newest - dayMs).length,
          6,
        )
      },
    ),
  )
})

it('counts each row by itself, and nothing that is older than its half hours', () => {
  const table = records.create()
  const sums = (at: number) => daySums(table, at, { newest: at, intervalMs: hour })
  for (let i = 0; i < 3; i++) addReceived(table, begin, begin)
  addRare(table, { row: 'excused', time: begin, count: 2 }, begin)
  addRare(table, { row: 'late', time: begin - 26 * hour, count: 9 }, begin)
  expect(sums(begin)).toEqual({ received: 3, excused: 2, late: 0, outageSeconds: 0 })
  moveOn(table, begin, begin + 25 * hour)
  expect(sums(begin + 25 * hour).received).toBe(0)
})

it('spreads what happened in a span over its half hours', () => {
  const table = records.create()
  const to = begin + 30 * hour
  moveOn(table, begin, to)
  addSpan(table, { row: 'outageSeconds', from: begin, to }, (from, until) => (until - from) / 1000)
  for (const later of [0, 6 * hour, 12.25 * hour]) {
    moveOn(table, to, to + later)
    const { outageSeconds } = daySums(table, to + later, { newest: to + later, intervalMs: hour })
    expect(outageSeconds).toBeCloseTo((24 * hour - later) / 1000, -2)
  }
})

it('counts more values in a half hour than 16 bits hold', () => {
  const table = records.create()
  for (let i = 0; i < 200_000; i++) addReceived(table, begin + i, begin + i)
  const newest = begin + 200_000
  expect(daySums(table, newest, { newest, intervalMs: 1 }).received).toBe(200_000)
  moveOn(table, newest, begin + 30 * hour)
  addReceived(table, begin + 30 * hour, begin + 30 * hour)
  expect(daySums(table, begin + 30 * hour, { newest: begin + 30 * hour, intervalMs: 1 }).received).toBe(1)
})
