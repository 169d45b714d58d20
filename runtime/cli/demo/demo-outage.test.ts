/** The schedule and the report of the simulated outage; values with unit symbols. */
import { expect, it } from 'vitest'
import { demoDevices } from './demo-devices.ts'
import { isDown, outageReport } from './demo-outage.ts'
import { withUnit } from './demo-units.ts'

it('starts soon after the site, ends within 15 seconds, and recurs every two minutes', () => {
  const down = Array.from({ length: 240 }, (_, second) => second).filter((second) => isDown(second * 1000))
  const once = Array.from({ length: 10 }, (_, i) => 5 + i)
  expect(down).toEqual([...once, ...once.map((second) => second + 120)])
})

it('reports sent, acknowledged, stored and missing values at its end', () => {
  expect(outageReport({ messages: 7, acknowledged: 7, values: 14, stored: 14 })).toBe(
    '7 messages with 14 values sent late, 7 messages acknowledged, 14 values stored: nothing was lost',
  )
  expect(outageReport({ messages: 7, acknowledged: 7, values: 14, stored: 11 })).toMatch(
    /11 values stored: 3 values are missing$/,
  )
  expect(outageReport({ messages: 7, acknowledged: 6, values: 14, stored: 14 })).not.toContain('nothing was')
})

it('has a symbol for each unit of the site, and shows unknown codes unchanged', () => {
  const shown = demoDevices.flatMap(({ fields }) => fields.map(({ unitCode }) => withUnit(1, unitCode)))
  expect(new Set(shown)).toEqual(
    new Set(['1 °C', '1 %', '1 ppm', '1 hPa', '1 m/s', '1 m', '1 l/s', '1', '1 W', '1 Wh', '1 W/m²']),
  )
  expect(withUnit(21.5, 'CEL')).toBe('21.5 °C')
  expect(withUnit(3, 'XYZ')).toBe('3 XYZ')
  expect(withUnit(3, undefined)).toBe('3')
})
