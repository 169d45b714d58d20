/** The hours of the day in which windows lie. */
import { expect, it } from 'vitest'
import { parseTemporal, spanOf } from './temporal.ts'

/** A time of the zone of this process. */
const at = (day: number, hour: number, minute = 0): number => new Date(2026, 5, day, hour, minute).getTime()

it('gives all times one span without hours', () => {
  const temporal = parseTemporal(undefined)
  expect([spanOf(at(1, 0), temporal), spanOf(at(9, 12), temporal)]).toEqual([0, 0])
})

it('gives the hours of a day one span, from the first minute to the last', () => {
  const temporal = parseTemporal({ hours: '07:00-19:00' })
  const first = spanOf(at(1, 7), temporal)
  expect(first).toBeDefined()
  expect(spanOf(at(1, 18, 59), temporal)).toBe(first)
  expect(spanOf(at(2, 7), temporal)).toBe(first! + 1)
  expect([spanOf(at(1, 6, 59), temporal), spanOf(at(1, 19), temporal)]).toEqual([undefined, undefined])
})

it('gives the hours over midnight one span', () => {
  const temporal = parseTemporal({ hours: '22:00-06:00' })
  const evening = spanOf(at(1, 22), temporal)
  expect(evening).toBeDefined()
  expect([spanOf(at(2, 0), temporal), spanOf(at(2, 5, 59), temporal)]).toEqual([evening, evening])
  expect([spanOf(at(2, 6), temporal), spanOf(at(2, 12), temporal)]).toEqual([undefined, undefined])
  expect(spanOf(at(2, 22), temporal)).toBe(evening! + 1)
})

it.each(['7-19', '25:00-06:00', '24:00-06:00', '07:00-24:01', '07:00-07:00', 7])(
  'rejects the hours %s',
  (hours) => {
    expect(() => parseTemporal({ hours })).toThrow('temporal.hours')
  },
)
