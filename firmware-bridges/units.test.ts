/** Units: registered ones by the registry, written ones by common usage, all others stored as text. */
import { expect, it } from 'vitest'
import { senmlUnit, timesSecond, writtenUnit } from './units.ts'

it.each([
  ['Cel', 'CEL'],
  ['%RH', 'P1'],
  ['/', 'C62'],
  ['C', 'COU'],
  ['F', 'FAR'],
  ['lat', 'DD'],
  ['m', 'MTR'],
  ['ug/m3', 'GQ'],
  ['kWh', 'KWH'],
  ['dBW', 'DBW'],
  ['lux', 'LUX'],
  ['°C', 'CEL'],
  ['CEL', 'CEL'],
])('SenML %s is %s', (text, unitCode) => expect(senmlUnit(text)).toEqual({ unitCode }))

it.each([
  ['C', 'CEL'],
  ['°F', 'FAH'],
  ['µg/m³', 'GQ'],
  ['μg/m^3', 'GQ'],
  [' km / h ', 'KMH'],
  ['W·h', 'WHR'],
  ['mW', 'C31'],
  ['MW', 'MAW'],
  ['Degrees Celsius', 'CEL'],
  ['Percent', 'P1'],
  ['°', 'DD'],
  ['KWH', 'KWH'],
])('written %s is %s', (text, unitCode) => expect(writtenUnit(text)).toEqual({ unitCode }))

it('keeps an unknown unit as text', () => {
  expect(senmlUnit('furlong')).toEqual({ unitText: 'furlong' })
  expect(writtenUnit('constructor')).toEqual({ unitText: 'constructor' })
  expect(writtenUnit(' mmHg')).toEqual({ unitText: ' mmHg' })
})

it('has no unit if none is written', () => {
  for (const text of [undefined, null, '', '  ', 7, Number.NaN, {}]) expect(writtenUnit(text)).toEqual({})
  expect(senmlUnit('')).toEqual({})
  expect(timesSecond(undefined)).toEqual({})
})

it('multiplies by a second', () => {
  expect(timesSecond('W')).toEqual({ unitCode: 'JOU' })
  expect(timesSecond('Cel')).toEqual({ unitText: 'Cel.s' })
})
