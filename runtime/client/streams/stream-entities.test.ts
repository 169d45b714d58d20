/** Readers of the platform's entities. */
import { describe, expect, it } from 'vitest'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { linksOf, numberOf, placeOf, timedResult } from './stream-entities.ts'

const entityOf = (attributes: object): Entity =>
  ({ id: 'urn:e:1', type: iotStream.StreamObservation, ...attributes }) as unknown as Entity

describe('readers of the platform’s entities', () => {
  it.each([
    [21.5, 21.5],
    ['21.5', 21.5],
    ['21.5^^xsd:double', 21.5],
    ['-1e3', -1000],
    [0, 0],
    ['', undefined],
    [' ', undefined],
    ['NA', undefined],
    [Number.NaN, undefined],
    [true, undefined],
    [null, undefined],
  ])('read the number in %j as %j', (value, number) => {
    expect(numberOf(value)).toBe(number)
  })

  it('read links of Relationships with several instances, and of simplified entities', () => {
    const entity = entityOf({
      [iotStream.belongsTo]: [
        { type: 'Relationship', object: 'urn:s:1' },
        { type: 'Relationship', object: ['urn:s:2', 'urn:s:3'] },
      ],
      [sosa.madeBySensor]: { type: 'Property', value: 'urn:sensor:1' },
    })
    expect(linksOf(entity, iotStream.belongsTo, sosa.madeBySensor)).toEqual([
      'urn:s:1',
      'urn:s:2',
      'urn:s:3',
      'urn:sensor:1',
    ])
    expect(linksOf(entity, iotStream.generatedBy)).toEqual([])
  })

  it('read the place of a Point only', () => {
    const located = (type: string, coordinates: unknown) =>
      placeOf(entityOf({ location: { type: 'GeoProperty', value: { type, coordinates } } }))
    expect(located('Point', [8, 52, 120])).toEqual([8, 52])
    expect(located('LineString', [[8, 52]])).toBeUndefined()
    expect(placeOf(entityOf({}))).toBeUndefined()
  })

  it('read the time of a result from observedAt, else from resultTime', () => {
    const result = { type: 'Property', value: 7 }
    const observedAt = '2026-01-02T00:00:00Z'
    const resultTime = { type: 'Property', value: { '@type': 'DateTime', '@value': '2026-01-01T00:00:00Z' } }
    expect(timedResult(entityOf({ [sosa.hasSimpleResult]: result }))).toBeUndefined()
    expect(timedResult(entityOf({ [sosa.hasSimpleResult]: result, [sosa.resultTime]: resultTime }))).toEqual({
      time: Date.UTC(2026, 0, 1),
      value: 7,
      isUntimed: true,
    })
    const timed = { [sosa.hasSimpleResult]: { ...result, observedAt }, [sosa.resultTime]: resultTime }
    expect(timedResult(entityOf(timed))).toEqual({ time: Date.UTC(2026, 0, 2), value: 7, isUntimed: false })
  })
})
