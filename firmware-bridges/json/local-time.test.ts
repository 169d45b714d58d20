/** Local times by time zone: round trips for every hour of a year except the two clock changes. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseTimeZone } from './local-time.ts'

const zones = [
  'Europe/Vienna',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Africa/Casablanca',
  'UTC',
]

/** Local time of a zone, as if it were UTC. */
function shown(zone: string, instant: number): number {
  const text = new Date(instant).toLocaleString('sv-SE', { timeZone: zone })
  return Date.parse(`${text.replace(' ', 'T')}Z`)
}

it.each(zones)('finds the instant of a local time in %s, received at that time', (name) => {
  const zone = parseTimeZone(name)!
  const instants = fc.integer({ min: Date.UTC(2015, 0) / 1000, max: Date.UTC(2035, 0) / 1000 })
  const property = fc.property(instants, fc.integer({ min: 0, max: 60 }), (seconds, delay) => {
    const instant = seconds * 1000
    expect(zone.instantOf(shown(name, instant), instant + delay * 1000)).toBe(instant)
  })
  fc.assert(property, { numRuns: 200 })
})

it('selects the instant nearer to the reception in the repeated hour', () => {
  const zone = parseTimeZone('Europe/Vienna')!
  const local = Date.UTC(2026, 9, 25, 2, 30)
  const [first, second] = [Date.UTC(2026, 9, 25, 0, 30), Date.UTC(2026, 9, 25, 1, 30)]
  for (const at of [first, second]) expect(zone.instantOf(local, at + 5000)).toBe(at)
  expect(zone.instantOf(local, second + 7 * 86_400_000)).toBe(second)
})

it('uses the offset before the change for a time in the skipped hour', () => {
  const zone = parseTimeZone('Europe/Vienna')!
  expect(zone.instantOf(Date.UTC(2026, 2, 29, 2, 30), 0)).toBe(Date.UTC(2026, 2, 29, 1, 30))
})

it('accepts fixed offsets and rejects other texts', () => {
  const noon = Date.UTC(2026, 0, 1, 12)
  expect(parseTimeZone('+02:00')!.instantOf(noon, 0)).toBe(noon - 7_200_000)
  expect(parseTimeZone('-0330')!.instantOf(noon, 0)).toBe(noon + 12_600_000)
  for (const text of ['', 'Vienna', 'CET+1', '+25:00', '+02:75', '\u0000', '../x'])
    expect(parseTimeZone(text)).toBeUndefined()
})

it('returns a finite instant for any time', () => {
  for (const name of [...zones, '+01:00']) {
    const property = fc.property(fc.integer({ min: -6.3e13, max: 2.54e14 }), (local) => {
      expect(Number.isSafeInteger(parseTimeZone(name)!.instantOf(local, 0))).toBe(true)
    })
    fc.assert(property, { numRuns: 50 })
  }
})
