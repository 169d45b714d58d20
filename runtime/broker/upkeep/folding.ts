/**
 * Upkeep attached to groups. It folds tails into chunks and entity records into histories, and writes live
 * values back into documents. It also trims the log and removes old history and expired entities. All of it
 * derives from data on disk; after a failed group it is simply still due. Requests wait only for times to be
 * corrected.
 */

import { limits } from '#base/limits/limits.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { DiskRoom } from '#broker/commit/disk-room.ts'
import { createGroupShare } from '#broker/commit/group-share.ts'
import type { Group } from '#broker/commit/stage.ts'
import type { Expiry } from '#broker/entities/expiration.ts'
import type { DocumentDrafts } from '#broker/state/document-drafts.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import type { Streams } from '#broker/state/streams.ts'
import type { Unsettled } from '#broker/state/unsettled.ts'
import type { LiveEntity, LiveStream } from '#broker/state/unwritten.ts'
import type { Records } from '#store/tables/records.ts'
import type { Retention } from './retention-policy.ts'

export interface UpkeepPorts {
  readonly live: LiveState
  readonly streams: Streams
  readonly records: Records
  readonly clock: Clock
  readonly metrics: Metrics
  readonly retention: Retention
  readonly expiry: Expiry
  /** Disk space; without it, space is unlimited. */
  readonly room?: Pick<DiskRoom, 'isShort'> | undefined
  readonly unsettled: Unsettled
  /** A function, because documents are created later (they need streams, as upkeep does). */
  readonly documents: () => DocumentDrafts
}

export interface UpkeepSettings {
  readonly writebackMs: number
}

/** A log number with the time when it was the last, and the log's size up to it. */
interface Mark {
  readonly at: number
  readonly number: number
  readonly bytes: number
}

/** Interval at which tails are checked, ms. */
const scanEveryMs = 1000
/** Minimum cost of folding a stream, in observations: its last chunk may have to be packed again. */
const leastFolded = 64
/** Interval at which the log's bounds are checked, ms. */
const trimEveryMs = 30_000

