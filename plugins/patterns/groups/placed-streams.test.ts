/** Streams as their entities describe them, and the streams of observation entities. */
import { beforeEach, describe, expect, it } from 'vitest'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createPlacedStreams, type PlacedStreams } from './placed-streams.ts'

const to = (object: string) => ({ type: 'Relationship', object })
const placedAt = (...coordinates: readonly number[]) => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates },
})
const entities = new Map<string, Entity>()
const leftOut = { hasRoom: () => true, delete: () => undefined, clear: () => undefined }
let streams: PlacedStreams

beforeEach(() => {
  entities.clear()
  streams = createPlacedStreams({ entityOf: (id) => entities.get(id), leftOut })
})

function take(id: string, type: string, members: object = {}): boolean {
  const entity = { id, type, ...members } as unknown as Entity
  entities.set(id, entity)
  return streams.take(entity)
}

describe('a stream', () => {
  it('has its own property and place before those of its Sensor and of its Platform', () => {
    take('platform', sosa.Platform, { location: placedAt(1, 1) })
    take('sensor', sosa.Sensor, { [sosa.observes]: to('p'), [sosa.isHostedBy]: to('platform') })
    expect(take('stream', iotStream.IotStream, { [iotStream.generatedBy]: to('sensor') })).toBe(true)
    expect(streams.get('stream')).toMatchObject({ properties: ['p'], place: [1, 1], platform: 'platform' })
    const members = {
      [iotStream.generatedBy]: to('sensor'),
      [sosa.observes]: to('q'),
      location: placedAt(2, 2),
    }
    expect(take('stream', iotStream.IotStream, members)).toBe(true)
    expect(streams.get('stream')).toMatchObject({ properties: ['q'], place: [2, 2] })
    expect(take('stream', iotStream.IotStream, members)).toBe(false)
  })

  it('changes with its Sensor and Platform, also if they come later or are deleted', () => {
    take('stream', iotStream.IotStream, { [iotStream.generatedBy]: to('sensor') })
    expect(streams.get('stream')).toMatchObject({ properties: [], place: undefined })
    expect(take('sensor', sosa.Sensor, { [sosa.observes]: to('p'), location: placedAt(1, 1) })).toBe(true)
    expect(streams.get('stream')).toMatchObject({ properties: ['p'], place: [1, 1] })
    expect(take('other', sosa.Sensor, { [sosa.observes]: to('p') })).toBe(false)
    entities.delete('sensor')
    expect(streams.delete('sensor')).toBe(true)
    expect(streams.get('stream')).toMatchObject({ properties: [], place: undefined })
    expect(streams.delete('stream')).toBe(true)
    expect([...streams.all()]).toEqual([])
  })
})

describe('an observation entity', () => {
  it('belongs to the stream that it names, or to the stream of its Sensor', () => {
    take('stream', iotStream.IotStream, { [iotStream.generatedBy]: to('sensor') })
    take('named', iotStream.StreamObservation, { [iotStream.belongsTo]: to('stream') })
    take('made', iotStream.StreamObservation, { [sosa.madeBySensor]: to('sensor') })
    take('neither', iotStream.StreamObservation)
    expect(['named', 'made', 'neither', 'sensor'].map((id) => streams.streamOf(id))).toEqual([
      'stream',
      'stream',
      undefined,
      undefined,
    ])
    take('later', iotStream.IotStream, { [iotStream.generatedBy]: to('new') })
    take('neither', iotStream.StreamObservation, { [sosa.madeBySensor]: to('new') })
    expect(streams.streamOf('neither')).toBe('later')
  })
})
