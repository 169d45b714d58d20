/** A stream as the analyser keeps it: what describes it, what it observed, and what was written of it. */
import type { Deadlines } from '#base/time/timer-wheel.ts'
import type { StreamMetadata } from '#plugins/quality/measures/stream-metadata.ts'
import type { StreamRecord } from '#plugins/quality/measures/stream-record.ts'
import type { IdSet } from './id-set.ts'

export interface Stream {
  /** Number of its row. */
  readonly n: number
  readonly id: string
  /** Its Sensor, the ObservableProperty, and other entities that describe it: Platform, linked qualities. */
  sensor: string | undefined
  property: string | undefined
  others: readonly string[]
  /** Services that provide its data (`iot-stream:providedBy`). */
  services: readonly string[]
  /** Its observation entities at the broker. */
  observedBy: IdSet
  metadata: StreamMetadata
  readonly record: StreamRecord
  /** Ids of the QoI entities that the stream entity links to; `ownLink` stands for its own. */
  links: readonly string[]
  /** Figures at the broker, a line each in the order of `figureNames`; undefined before they were written. */
  written: string | undefined
}

/** All entities that describe a stream. */
export const describedBy = ({ sensor, property, others }: Stream): readonly string[] =>
  [sensor, property, ...others].filter((id) => id !== undefined)

/** Stands for the id of a stream's own quality in its links. Most have this link only, and share the list. */
export const ownLink = 'own'
export const onlyOwnLink: readonly string[] = [ownLink]

/** Deadlines of a timer wheel that lie with the records of streams. */
export function streamDeadlines(name: 'silentAt' | 'dueAt'): Deadlines<Stream> {
  let size = 0
  return {
    get: ({ record }) => record[name],
    set({ record }, deadline) {
      if (record[name] === undefined) size++
      record[name] = deadline
    },
    delete({ record }) {
      if (record[name] === undefined) return false
      record[name] = undefined
      size--
      return true
    },
    get size() {
      return size
    },
  }
}
