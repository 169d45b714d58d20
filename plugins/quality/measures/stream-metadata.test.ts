/** Metadata of a stream from its Sensor, completed from the usual properties. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isPlausible } from './plausibility.ts'
import { metadataOf, type StreamMetadata } from './stream-metadata.ts'
import { usualProperties, usualTable } from './usual-properties.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
const to = (object: string) => ({ type: 'Relationship', object })
const entity = (id: string, attributes: object = {}) =>
  ({ id, type: 'x', ...attributes }) as unknown as Entity
const usual = usualProperties(usualTable({ 'parking spaces': { min: 0, updateInterval: 1800 } }), 0.8)

const described = (
  sensor: object,
  { label = undefined as string | undefined, id = 'urn:x:S' } = {},
): StreamMetadata =>
  metadataOf(
    {
      stream: entity('urn:x:I'),
      sensor: entity(id, sensor),
      property:
        label === undefined
          ? undefined
          : entity('urn:x:P', { 'http://www.w3.org/2000/01/rdf-schema#label': value(label) }),
    },
    usual,
  )
const intervalOf = (length: unknown, more: object = {}) =>
  described({ [`${qoi}updateinterval`]: value(length, more) }).intervalMs
const judged = (sensor: object, given: number | string | boolean, label?: string) =>
  isPlausible(given, described(sensor, { label }).range)
const range = (type: string | undefined, min: unknown, max: unknown, regexp?: unknown) => ({
  ...(type !== undefined && { [`${qoi}valuetype`]: value(type) }),
  ...(min !== undefined && { [`${qoi}min`]: value(min) }),
  ...(max !== undefined && { [`${qoi}max`]: value(max) }),
  ...(regexp !== undefined && { [`${qoi}regexp`]: value(regexp) }),
})

describe('the update interval', () => {
  it.each([
    ['ms', 1],
    ['milliseconds', 1],
    ['C26', 1],
    ['s', 1000],
    ['seconds', 1000],
    ['SEC', 1000],
    ['http://qudt.org/vocab/unit/SEC', 1000],
    ['minute', 60_000],
    ['min', 60_000],
    ['MIN', 60_000],
    ['unit:MIN', 60_000],
    ['hours', 3_600_000],
    ['HUR', 3_600_000],
    ['HR', 3_600_000],
    ['days', 86_400_000],
    ['DAY', 86_400_000],
    ['weeks', 604_800_000],
    ['WEE', 604_800_000],
    ['months', 2_629_800_000],
    ['MON', 2_629_800_000],
    ['year', 31_557_600_000],
    ['ANN', 31_557_600_000],
  ])('is read with the unit %s', (unit, ms) => {
    expect(intervalOf(2, { [`${qoi}unit`]: value(unit) })).toBe(2 * ms)
    expect(intervalOf(2, { [`${qoi}unit`]: unit })).toBe(2 * ms)
    expect(intervalOf('2', { unitCode: unit })).toBe(2 * ms)
  })

  it('counts in seconds without a unit, also as text with a datatype', () => {
    expect(intervalOf(30)).toBe(30_000)
    expect(intervalOf('30^^http://www.w3.org/2001/XMLSchema#integer')).toBe(30_000)
  })

  it('is unknown if it is NA, not above 0, or of an unknown unit', () => {
    for (const length of ['NA', 0, -5, '']) expect(intervalOf(length)).toBeUndefined()
    expect(intervalOf(5, { [`${qoi}unit`]: value('furlongs') })).toBeUndefined()
  })
})

describe('the plausible range', () => {
  it('includes bounds, also 0, and ignores those that are NA', () => {
    expect([-0.1, 0, 40, 40.1].map((given) => judged(range('float', 0, 40), given))).toEqual([
      false,
      true,
      true,
      false,
    ])
    expect([-5, 0, 1].map((given) => judged(range('int', 'NA', 0), given))).toEqual([true, true, false])
    expect(judged(range('double', '0^^xsd:double', 'NA'), '-1^^xsd:double')).toBe(false)
    expect(judged(range('float', 'NA', 'NA'), 1e9)).toBeUndefined()
  })

  it('follows the value type', () => {
    expect(judged(range('http://www.w3.org/2001/XMLSchema#float', 0, 40), 'warm')).toBe(false)
    expect(judged(range('NA', 0, 40), 50)).toBe(false)
    expect(judged(range('NA', 0, 40), 'warm')).toBeUndefined()
    expect(judged(range(undefined, 0, 40), 20)).toBe(true)
    expect(judged(range('boolean', 0, 1), true)).toBeUndefined()
  })

  it('of text is a pattern that matches as a whole', () => {
    const text = range('string', undefined, undefined, 'on|off')
    expect(['on', 'off', 'offline'].map((given) => judged(text, given))).toEqual([true, true, false])
    for (const regexp of [undefined, 'NA', '('])
      expect(judged(range('str', 0, 1, regexp), 'on')).toBeUndefined()
  })

  it('comes from a usual property with a similar label if none is declared', () => {
    const labels = ['temperature', 'Air Temperature', 'outdoorAirTemperature', 'temperature_2', 'Temperatur']
    for (const label of labels)
      expect({ label, judged: [-20, 50, 51].map((given) => judged({}, given, label)) }).toEqual({
        label,
        judged: [true, true, false],
      })
    // A qualifier may mean another quantity, of which other values are usual.
    const other = ['flow temperature', 'supplyTemperature', 'Boiler water temperature', 'flowtemperature']
    for (const label of [...other, 'cold temperature', 'tyre pressure', 'battery voltage', 'soil humidity'])
      expect({ label, judged: judged({}, 85, label) }).toEqual({ label, judged: undefined })
    for (const label of ['pm 10', 'PM10 concentration', 'battery level', 'mean wind speed', 'WindSpeed'])
      expect({ label, judged: judged({}, -1, label) }).toEqual({ label, judged: false })
    const unknown = ['', 'NA', 'noise', 'door', 'temper']
    expect(unknown.filter((label) => judged({}, 1e9, label) !== undefined)).toEqual([])
    expect(judged(range('float', undefined, 80), 79, 'temperature')).toBe(true)
    expect(judged({}, 4000, 'colour temperature')).toBe(true)
    expect(judged({}, 'grey', 'colour')).toBe(true)
    expect(judged({}, 'greyish', 'colour')).toBe(false)
    expect(judged(range('float', undefined, undefined), 3, 'colour')).toBeUndefined()
    expect(judged(range('string', undefined, undefined), 'aa:bb:cc:dd:ee:ff', 'MAC address')).toBe(true)
  })
})

describe('usual properties', () => {
  it('of the settings replace shipped ones, remove them, and give update intervals', () => {
    const table = usualProperties(
      usualTable({
        Temperature: { min: 0, max: 2000 },
        humidity: {},
        state: { regexp: 'open|shut', updateInterval: 5 },
      }),
      0.8,
    )
    expect(table.find('temperature')).toMatchObject({ range: { min: 0, max: 2000 } })
    expect(table.find('humidity')?.range).toBeUndefined()
    expect(table.find('state')).toMatchObject({ intervalMs: 5000, range: { kind: 'text' } })
    expect(table.find('co2')).toMatchObject({ range: { max: 40_000 } })
    expect(described({}, { label: 'Parking spaces' }).intervalMs).toBe(1_800_000)
    expect(described({ [`${qoi}updateinterval`]: value(60) }, { label: 'Parking spaces' }).intervalMs).toBe(
      60_000,
    )
  })

  it('have a similarity of at least the minimum, for any label', () => {
    const strict = usualProperties(usualTable({}), 1)
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (label) => {
        if (strict.find(label) !== undefined) expect(usual.find(label)).toEqual(strict.find(label))
      }),
    )
    expect(strict.find('air temperature')).toBeUndefined()
  })
})

describe('values are inferred', () => {
  it('if the sensor is virtual or the stream is derived from others', () => {
    expect(described({}).isInferred).toBe(false)
    expect(described({}, { id: 'urn:ngsi-ld:Sensor:7:VS' }).isInferred).toBe(true)
    const derived = { 'http://purl.org/iot/ontology/iot-stream#derivedFrom': to('urn:x:I2') }
    expect(metadataOf({ stream: entity('urn:x:I', derived) }, usual).isInferred).toBe(true)
  })
})
