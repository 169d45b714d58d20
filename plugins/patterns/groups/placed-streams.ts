/**
 * The streams of the broker as grouping needs them: observed properties, place and platform, read from the
 * stream, its Sensor and its Platform. Also finds the stream of an observation entity.
 */
import { limits } from '#base/limits/limits.ts'
import type { LeftOutStreams } from '#client/streams/left-out-streams.ts'
import { linksOf, placeOf, sensorOf } from '#client/streams/stream-entities.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { PlacedStream } from './spatial.ts'

/** Canonical names of the followed types. */
export const followedTypes: ReadonlySet<string> = new Set([
  iotStream.IotStream,
  iotStream.StreamObservation,
  sosa.Sensor,
  sosa.Platform,
])

export interface PlacedStreams {
  /**
   * Takes the current state of an entity of a followed type. Returns whether a stream differs from what was
   * known.
   */
  take(entity: Entity): boolean
  /** Returns whether a stream by this id, or one that this entity described, differs from what was known. */
  delete(id: string): boolean
  get(id: string): PlacedStream | undefined
  readonly all: () => IterableIterator<PlacedStream>
  readonly size: () => number
  /** Id of the stream to which an observation entity belongs. */
  streamOf(observationId: string): string | undefined
  clear(): void
}

/** A stream and the entities that describe it. */
interface Known extends PlacedStream {
  readonly sources: readonly string[]
}

export interface PlacedStreamsPorts {
  /** The current state of an entity at the broker. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Streams beyond the ceiling. */
  readonly leftOut: Pick<LeftOutStreams, 'hasRoom' | 'delete' | 'clear'>
}

export function createPlacedStreams({ entityOf, leftOut }: PlacedStreamsPorts): PlacedStreams {
  const streams = new Map<string, Known>()
  /** Ids of streams by the ids of the entities that describe them. */
  const described = new Map<string, Set<string>>()
  /** Streams of observation entities; undefined for those without one. */
  const observed = new Map<string, string | undefined>()

  function link(known: Known): void {
    for (const id of known.sources) {
      const ids = described.get(id)
      if (ids === undefined) described.set(id, new Set([known.id]))
      else ids.add(known.id)
    }
  }

  function unlink(known: Known): void {
    for (const id of known.sources) {
      const ids = described.get(id)
      ids?.delete(known.id)
      if (ids?.size === 0) described.delete(id)
    }
  }

  function takeStream(entity: Entity): boolean {
    const before = streams.get(entity.id)
    if (before === undefined && !leftOut.hasRoom(streams.size, entity.id)) return false
    const known = describe(entity, entityOf)
    if (before !== undefined) unlink(before)
    streams.set(known.id, known)
    link(known)
    const isNew = before === undefined || JSON.stringify(before) !== JSON.stringify(known)
    // An observation entity may belong to it by its Sensor.
    if (isNew) observed.clear()
    return isNew
  }

  /** Reads the streams again that an entity describes. Returns whether one differs. */
  function takeDescribed(id: string): boolean {
    let isNew = false
    for (const streamId of [...(described.get(id) ?? [])]) {
      const stream = entityOf(streamId)
      if (stream !== undefined && takeStream(stream)) isNew = true
    }
    return isNew
  }

  function remember(observationId: string, stream: string | undefined): string | undefined {
    if (observed.size >= limits.patternObservedMax.value) observed.clear()
    observed.set(observationId, stream)
    return stream
  }

  return Object.freeze({
    take(entity) {
      let isNew = false
      const types = listOf(entity.type)
      if (types.includes(iotStream.StreamObservation)) observed.delete(entity.id)
      if (types.includes(iotStream.IotStream)) isNew = takeStream(entity)
      return takeDescribed(entity.id) || isNew
    },
    delete(id) {
      observed.delete(id)
      leftOut.delete(id)
      const known = streams.get(id)
      if (known === undefined) return takeDescribed(id)
      streams.delete(id)
      unlink(known)
      observed.clear()
      return true
    },
    get: (id) => streams.get(id),
    all: () => streams.values(),
    size: () => streams.size,
    streamOf(observationId) {
      if (observed.has(observationId)) return observed.get(observationId)
      const entity = entityOf(observationId)
      if (entity === undefined || !listOf(entity.type).includes(iotStream.StreamObservation))
        return remember(observationId, undefined)
      const [named] = linksOf(entity, iotStream.belongsTo)
      if (named !== undefined) return remember(observationId, named)
      const bySensor = linksOf(entity, sosa.madeBySensor).flatMap((id) => [...(described.get(id) ?? [])])
      return remember(observationId, bySensor.toSorted()[0])
    },
    clear() {
      streams.clear()
      leftOut.clear()
      described.clear()
      observed.clear()
    },
  } satisfies PlacedStreams)
}

/** The facts of a stream. A stream's own come before those of its Sensor, and those before its Platform's. */
function describe(stream: Entity, entityOf: (id: string) => Entity | undefined): Known {
  const sensorId = sensorOf(stream)
  const sensor = sensorId === undefined ? undefined : entityOf(sensorId)
  const [platformId] = sensor === undefined ? [] : linksOf(sensor, sosa.isHostedBy)
  const platform = platformId === undefined ? undefined : entityOf(platformId)
  const chain = [stream, sensor, platform].filter((entity) => entity !== undefined)
  const properties = chain.map((entity) => linksOf(entity, sosa.observes, iotStream.observes))
  const places = chain.map(placeOf)
  return {
    id: stream.id,
    properties: properties.find((ids) => ids.length > 0) ?? [],
    place: places.find((place) => place !== undefined),
    platform: platformId,
    sources: [sensorId, platformId].filter((id) => id !== undefined),
  }
}
