/** A stream as the analyser keeps it: what describes it, what it observed, and what was written of it. */
import type { StreamMetadata } from '#plugins/quality/measures/stream-metadata.ts'
import type { StreamRecord } from '#plugins/quality/measures/stream-record.ts'
import type { IdSet } from './id-set.ts'

export interface Stream {
  /** Number of its row. */
  readonly n: number
  readonly id: string
  /** Types of the entity, as its link must name them. */
  types: readonly string[]
  /** Entities that describe it: Sensor, ObservableProperty, Platform, and linked qualities. */
  sources: readonly string[]
  /** Services that provide its data (`iot-stream:providedBy`). */
  services: readonly string[]
  /** Its observation entities at the broker. */
  observedBy: IdSet
  metadata: StreamMetadata
  readonly record: StreamRecord
  /** Ids of the QoI entities that the stream entity links to; `ownLink` stands for its own. */
  links: readonly string[]
  /** When these links were first read, monotonic ms. */
  linksAt: number
  /** Figures at the broker, a line each in the order of `figureNames`; undefined before they were written. */
  written: string | undefined
  /** When they were written, monotonic ms. */
  writtenAt: number
  /** `ratedState` when they were last compared with the current ones. */
  compared: number
}

/** Stands for the id of a stream's own quality in its links. Most have this link only, and share the list. */
export const ownLink = 'own'
export const onlyOwnLink: readonly string[] = [ownLink]
