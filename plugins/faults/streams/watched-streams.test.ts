/** What watched streams take from the entities around them: limits of the Sensor, and the QoI of the stream. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { faultTerms, iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createWatchedStreams } from './watched-streams.ts'

const property = (value: number | string) => ({ type: 'Property', value })
const link = (object: string) => ({ type: 'Relationship', object })

const sensor = { id: 'urn:s', type: sosa.Sensor, [faultTerms.maxRate]: property(0.5) } as Entity
const stream = {
  id: 'urn:stream',
  type: iotStream.IotStream,
  [iotStream.generatedBy]: link('urn:s'),
  [qoi.hasQuality]: link('urn:quality'),
} as Entity
const quality = (rated: number) =>
  ({
    id: 'urn:quality',
    type: qoi.Quality,
    [qoi.plausibility]: { ...property('NA'), [qoi.hasRatedValue]: property(rated) },
  }) as Entity

function watched(known: readonly Entity[]) {
  const none = () => undefined
  const leftOut = { hasRoom: () => true, delete: none }
  const ports = { leftOut, discovered: none, added: none, described: none, removed: none }
  const streams = createWatchedStreams({ ...ports, entityOf: (id) => known.find((one) => one.id === id) })
  streams.take(stream)
  return { streams, isDoubtful: () => streams.get('urn:stream')!.isDoubtful }
}

describe('a watched stream', () => {
  it('has the largest rate that its Sensor states', () => {
    const { streams } = watched([sensor, stream])
    expect(streams.get('urn:stream')!.metadata.maxRate).toBe(0.5)
  })

  it('is doubtful while its QoI rates its values as implausible', () => {
    const { streams, isDoubtful } = watched([sensor, stream, quality(0.3)])
    expect(isDoubtful()).toBe(true)
    streams.take(quality(0.5))
    expect(isDoubtful()).toBe(false)
    streams.take(quality(0.1))
    expect(isDoubtful()).toBe(true)
    streams.delete('urn:quality')
    expect(isDoubtful()).toBe(false)
  })

  it('knows its newest observation entities, whatever their number', () => {
    const { streams } = watched([sensor, stream])
    const ids = Array.from({ length: 1000 }, (_, i) => `urn:o:${i}`)
    const take = (id: string): void =>
      streams.take({
        id,
        type: iotStream.StreamObservation,
        [iotStream.belongsTo]: link('urn:stream'),
      } as Entity)
    for (const id of ids) take(id)
    const known = () => ids.filter((id) => streams.observedBy(id) !== undefined)
    expect(known()).toEqual(ids.slice(-limits.clientObservationsMax.value))
    expect([...streams.get('urn:stream')!.observations]).toEqual(known())
    // The log follower takes an unknown entity again when it is observed.
    take('urn:o:0')
    expect(known()).toContain('urn:o:0')
    expect(known()).toHaveLength(limits.clientObservationsMax.value)
  })

  it('is not doubtful without a QoI', () => {
    expect(watched([sensor, stream]).isDoubtful()).toBe(false)
  })
})
