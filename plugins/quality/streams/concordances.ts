/**
 * Computes the concordance of streams with their neighbours: the nearest ones of the same property label. A
 * stream is computed when a value begins a new one of its shortest time slots. A stream without a concordance
 * is computed when its label and place become known, too. Its neighbours without a concordance are computed
 * at the same time; all others wait for a time slot of their own. The formula is in
 * `measures/concordance.ts`.
 */

import { createNeighbours } from '#client/streams/neighbours.ts'
import { numberOf } from '#client/streams/stream-entities.ts'
import { agreement, concordanceOf, ratedConcordance } from '#plugins/quality/measures/concordance.ts'
import type { Arrival } from '#plugins/quality/measures/stream-record.ts'
import { addToSlots, beginSlots, changeSlots, shortestFor } from '#plugins/quality/measures/time-slots.ts'
import type { Stream } from './stream.ts'

/** Each call returns neighbours that have their first concordance thereby. */
export interface Concordances {
  /** Takes the label and place of a stream from its metadata. */
  describe(stream: Stream): readonly Stream[]
  delete(stream: Stream): void
  /** Adds a value of a stream that was counted. Values from before its place is known count, too. */
  observe(stream: Stream, arrival: Arrival): readonly Stream[]
}

export function createConcordances({ radiusMeters }: { readonly radiusMeters: number }): Concordances {
  const neighbours = createNeighbours<Stream>(radiusMeters, ({ record }) => record.shortest !== undefined)

  /** Returns whether the stream has a concordance for the first time. */
  function update({ record }: Stream, near: readonly Stream[]): boolean {
    const { concordance: before } = record
    const agreements = near.flatMap(({ record: other }) => agreement(record, other) ?? [])
    const concordance = concordanceOf(agreements)
    if (concordance === undefined) return false
    record.concordance = concordance
    record.ratedConcordance = ratedConcordance(record.ratedConcordance, concordance)
    return before === undefined
  }

  function compare(stream: Stream): readonly Stream[] {
    if (stream.record.shortest === undefined) return []
    const near = neighbours.of(stream)
    update(stream, near)
    return near.filter((one) => {
      if (one.record.concordance !== undefined) return false
      // Most have too few common slots with this stream, too; then it gives them no concordance.
      return agreement(one.record, stream.record) !== undefined && update(one, neighbours.of(one))
    })
  }

  return Object.freeze({
    describe(stream) {
      const { label, place } = stream.metadata
      if (label === undefined || place === undefined) {
        neighbours.delete(stream)
        return []
      }
      neighbours.put(stream, label, place)
      return stream.record.concordance === undefined ? compare(stream) : []
    },
    delete: (stream) => neighbours.delete(stream),
    observe(stream, { time, value }) {
      const { record, metadata } = stream
      const number = numberOf(value)
      // Without an update interval, the length of the first interval is that of the slots.
      const intervalMs = metadata.intervalMs ?? record.intervalMs
      if (number === undefined || intervalMs === undefined) return []
      const shortest = shortestFor(intervalMs)
      if (record.shortest === undefined) beginSlots(record, shortest, number)
      if (metadata.intervalMs !== undefined && shortest !== record.shortest) changeSlots(record, shortest)
      return addToSlots(record, time, number) ? compare(stream) : []
    },
  } satisfies Concordances)
}
