/**
 * Upkeep that rides along with groups: folding tails into chunks and entity records into histories, writing live
 * values back into documents, trimming the log. All of it is derived from what is on disk already, so nothing here
 * is ever waited for; a group that fails simply leaves it due.
 */
import { failpoint } from '#base/failpoints.ts'
import { limits } from '#base/limits.ts'
import type { Metrics } from '#base/metrics.ts'
import type { Records } from '#store/records.ts'
import type { Documents } from './documents.ts'
import type { LiveEntity, LiveState, LiveStream } from './live.ts'
import type { Group } from './stage.ts'
import type { Streams } from './streams.ts'

export interface UpkeepPorts {
  readonly live: LiveState
  readonly streams: Streams
  readonly records: Records
  readonly metrics: Metrics
  /** Set once documents exist (they need streams, as upkeep does). */
  readonly documents: () => Documents
}

export interface UpkeepSettings {
  readonly writebackMs: number
}

const now = (): number => performance.now()
/** How often the log's bounds are looked at, ms. */
const trimEveryMs = 30_000

export function createUpkeep(ports: UpkeepPorts, settings: UpkeepSettings) {
  const { live, streams, records, metrics } = ports
  const folds = metrics.counter('selvedge_folds_total')
  const writebacks = metrics.counter('selvedge_writebacks_total')
  /** Streams whose tail has reached a whole chunk, told by `filled`. */
  const full = new Set<LiveStream>()
  let scanAt = 0
  let trimAt = now() + trimEveryMs
  let replayFrom = 0
  let trimmed = 0
  /** Log numbers by time and by bytes written so far, youngest last; one per trim. */
  const marks: { at: number; number: number; bytes: number }[] = []
  let logBytes = records.logBytes()
  let agedNumber = 0

  /** Adds what is due to a group that is about to be sent. */
  function attach(group: Group, options: { everything?: boolean } = {}): void {
    const everything = options.everything ?? false
    group.onWritten(({ logBytes: more }) => {
      logBytes += more
    })
    findAged(everything)
    let room: number = everything ? Number.MAX_SAFE_INTEGER : limits.foldsPerGroup.value
    for (const stream of full) {
      if (room-- <= 0) break
      full.delete(stream)
      if (!stream.gone && stream.tail.committed > 0) foldStream(group, stream)
    }
    foldEntities(group, everything)
    writeBack(group, everything)
    if (everything || now() >= trimAt) trim(group)
  }

  function foldStream(group: Group, stream: LiveStream): void {
    const count = stream.tail.committed
    const folded = foldNumber(group)
    const fold = streams.foldOf(stream, count, folded)
    if (fold === undefined) return
    group.stage.foldStream(fold)
    group.stage.published(() => {
      folds.value++
      if (!stream.gone) live.folded(stream, count, folded, now())
    })
  }

  /** Everything committed before this group has at most this number. */
  function foldNumber(group: Group): number {
    return group.firstNumber() - 1
  }

  function findAged(everything: boolean): void {
    if (!everything && now() < scanAt) return
    scanAt = now() + 1000
    const crowded = live.tailCount() > limits.tailObservationsMax.value
    const oldest = now() - limits.tailAgeMs.value
    for (const stream of live.streams()) {
      const { tail } = stream
      if (tail.committed === 0) continue
      const due = tail.committed >= limits.chunkObservations.value || tail.since < oldest
      if (everything || due || (crowded && tail.committed >= limits.chunkPartialMin.value / 4))
        full.add(stream)
    }
    live.evictIdle()
  }

  function foldEntities(group: Group, everything: boolean): void {
    const crowded = streams.unfoldedCount() > limits.entityRecordsUnfoldedMax.value / 2
    let room: number = everything ? Number.MAX_SAFE_INTEGER : limits.writebacksPerGroup.value
    for (const [rid, numbers] of streams.unfoldedEntities()) {
      // The map keeps the order of first records, so the first young one ends the search.
      if (room-- <= 0 || !(everything || crowded || numbers[0]! <= agedNumber)) break
      const count = numbers.length
      const rows = numbers.map((n) => records.logAt(n)).filter((row) => row !== undefined)
      if (rows.length > 0) {
        group.foldEntity({
          rid,
          n0: numbers[0]!,
          n1: numbers[count - 1]!,
          t0: rows[0]!.at,
          t1: rows.at(-1)!.at,
          records: rows.map((row) => Buffer.from(row.body).toString()),
        })
      }
      group.stage.published(() => streams.forget(rid, count))
    }
  }

  function writeBack(group: Group, everything: boolean): void {
    const oldest = now() - settings.writebackMs
    let room: number = everything ? Number.MAX_SAFE_INTEGER : limits.writebacksPerGroup.value
    const due: LiveEntity[] = []
    for (const entity of live.dirtyEntities()) {
      // The set keeps the order in which entities became dirty.
      if (!everything && entity.dirtySince! > oldest) break
      if (room-- <= 0) break
      due.push(entity)
    }
    const written = due.filter(({ rid }) => ports.documents().writeBack(group.stage, rid)).length
    writebacks.value += written
    if (written > 0) group.stage.published(() => failpoint('writeback:after-write'))
  }

  /** Deletes log rows that nothing needs: folded, written back, and beyond the log's bounds. */
  function trim(group: Group): void {
    trimAt = now() + trimEveryMs
    marks.push({ at: now(), number: foldNumber(group), bytes: logBytes })
    agedNumber = marks.findLast(({ at }) => at < now() - limits.tailAgeMs.value)?.number ?? agedNumber
    const beyond = marks.findLastIndex(
      ({ at, bytes }) => at < now() - limits.logAgeMsMax.value || logBytes - bytes > limits.logBytesMax.value,
    )
    const excess = beyond < 0 ? 0 : marks[beyond]!.number
    marks.splice(0, beyond + 1)
    const settled = settledNumber(group)
    const number = Math.min(settled, excess)
    if (settled > replayFrom) group.stage.write('meta.put', 'replay', settled)
    replayFrom = settled
    if (number <= trimmed) return
    group.stage.write('log.trim', number)
    trimmed = number
  }

  /** All log rows up to here are in chunks, histories and documents. */
  function settledNumber(group: Group): number {
    let number = foldNumber(group)
    for (const stream of live.streams()) {
      if (stream.tail.firstNumber > 0) number = Math.min(number, stream.tail.firstNumber - 1)
    }
    for (const entity of live.dirtyEntities()) {
      for (const stream of entity.streams) {
        if (stream.dirtyAt >= 0) number = Math.min(number, stream.number - 1)
      }
    }
    for (const numbers of streams.unfoldedEntities().values()) number = Math.min(number, numbers[0]! - 1)
    return number
  }

  return Object.freeze({
    attach,
    /** Bytes of the log kept, as far as known. */
    logBytes: () => logBytes - (marks[0]?.bytes ?? 0),
    /** True when a group should be made for upkeep alone. */
    isDue(): boolean {
      if (full.size > 0 || streams.unfoldedCount() > limits.entityRecordsUnfoldedMax.value / 2) return true
      if (live.tailCount() > 0 && now() >= scanAt) findAged(false)
      if (full.size > 0) return true
      const first = live.dirtyEntities().values().next()
      return !first.done && first.value.dirtySince! <= now() - settings.writebackMs
    },
  })
}

export type Upkeep = ReturnType<typeof createUpkeep>
