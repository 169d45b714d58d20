/** DateTime, Date and Time of NGSI-LD. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  canonicalDateTime,
  dateTimeToMs,
  isDate,
  isMillisecondExact,
  isTime,
  msToDateTime,
  offsetDateTimeToMs,
} from './datetime.ts'

describe('a DateTime', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['2024-02-29T23:59:59.999Z', Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ['2024-02-29T23:59:59,5Z', Date.UTC(2024, 1, 29, 23, 59, 59, 500)],
    ['2000-02-29T00:00:00.123456Z', Date.UTC(2000, 1, 29, 0, 0, 0, 123)],
    ['1969-12-31T23:59:59.001Z', -999],
    ['0000-01-01T00:00:00Z', Date.parse('0000-01-01T00:00:00Z')],
    ['0099-03-01T00:00:00Z', Date.parse('0099-03-01T00:00:00Z')],
    ['9999-12-31T23:59:59.999Z', Date.parse('9999-12-31T23:59:59.999Z')],
  ])('%s is %d ms', (text, ms) => expect(dateTimeToMs(text)).toBe(ms))

  it.each([
    '2023-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-00-10T00:00:00Z',
    '2024-13-10T00:00:00Z',
    '2024-01-00T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:60:00Z',
    '2024-01-01T00:00:60Z',
    '2024-01-01T00:00:00',
    '2024-01-01T00:00:00+01:00',
    '2024-01-01T00:00Z',
    '2024-01-01 00:00:00Z',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T00:00:00.1234567Z',
    '2024-01-01T00:00:00z',
    '+02024-01-01T00:00:00Z',
    '2024-01-01',
    '',
  ])('is not "%s"', (text) => expect(dateTimeToMs(text)).toBeUndefined())

  it.each([
    ['2026-11-01T18:00:00+01:00', '2026-11-01T17:00:00Z'],
    ['2026-11-01T18:00:00 01:00', '2026-11-01T17:00:00Z'],
    ['2026-11-01T18:00:00.5-05:30', '2026-11-01T23:30:00.500Z'],
    ['2026-11-01T18:00:00Z', '2026-11-01T18:00:00Z'],
  ])('%s in a query is %s', (text, utc) => expect(offsetDateTimeToMs(text)).toBe(Date.parse(utc)))

  it.each([
    '2026-11-01T18:00:00',
    '2026-11-01T18:00+01:00',
    '2026-11-01T18:00:00+24:00',
    '2026-11-01T18:00:00+01:60',
    '2026-11-01T18:00:00+0100',
    '2026-11-01T18:00:00Z+01:00',
    '0000-01-01T00:00:00+01:00',
  ])('in a query is not "%s"', (text) => expect(offsetDateTimeToMs(text)).toBeUndefined())

  it('is written with three digits of a second or none', () => {
    expect(msToDateTime(0)).toBe('1970-01-01T00:00:00Z')
    expect(msToDateTime(10)).toBe('1970-01-01T00:00:00.010Z')
    expect(() => msToDateTime(Number.MAX_SAFE_INTEGER)).toThrow(/invariant/)
    expect(() => msToDateTime(Number.NaN)).toThrow(/invariant/)
  })

  it('is written as Date does, whatever was written before', () => {
    const times = fc.integer({
      min: Date.parse('0000-01-01T00:00:00Z'),
      max: Date.parse('9999-12-31T23:59:59.999Z'),
    })
    fc.assert(
      fc.property(fc.array(fc.oneof(times, fc.integer({ min: -600_000, max: 600_000 }))), (all) => {
        const expected = all.map((ms) => new Date(ms).toISOString().replace('.000Z', 'Z'))
        expect(all.map(msToDateTime)).toEqual(expected)
      }),
    )
  })

  it.each([
    ['2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z', true],
    ['2024-01-01T00:00:00.000Z', '2024-01-01T00:00:00Z', true],
    ['2024-01-01T00:00:00.1Z', '2024-01-01T00:00:00.100Z', true],
    ['2024-01-01T00:00:00,120000Z', '2024-01-01T00:00:00.120Z', true],
    ['2024-01-01T00:00:00,123450Z', '2024-01-01T00:00:00.12345Z', false],
    ['2024-01-01T00:00:00.000001Z', '2024-01-01T00:00:00.000001Z', false],
  ])('%s is stored as %s', (text, canonical, exact) => {
    expect(canonicalDateTime(text)).toBe(canonical)
    expect(isMillisecondExact(text)).toBe(exact)
    expect(isMillisecondExact(canonical)).toBe(exact)
    expect(dateTimeToMs(canonical)).toBe(dateTimeToMs(text))
  })

  it('is not stored if invalid', () => expect(canonicalDateTime('2024-01-01T25:00:00Z')).toBeUndefined())
})

describe('Date and Time', () => {
  it('are distinguished', () => {
    expect([isDate('2024-02-29'), isDate('2023-02-29'), isDate('2024-02-29T00:00:00Z')]).toEqual([
      true,
      false,
      false,
    ])
    expect([isTime('23:59:59Z'), isTime('23:59:59.123456Z'), isTime('24:00:00Z'), isTime('12:00Z')]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})
