/** Streams, their observation entities and their concordances as a broker reports them, in any order. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { iotStream, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import { usualProperties, usualTable } from '#plugins/quality/measures/usual-properties.ts'
import { createConcordances } from './concordances.ts'
import { createKnownStreams } from './known-streams.ts'
import { onlyOwnLink, type Stream } from './stream.ts'

const property = (value: unknown) => ({ type: 'Property', value })
const to = (object: string) => ({ type: 'Relationship', object })
const minute = 60_000
const begin = Date.parse('2026-06-01T00:00:00Z')
const idOf = (name: string): string => `urn:s:${name}`

/** A broker whose entities a test sets, and the streams that the analyser takes from it. */
function site() {
  const entities = new Map<string, Entity>()
  const changed: Stream[] = []
  const removed: Stream[] = []
  const streams = createKnownStreams({
    entityOf: (id) => entities.get(id),
    usual: usualProperties(usualTable({}), 0.8),
    records: createRecordRows(),
    concordances: createConcordances({ radiusMeters: 20_000 }),
    leftOut: { hasRoom: () => true, delete: () => undefined },
    monotonic: () => 0,
    now: () => begin,
    downtimes: () => [],
    changed: (stream) => changed.push(stream),
    removed: (stream) => removed.push(stream),
    moved: () => undefined,
  })
  function put(id: string, type: string, attributes: object): void {
    entities.set(id, { id, type, ...attributes } as unknown as Entity)
    streams.take(entities.get(id)!)
  }
  return {
    streams,
    changed,
    removed,
    put,
    putStream(name: string, attributes: object = {}): void {
      put(`urn:property:${name}`, sosa.ObservableProperty, { [rdfsLabel]: property('humidity') })
      put(idOf(name), iotStream.IotStream, {
        [iotStream.generatedBy]: to(`urn:sensor:${name}`),
        ...attributes,
      })
    },
    putSensor(name: string, attributes: object): void {
      put(`urn:sensor:${name}`, sosa.Sensor, {
        [sosa.observes]: to(`urn:property:${name}`),
        [qoi.updateinterval]: property(60),
        ...attributes,
      })
    },
    putObservation(id: string, name: string): void {
      put(id, iotStream.StreamObservation, { [iotStream.belongsTo]: to(idOf(name)) })
    },
    observe: (id: string, i: number, value: number): boolean =>
      streams.observe(id, { time: begin + i * minute, value, committedAt: begin + i * minute }),
    delete(id: string): void {
      entities.delete(id)
      streams.delete(id)
    },
  }
}

const placed = (longitude: number) => ({
  location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [longitude, 52] } },
})

describe('known streams', () => {
  it('forget the observation entities of a deleted stream only, whatever their number', () => {
    const { streams, removed, observe, ...broker } = site()
    for (const name of ['a', 'b']) broker.putStream(name)
    for (const id of ['urn:o:1', 'urn:o:2', 'urn:o:3']) broker.putObservation(id, 'a')
    broker.putObservation('urn:o:4', 'b')
    // An observation entity that moves belongs to its new stream.
    broker.putObservation('urn:o:3', 'b')
    broker.delete('urn:o:2')
    broker.delete(idOf('a'))
    expect(removed.map(({ id }) => id)).toEqual([idOf('a')])
    expect(['urn:o:1', 'urn:o:2', 'urn:o:3', 'urn:o:4'].map((id) => observe(id, 0, 1))).toEqual([
      false,
      false,
      true,
      true,
    ])
    broker.delete('urn:o:3')
    broker.delete('urn:o:4')
    expect(streams.get(idOf('b'))?.observedBy).toBeUndefined()
    broker.putStream('a')
    broker.putObservation('urn:o:1', 'a')
    expect(observe('urn:o:1', 1, 1)).toBe(true)
    expect(streams.get(idOf('a'))?.record.count).toBe(1)
  })

  it('know the newest observation entities of a stream, whatever their number', () => {
    const { streams, observe, ...broker } = site()
    broker.putStream('a')
    const ids = Array.from({ length: 1000 }, (_, i) => `urn:o:${i}`)
    for (const id of ids) broker.putObservation(id, 'a')
    const known = ids.filter((id) => streams.observedBy(id) !== undefined)
    expect(known).toEqual(ids.slice(-limits.clientObservationsMax.value))
    const { observations } = streams.takeUnsaved()
    expect([...observations].flatMap(([id, n]) => (n === undefined ? [] : [id]))).toEqual(known)
    // The log follower takes an unknown entity again when it is observed.
    broker.putObservation('urn:o:0', 'a')
    expect(observe('urn:o:0', 0, 40)).toBe(true)
    broker.delete(idOf('a'))
    expect([...streams.takeUnsaved().observations.values()].every((n) => n === undefined)).toBe(true)
  })

  it('do not count an observation whose time is more than a day ahead of its arrival', () => {
    const { streams, observe, ...broker } = site()
    broker.putStream('a')
    broker.putSensor('a', {})
    broker.putObservation('urn:o:1', 'a')
    observe('urn:o:1', 0, 40)
    const aheadAt = begin + 3 * 365 * 86_400_000
    for (const committedAt of [begin, undefined])
      expect(streams.observe('urn:o:1', { time: aheadAt, value: 41, committedAt })).toBe(true)
    for (const i of [1, 2, 3]) observe('urn:o:1', i, 40 + i)
    expect(streams.get(idOf('a'))!.record).toMatchObject({
      count: 4,
      lastAt: begin + 3 * minute,
      newestAt: begin + 3 * minute,
      intervalMs: minute,
    })
  })

  it('know their own link, and report a change of links', () => {
    const { streams, changed, putStream } = site()
    const own = `urn:ngsi-ld:QoI:${idOf('a')}`
    putStream('a', { [qoi.hasQuality]: to(own) })
    const stream = streams.get(idOf('a'))!
    expect(stream.links).toBe(onlyOwnLink)
    changed.length = 0
    putStream('a', { [qoi.hasQuality]: to(own) })
    expect(changed).toEqual([])
    putStream('a', { [qoi.hasQuality]: to('urn:other') })
    expect(stream.links).toEqual(['urn:other'])
    expect(changed).toEqual([stream])
  })

  it('have concordances from values that came before their places', () => {
    const { streams, changed, observe, ...broker } = site()
    const courses: Readonly<Record<string, (i: number) => number>> = {
      moving: (i) => 60 + Math.sin(i / 4) * 5,
      other: (i) => 70 + Math.sin(i / 4) * 9,
      stuck: () => 87.3,
    }
    for (const [name, at] of Object.entries(courses)) {
      broker.putStream(name)
      broker.putSensor(name, {})
      broker.putObservation(`urn:o:${name}`, name)
      for (let i = 0; i < 30; i++) observe(`urn:o:${name}`, i, at(i))
    }
    const concordance = (name: string) => streams.get(idOf(name))?.record.concordance
    expect(Object.keys(courses).map(concordance)).toEqual([undefined, undefined, undefined])
    changed.length = 0
    for (const [i, name] of Object.keys(courses).entries()) broker.putSensor(name, placed(8 + i / 1000))
    expect(Object.keys(courses).map(concordance)).toEqual([1, 1, 0])
    expect(new Set(changed.map(({ id }) => id))).toEqual(new Set(Object.keys(courses).map(idOf)))
  })
})
