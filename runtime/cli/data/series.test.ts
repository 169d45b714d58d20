/** Reading recorded series: wide, long, single, without times, places, and unknown tables. */
import { describe, expect, it } from 'vitest'
import { readTable } from './series.ts'

const pace = { step: 5000, end: 1_000_000 }
const read = (name: string, ...lines: string[]) => readTable(name, lines.join('\n'), pace)
const at = (iso: string): number => Date.parse(iso)

describe('readTable', () => {
  it('reads one column per device; the file names the quantity, an empty cell is missing', () => {
    expect(
      read('pm25', 'time,Dongsi,Gucheng', '2015-03-01T00:00,53,21', '2015-03-01T01:00,,14.5', ''),
    ).toEqual({
      kind: 'samples',
      samples: [
        { at: at('2015-03-01T00:00Z'), device: 'Dongsi', values: [['pm25', 53]] },
        { at: at('2015-03-01T00:00Z'), device: 'Gucheng', values: [['pm25', 21]] },
        { at: at('2015-03-01T01:00Z'), device: 'Gucheng', values: [['pm25', 14.5]] },
      ],
    })
  })

  it('reads one row per device and time; the columns name the quantities', () => {
    const table = read(
      'hop',
      'reading,mote_id,humidity,temperature',
      '1,1,43.8,30.2',
      '2,1,NA,30.1',
      '1,2,40,29',
    )
    expect(table).toEqual({
      kind: 'samples',
      samples: [
        {
          at: 995_000,
          device: 'hop-1',
          values: [
            ['humidity', 43.8],
            ['temperature', 30.2],
          ],
        },
        { at: 1_000_000, device: 'hop-1', values: [['temperature', 30.1]] },
        {
          at: 995_000,
          device: 'hop-2',
          values: [
            ['humidity', 40],
            ['temperature', 29],
          ],
        },
      ],
    })
  })

  it('reads a single column as one device, which the file names', () => {
    expect(read('machine', 'timestamp,value', '2013-12-02 21:15:00,73.9')).toEqual({
      kind: 'samples',
      samples: [{ at: at('2013-12-02T21:15:00Z'), device: 'machine', values: [['value', 73.9]] }],
    })
  })

  it('gives rows without times the times up to the end', () => {
    expect(read('speed', '773869,767541', '64.38,67.62', '62.67,')).toMatchObject({
      samples: [
        { at: 995_000, device: '773869' },
        { at: 995_000, device: '767541' },
        { at: 1_000_000, device: '773869' },
      ],
    })
  })

  it.each([
    ['2015-03-01T01:00', '2015-03-01T01:00:00Z'],
    ['2015-03-01 01:00:30', '2015-03-01T01:00:30Z'],
    ['2015-03-01T01:00+01:00', '2015-03-01T00:00:00Z'],
    ['2015-03-01', '2015-03-01T00:00:00Z'],
    ['1425171600', '2015-03-01T01:00:00Z'],
    ['1425171600500', '2015-03-01T01:00:00.500Z'],
  ])('reads the time %s', (cell, iso) => {
    expect(read('x', 'time,a,b', `${cell},1,2`)).toMatchObject({
      samples: [{ at: at(iso) }, { at: at(iso) }],
    })
  })

  it('reads places, longitude and latitude in any order', () => {
    expect(read('sensors', 'sensor_id,latitude,longitude', '7,34.1,-118.3', '8,,1')).toEqual({
      kind: 'places',
      places: new Map([['7', [-118.3, 34.1]]]),
    })
  })

  it.each([
    [['a,b'], 'it has no columns or no rows'],
    [['lonely', '1'], 'it has no columns or no rows'],
    [['4.40E+01,4.44E+01', '1,2'], 'its first line contains values instead of names'],
    [['time,a,b', 'yesterday,1,2'], 'it contains no number with a time'],
    [['time,a,b', '2015-03-01,x,Infinity'], 'it contains no number with a time'],
  ])('reports why %j is not a series', (lines, reason) => {
    expect(read('x', ...lines)).toEqual({ kind: 'unknown', reason })
  })

  it('accepts quotes and CRLF line ends', () => {
    expect(read('x', '"time","a","b"\r', '"2015-03-01","1","2"\r')).toMatchObject({
      samples: [{ device: 'a', values: [['x', 1]] }, { device: 'b' }],
    })
  })
})