export function createUpkeep(ports: UpkeepPorts, settings: UpkeepSettings) {
  const { live, streams, records, metrics } = ports
  const now = ports.clock.monotonic
  const folds = metrics.counter('selvedge_folds_total')
  const writebacks = metrics.counter('selvedge_writebacks_total')
  /** Streams whose tail is due to be folded. */
  const due = new Set<LiveStream>()
  let scanAt = 0
  let trimAt = now() + trimEveryMs
  let shrunkAt = 0
  const share = createGroupShare()
  /** Size of the log when it was last shrunk. */
  let shrunkBytes = 0
  let replayFrom = 0
  let logBytes = records.logBytes()
  let trimmedBytes = 0
  /** Oldest first, one per check. The log at start is one piece, trimmed at once if it is too large. */
  const marks: Mark[] = [{ at: now(), number: records.logLast(), bytes: 0 }]
  /** Rows up to this number are folded whatever the tail's size: they are old, or keep the log too long. */
  let agedNumber = 0

  const isShort = (): boolean => ports.room?.isShort() ?? false
  /** When disk space is short, the log becomes history early, because only history can be deleted. */
  function mayShrink(): boolean {
    if (!isShort()) return false
    if (keptLogBytes() <= limits.shortGroupBytes.value) return now() >= shrunkAt + limits.shortTailMs.value
    const isGrown = logBytes - shrunkBytes >= limits.shortGroupBytes.value / 4
    return isGrown || now() >= shrunkAt + limits.shrinkEveryMs.value
  }

  function note(group: Group): void {
    group.onWritten((outcome) => {
      logBytes += outcome.logBytes
    })
    ports.unsettled.note(group)
  }

  /** Adds upkeep that is due to a group about to be sent. */
  function attach(group: Group): void {
    // Rows that wait for time corrections stay in the log and in memory.
    if (!ports.unsettled.attach(group)) {
      if (isShort()) share.adapt(group.stage)
      const shrinks = mayShrink()
      const upTo = shrinks ? shrinkTo() : 0
      findDue()
      foldStreams(group)
      if (shrinks) foldEntitiesUpTo(upTo, group)
      else if (!isShort()) foldEntities(group)
      writeBack(upTo, group)
      if (shrinks) shrink(group)
      else if (now() >= trimAt) trim(group)
      ports.expiry.attach(group)
    }
    ports.retention.attach(group, keptLogBytes())
  }

  function foldStreams(group: Group): void {
    let room = share.of(limits.foldedPerGroup.value)
    for (const stream of due) {
      if (room <= 0) break
      room -= Math.max(stream.tail.committed, leastFolded)
      due.delete(stream)
      if (!stream.dropped) foldStream(group, stream)
    }
  }

  function foldStream(group: Group, stream: LiveStream): void {
    const isFolded = streams.foldTail(group.stage, stream, stream.tail.committed, lastNumber(group))
    if (isFolded) group.stage.published(() => void folds.value++)
  }

  const keptLogBytes = (): number => logBytes - trimmedBytes

  /** Everything committed before this group has at most this number. */
  const lastNumber = (group: Group): number => group.firstNumber() - 1

  function findDue(): void {
    if (now() < scanAt) return
    scanAt = now() + scanEveryMs
    const oldest = now() - limits.tailAgeMs.value
    // If all tails together are too large, tails above the average size are folded.
    const isCrowded = live.tailBytes() > limits.tailBytesMax.value
    const large = isCrowded ? live.tailBytes() / live.streamCount() : limits.chunkBytesMax.value
    for (const stream of live.streams()) {
      const { committed, bytes, since, firstNumber } = stream.tail
      if (committed === 0) continue
      const isFull = committed >= limits.chunkObservations.value || bytes >= large
      if (isFull || since < oldest || firstNumber <= agedNumber) due.add(stream)
    }
    live.evictIdle()
  }

  function foldEntities(group: Group): void {
    const isCrowded = streams.unfoldedCount() > limits.entityRecordsUnfoldedMax.value / 2
    let room: number = limits.writebacksPerGroup.value
    let bytes: number = limits.groupBytesMax.value
    let count: number = limits.foldedPerGroup.value
    for (const rid of streams.unfoldedEntities()) {
      const numbers = streams.unfolded(rid)
      // The entities are in order of first records, so the first recent one ends the search.
      if (room-- <= 0 || bytes <= 0 || count <= 0 || !(isCrowded || numbers[0]! <= agedNumber)) break
      // Folds only the records that fit the group.
      let fitting = 0
      while (fitting < numbers.length && bytes > 0 && count-- > 0)
        bytes -= records.logSize(numbers[fitting++]!)
      foldEntity(group, rid, numbers.slice(0, fitting))
    }
  }

  function foldEntity(group: Group, rid: number, numbers: readonly number[]): void {
    group.foldEntity({ rid, numbers })
    group.stage.published(() => streams.forget(rid, numbers.length, agedNumber))
  }

  /** Folds the records up to a number, so that no record of any entity keeps these rows in the log. */
  function foldEntitiesUpTo(upTo: number, group: Group): void {
    for (const rid of streams.unfoldedEntities()) {
      const numbers = streams.unfolded(rid)
      const recent = numbers.findIndex((number) => number > upTo)
      if (recent !== 0) foldEntity(group, rid, recent < 0 ? numbers.slice() : numbers.slice(0, recent))
    }
  }

  /** Writes back what has been dirty for long, or is dirty since a row up to a number. */
  function writeBack(upTo: number, group: Group): void {
    const oldest = now() - settings.writebackMs
    const most = share.of(limits.writebacksPerGroup.value)
    const isUnwritten = ({ dirtyAt, number }: LiveStream): boolean => dirtyAt >= 0 && number <= upTo
    const late: LiveEntity[] = []
    for (const entity of live.dirtyEntities()) {
      const isLate = entity.dirtySince! <= oldest
      // They are in the order in which entities became dirty.
      if (late.length >= most || (!isLate && upTo === 0)) break
      if (isLate || entity.streams.some(isUnwritten)) late.push(entity)
    }
    const written = late.filter(({ rid }) => ports.documents().writeBack(group.stage, rid)).length
    writebacks.value += written
    if (written > 0) group.stage.published(() => failpoint('writeback:after-write'))
  }

  /** Deletes log rows that are folded, written back and beyond the log's bounds. */
  function trim(group: Group): void {
    trimAt = now() + trimEveryMs
    const bytesAfter = (mark: Mark): number => logBytes - mark.bytes
    marks.push({ at: now(), number: lastNumber(group), bytes: logBytes })
    const aged = marks.findLast(
      (mark) => mark.at < now() - limits.tailAgeMs.value || bytesAfter(mark) > limits.logBytesMax.value / 2,
    )
    agedNumber = Math.max(agedNumber, aged?.number ?? 0)

    const settled = settle(group)
    const beyond = marks.findLast(
      (mark) =>
        mark.number <= settled &&
        (mark.at < now() - limits.logAgeMsMax.value || bytesAfter(mark) > limits.logBytesMax.value),
    )
    if (beyond === undefined) return
    group.stage.write('log.trim', beyond.number)
    group.stage.published(() => {
      trimmedBytes = beyond.bytes
      marks.splice(0, marks.indexOf(beyond) + 1)
    })
  }

  /**
   * The number up to which rows of the log, of all entities, become history in this group. There are few,
   * since they are on disk twice until the next group.
   */
  function shrinkTo(): number {
    const rows = share.of(limits.foldedPerGroup.value)
    const upTo = records.logNumberWithin(share.of(limits.shortGroupBytes.value * 2), rows)
    for (const stream of live.streams()) {
      const { firstNumber } = stream.tail
      if (firstNumber > 0 && firstNumber <= upTo) due.add(stream)
    }
    return upTo
  }

  /** Trims the log at once up to where its rows are history. */
  function shrink(group: Group): void {
    shrunkAt = now()
    shrunkBytes = logBytes
    const settled = settle(group)
    group.stage.write('log.trim', settled)
    group.stage.published(() => {
      trimmedBytes = logBytes - records.logBytes()
      while (marks.length > 0 && marks[0]!.number <= settled) marks.shift()
    })
  }

  /** Records from where a start must replay the log. Returns the last number that is not needed. */
  function settle(group: Group): number {
    const settled = settledNumber(group)
    if (settled > replayFrom) {
      group.stage.write('meta.put', 'replay', settled)
      group.stage.published(() => {
        replayFrom = settled
      })
    }
    return settled
  }

  /** The last number up to which all log rows are in chunks, histories and documents. */
  function settledNumber(group: Group): number {
    let number = lastNumber(group)
    for (const stream of live.streams()) {
      if (stream.tail.firstNumber > 0) number = Math.min(number, stream.tail.firstNumber - 1)
    }
    for (const entity of live.dirtyEntities()) {
      for (const stream of entity.streams) {
        if (stream.dirtyAt >= 0) number = Math.min(number, stream.number - 1)
      }
    }
    return Math.min(number, streams.oldestUnfolded() - 1)
  }

  return Object.freeze({
    note,
    attach,
    isFirst: ports.unsettled.isFirst,
    /** Approximate size of the remaining log, bytes. */
    logBytes: keptLogBytes,
    /** True when a group should be started for upkeep alone. */
    isDue(): boolean {
      if (ports.unsettled.count() > 0) return ports.unsettled.isDue()
      const isCrowded = streams.unfoldedCount() > limits.entityRecordsUnfoldedMax.value / 2
      if (due.size > 0 || (isCrowded && !isShort())) return true
      if (ports.expiry.isDue() || mayShrink()) return true
      if (live.tailCount() > 0) findDue()
      if (due.size > 0 || ports.retention.isDue(keptLogBytes())) return true
      const first = live.dirtyEntities().next()
      return !first.done && first.value.dirtySince! <= now() - settings.writebackMs
    },
  })
}
