/**
 * Replay at start: reads the log rows that are not yet in chunks, histories or documents, and rebuilds tails
 * and live values from them. It changes nothing on disk, and its result does not depend on interruptions.
 */
import { collectYoung } from '#base/process/garbage-collection.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { EvolutionPorts } from '#broker/history/evolution-sources.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { decodeObservations } from '#store/chunks/observation-blob.ts'
import { isOfObservations, type LogRow } from '#store/tables/records.ts'

export type ReplayPorts = Omit<EvolutionPorts, 'edits' | 'names'>

const rowsPerRead = 256
/** Bytes of garbage between collections; frequent collections keep the malloc heap from fragmenting. */
const bytesPerCollection = 4 * 1024 * 1024
/**
 * Returns the number of log rows and observations read, and the latest commit time among all remaining rows.
 */
export function replay(ports: ReplayPorts): { rows: number; observations: number; at: number } {
  const { records, history } = ports
  let after = Number(records.meta('replay') ?? 0)
  let rows = 0
  let bytes = 0
  let observations = 0
  // Rows of a batch may have an earlier time than those before them.
  let at = records.logAt(records.logLast())?.at ?? 0
  const folded = new Map<number, number>()
  const foldedRecords = new Map<number, number>()
  for (;;) {
    const batch = records.logAfter(after, rowsPerRead)
    if (batch.length === 0) break
    for (const row of batch) {
      bytes += row.body.length
      at = Math.max(at, row.at)
      if (isOfObservations(row)) observations += replayBlob(ports, row, folded)
      else if (row.rid !== null) {
        const rid = row.rid
        if (!foldedRecords.has(rid)) foldedRecords.set(rid, history.lastFoldedChange(rid))
        if (row.n > foldedRecords.get(rid)!) ports.streams.remember(rid, row.n)
      }
      rows++
    }
    if (bytes > bytesPerCollection) {
      collectYoung()
      bytes = 0
    }
    after = batch.at(-1)!.n
    failpoint('start:mid-replay')
  }
  return { rows, observations, at }
}

function replayBlob(ports: ReplayPorts, row: LogRow, folded: Map<number, number>): number {
  const { triples, others } = decodeObservations(row.body)
  const otherValues = new Map<number, Json>(others)
  const touched = new Set<LiveStream>()
  let count = 0
  for (let i = 0; i < triples.length; i += 3) {
    const number = Math.floor(triples[i]! / 2)
    const isLate = triples[i]! % 2 === 1
    const stream = liveStream(ports, number, folded)
    if (stream === undefined) continue
    const position = i / 3
    const value = otherValues.has(position) ? otherValues.get(position)! : triples[i + 2]!
    const time = triples[i + 1]!
    const current = !isLate && row.n > stream.number
    if (current) stream.nextVia = row.via ?? undefined
    if (row.n > folded.get(number)!) {
      ports.live.stage(stream, time, value, row.at, row.n, current)
      touched.add(stream)
      count++
    } else if (current) {
      ports.live.setCurrent(stream, time, value, row.at, row.n)
      touched.add(stream)
    }
  }
  for (const stream of touched) ports.live.publish(stream)
  return count
}

/** The stream of a log entry in memory; undefined if it was retired since. Its `number` is its document's. */
function liveStream(ports: ReplayPorts, s: number, folded: Map<number, number>): LiveStream | undefined {
  const known = ports.live.stream(s)
  if (known !== undefined) return known
  if (folded.has(s)) return undefined
  const row = ports.history.stream(s)
  folded.set(s, row?.folded ?? 0)
  if (row === undefined || row.retired === 1) return undefined
  const entity = ports.entities.byRid(row.rid)
  if (entity === undefined) return undefined
  const { id, n: number, doc } = entity
  return ports.streams.enter(row, { rid: row.rid, id, entity: JSON.parse(doc) as Entity, number })
}
