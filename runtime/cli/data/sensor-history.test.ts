/** CSV histories of the original fault detection: every value, and every malformed line with its number. */
import { expect, it } from 'vitest'
import { createHistoryReader, historyName } from './sensor-history.ts'

function read(text: string, piece = text.length || 1) {
  const reader = createHistoryReader()
  const pieces = text.match(new RegExp(`[^]{1,${piece}}`, 'g')) ?? []
  return [...pieces.flatMap((one) => [...reader.read(one)]), ...reader.end()]
}
const at = (text: string): number => Date.parse(text)

it('reads each value after the header, with or without a zone, and from files without a header', () => {
  const lines = ['2020-01-01T00:00:00Z,1.5', '2020-01-01 00:01:00,"2"', '2020-01-01T01:02:00+01:00,-3e1,more']
  const values = [
    { time: at('2020-01-01T00:00:00Z'), value: 1.5 },
    { time: at('2020-01-01T00:01:00Z'), value: 2 },
    { time: at('2020-01-01T00:02:00Z'), value: -30 },
  ]
  expect(read(['time,value', ...lines, ''].join('\r\n'))).toEqual(values)
  expect(read(lines.join('\n'))).toEqual(values)
})

it('names each malformed line by its number', () => {
  const text =
    'time,value\n2020-01-01T00:00:00Z,1\nyesterday,2\n\n2020-01-01T00:02:00Z,\nalone\n2020-01-01T00:03:00Z,4'
  expect(read(text)).toEqual([
    { time: at('2020-01-01T00:00:00Z'), value: 1 },
    { line: 3, reason: 'the first column must be an ISO time, got "yesterday"' },
    { line: 5, reason: 'the second column must be a number, got ""' },
    { line: 6, reason: 'needs a time and a value, separated by a comma: "alone"' },
    { time: at('2020-01-01T00:03:00Z'), value: 4 },
  ])
  expect(read(`a,b\n${'x'.repeat(50_000)}\n2020-01-01T00:00:00Z,1`, 1000)).toEqual([
    { line: 2, reason: 'is longer than 10000 characters' },
    { time: at('2020-01-01T00:00:00Z'), value: 1 },
  ])
})

it('reads the same whatever the pieces are', () => {
  const text = 'time,value\n2020-01-01T00:00:00Z,1\nwrong\n2020-01-01T00:01:00Z,2\n'
  const whole = read(text)
  for (let size = 1; size <= text.length; size++) expect(read(text, size)).toEqual(whole)
})

it('names the file of a sensor as the original did', () => {
  expect(historyName('urn:ngsi-ld:Sensor:b1:temperature')).toBe('urn_ngsi-ld_Sensor_b1_temperature')
})
