/** Times in payloads: ISO 8601 with a time zone, and counts since 1970. */
import { expect, it } from 'vitest'
import { momentOf } from './moment.ts'

const noon = Date.UTC(2026, 2, 1, 12)

it.each([
  '2026-03-01T12:00:00Z',
  '2026-03-01T12:00Z',
  '2026-03-01 13:00:00+01',
  '2026-03-01T13:00:00,000+0100',
  '2026-03-01t06:30:00.000000-05:30',
])('reads %s', (text) => expect(momentOf(text, 'iso')).toEqual({ at: noon }))

it.each([
  ['2026-03-01T12:00:00', 'the time has no zone'],
  ['2026-02-30T12:00:00Z', 'this date or time does not exist'],
  ['2026-03-01T25:00:00Z', 'this date or time does not exist'],
  ['2026-03-01', 'must be an ISO 8601 date and time'],
  [noon, 'must be an ISO 8601 date and time'],
  [null, 'must be an ISO 8601 date and time'],
])('rejects %s', (value, reason) => expect(momentOf(value, 'iso')).toEqual({ reason }))

it('counts units since 1970', () => {
  expect(momentOf(1320067464.1234, 'unix')).toEqual({ at: 1320067464123 })
  expect(momentOf('1320067464', 'unix')).toEqual({ at: 1320067464000 })
  expect(momentOf(1320067464123, 'unix-ms')).toEqual({ at: 1320067464123 })
  expect(momentOf(1320067464123999, 'unix-us')).toEqual({ at: 1320067464124 })
})

it('rejects values that are not counts or out of range', () => {
  for (const value of ['', 'x', true, {}, [], '1e3', ' 1'])
    expect(momentOf(value, 'unix')).toEqual({ reason: 'must be a number of time units' })
  for (const value of [1e300, Number.POSITIVE_INFINITY, Number.NaN])
    expect(momentOf(value, 'unix')).toEqual({ reason: 'the time is out of range' })
})
