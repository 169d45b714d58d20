/**
 * The streams of observation entities. One whose stream is not known yet waits for it. It belongs to the
 * stream that it names, or to that of its Sensor.
 */
import { limits } from '#base/limits/limits.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { linksOf } from './stream-entities.ts'

export interface PlacedObservationsPorts<T> {
  readonly streamOf: (id: string) => T | undefined
  /** The streams that an entity describes. */
  readonly describedBy: (id: string) => readonly T[]
  /** Called after an observation entity came to another stream. */
  readonly moved: (id: string, stream: T, before: T | undefined) => void
}

export function createPlacedObservations<T extends { readonly id: string }>({
  streamOf,
  describedBy,
  moved,
}: PlacedObservationsPorts<T>) {
  const streams = new Map<string, T>()
  /** Observation entities without a stream, with the ids that they name; the oldest are dropped. */
  const unplaced = new Map<string, readonly string[]>()

  function place(id: string, stream: T): void {
    unplaced.delete(id)
    const before = streams.get(id)
    if (before === stream) return
    streams.set(id, stream)
    moved(id, stream, before)
  }

  return Object.freeze({
    of: (id: string): T | undefined => streams.get(id),
    restore: (id: string, stream: T): void => void streams.set(id, stream),
    take(entity: Entity): void {
      const names = linksOf(entity, iotStream.belongsTo)
      const sensors = names.length > 0 ? [] : linksOf(entity, sosa.madeBySensor)
      const [stream] = [...names.flatMap((id) => streamOf(id) ?? []), ...sensors.flatMap(describedBy)]
      if (stream === undefined) unplaced.set(entity.id, names)
      else place(entity.id, stream)
      if (unplaced.size > limits.clientUnplacedMax.value) unplaced.delete(unplaced.keys().next().value!)
    },
    /** Places the observation entities that wait for a stream. */
    takeWaiting(stream: T): void {
      for (const [id, names] of unplaced) if (names.includes(stream.id)) place(id, stream)
    },
    delete(id: string): void {
      streams.delete(id)
      unplaced.delete(id)
    },
    unplaced: () => unplaced.size,
  })
}
