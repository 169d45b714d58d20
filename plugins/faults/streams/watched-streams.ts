/**
 * The streams that fault detection knows, their observation entities, and the entities that describe them. It
 * takes entities of any broker, in the order in which the broker reports them.
 */
import { limits } from '#base/limits/limits.ts'
import { createIdIndex } from '#client/streams/id-index.ts'
import type { LeftOutStreams } from '#client/streams/left-out-streams.ts'
import { createPlacedObservations } from '#client/streams/placed-observations.ts'
import { linksOf, sensorOf } from '#client/streams/stream-entities.ts'
import { iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { type FaultStream, newRecord, type WatchRecord } from './fault-stream.ts'
import { isDoubtfulQuality, metadataOf, noMetadata, type WatchedMetadata } from './watched-metadata.ts'

/** Canonical names of the followed types. */
export const followedTypes: ReadonlySet<string> = new Set([
  iotStream.IotStream,
  iotStream.StreamObservation,
  sosa.Sensor,
  sosa.ObservableProperty,
  sosa.Platform,
  qoi.Quality,
])

export interface WatchedStreamsPorts {
  /** The current state of an entity at the broker. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Streams beyond the ceiling. */
  readonly leftOut: Pick<LeftOutStreams, 'hasRoom' | 'delete'>
  /** Called after a new stream was described. */
  readonly discovered: (stream: FaultStream) => void
  /** Called after the first observation entity of a stream became known, so that it has a history. */
  readonly added: (stream: FaultStream) => void
  /** Called after the metadata of a stream changed. */
  readonly described: (stream: FaultStream, before: WatchedMetadata) => void
  readonly removed: (stream: FaultStream) => void
}

export interface WatchedStreams {
  /** Adds a stream of the table; its metadata is read from the broker. */
  restore(stream: Pick<FaultStream, 'id' | 'record' | 'observations'>): FaultStream
  /** Takes the current state of a stream, of an observation, or of an entity that describes streams. */
  take(entity: Entity): void
  delete(id: string): void
  /** The stream of an observation entity. */
  observedBy(observationId: string): FaultStream | undefined
  /** The streams of a Sensor. */
  ofSensor(sensorId: string): readonly FaultStream[]
  readonly all: () => MapIterator<FaultStream>
  get(id: string): FaultStream | undefined
  readonly size: () => number
}

export type StreamDescription = Pick<FaultStream, 'sensorId' | 'sources' | 'types' | 'metadata'>

export function createWatchedStreams(ports: WatchedStreamsPorts): WatchedStreams {
  const { entityOf, leftOut, discovered, added, described: changed, removed } = ports
  const streams = new Map<string, FaultStream>()
  /** Streams by the ids of the entities that describe them. */
  const described = createIdIndex<FaultStream>()
  const observations = createPlacedObservations<FaultStream>({
    streamOf: (id) => streams.get(id),
    describedBy: described.of,
    moved(id, stream, before) {
      before?.observations.delete(id)
      stream.observations.add(id)
      const [oldest] = stream.observations
      if (stream.observations.size > limits.clientObservationsMax.value) drop(stream, oldest!)
      if (stream.observations.size === 1) added(stream)
    },
  })

  /** Forgets that an observation entity belongs to a stream; it is placed again with its next value. */
  function drop(stream: FaultStream, observation: string): void {
    stream.observations.delete(observation)
    observations.delete(observation)
  }

  function add(given: {
    readonly id: string
    readonly record: WatchRecord
    readonly observations: Set<string>
  }): FaultStream {
    const stream: FaultStream = {
      ...given,
      types: [iotStream.IotStream],
      sensorId: undefined,
      sources: [],
      isDoubtful: false,
      metadata: noMetadata,
      detector: undefined,
      buffered: [],
    }
    streams.set(stream.id, stream)
    for (const id of stream.observations) observations.restore(id, stream)
    return stream
  }

  /** Reads what describes a stream. */
  function describe(stream: FaultStream, entity: Entity): void {
    const before = stream.metadata
    for (const id of stream.sources) described.delete(id, stream)
    Object.assign(stream, descriptionOf(entity, entityOf))
    for (const id of stream.sources) described.add(id, stream)
    const [quality] = linksOf(entity, qoi.hasQuality).flatMap((id) => entityOf(id) ?? [])
    if (quality !== undefined) stream.isDoubtful = isDoubtfulQuality(quality)
    if (JSON.stringify(before) !== JSON.stringify(stream.metadata)) changed(stream, before)
  }

  function takeStream(entity: Entity): void {
    const known = streams.get(entity.id)
    if (known === undefined && !leftOut.hasRoom(streams.size, entity.id)) return
    const stream = known ?? add({ id: entity.id, record: newRecord(), observations: new Set() })
    describe(stream, entity)
    if (known !== undefined) return
    discovered(stream)
    observations.takeWaiting(stream)
  }

  return Object.freeze({
    restore: add,
    take(entity) {
      const types = listOf(entity.type)
      if (types.includes(iotStream.IotStream)) takeStream(entity)
      if (types.includes(iotStream.StreamObservation)) observations.take(entity)
      // A quality changes often, and says nothing else about its stream.
      if (types.includes(qoi.Quality)) {
        for (const stream of described.of(entity.id)) stream.isDoubtful = isDoubtfulQuality(entity)
        return
      }
      for (const stream of described.of(entity.id)) {
        const owner = entityOf(stream.id)
        if (owner !== undefined) describe(stream, owner)
      }
    },
    delete(id) {
      for (const rated of described.of(id)) rated.isDoubtful = false
      observations.of(id)?.observations.delete(id)
      observations.delete(id)
      const stream = streams.get(id)
      if (stream === undefined) return
      streams.delete(id)
      for (const source of stream.sources) described.delete(source, stream)
      for (const observation of stream.observations) observations.delete(observation)
      removed(stream)
    },
    observedBy: observations.of,
    ofSensor: (sensorId) => described.of(sensorId).filter((stream) => stream.sensorId === sensorId),
    all: () => streams.values(),
    get: (id) => streams.get(id),
    size: () => streams.size,
  } satisfies WatchedStreams)
}

function descriptionOf(stream: Entity, entityOf: (id: string) => Entity | undefined): StreamDescription {
  const sensorId = sensorOf(stream)
  const sensor = sensorId === undefined ? undefined : entityOf(sensorId)
  const observed = (entity: Entity) => linksOf(entity, sosa.observes, iotStream.observes)[0]
  const propertyId = observed(stream) ?? (sensor && observed(sensor))
  const platformId = sensor && linksOf(sensor, sosa.isHostedBy)[0]
  return {
    sensorId,
    types: listOf(stream.type),
    sources: [sensorId, propertyId, platformId, ...linksOf(stream, qoi.hasQuality)].filter(
      (id) => id !== undefined,
    ),
    metadata: metadataOf({
      stream,
      sensor,
      property: propertyId === undefined ? undefined : entityOf(propertyId),
      platform: platformId === undefined ? undefined : entityOf(platformId),
    }),
  }
}
