/**
 * Retention: removes the oldest history, of all streams and entities alike, when the tenant's file exceeds
 * its size bound, or when history exceeds its age bound. History consists of series: the chunks of a stream,
 * the other changes of an entity, its last document. A run has two steps:
 *
 * 1. `retention-survey.ts` searches all series for those whose oldest part ends earliest.
 * 2. The run removes their parts, those that end earliest first, a few per group.
 *
 * A group's removals and their gap records are one commit. Only whole parts are removed: a chunk that extends
 * beyond the bound stays. With roll-ups, numbers removed for their age leave one row per hour, with a
 * separate age bound. All state is on disk or can be lost at a restart.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { assert } from '#base/register/errors.ts'
import type { FollowerBacklogs } from '#broker/changes/follower-backlog.ts'
import type { DiskRoom } from '#broker/commit/disk-room.ts'
import type { Group, Stage } from '#broker/commit/stage.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import {
  type GapReason,
  type RemovablePart,
  type RemovableParts,
  removalOf,
} from '#store/history/oldest-parts.ts'
import type { RollUps } from '#store/history/roll-ups.ts'
import type { Records } from '#store/tables/records.ts'
import { createRetentionSurvey, type RetentionSurvey } from './retention-survey.ts'
import { type RollUpPorts, rollUpOf } from './roll-up.ts'

export interface RetentionPorts extends RollUpPorts, Instruments {
  readonly rollUps: RollUps
  readonly tenant: string
  readonly retained: RemovableParts
  readonly records: Records
  /** Disk space; without it, space is unlimited. */
  readonly room?: Pick<DiskRoom, 'isShort' | 'shortBytes'> | undefined
  /** The backlogs of followers; without it, there are none. */
  readonly followers?: Pick<FollowerBacklogs, 'since'> | undefined
}

export interface RetentionSettings {
  /** Most bytes in use in the tenant's file, without the log, which has bounds of its own. */
  readonly maxBytes: number
  readonly maxAgeDays?: number | undefined
  /** How long hourly roll-ups of history older than `maxAgeDays` are kept; without it, there are none. */
  readonly rollUpDays?: number | undefined
  /** Whether the history of an entity outlives it; by default it does. */
  readonly afterDeletion?: 'keep' | 'remove' | undefined
}

/** An eviction run, from the search to the last part. */
interface Run {
  readonly isBySize: boolean
  /** The size to reach. */
  readonly goalBytes: number
  /** Parts that end before this time (ms) are removed whatever the size. */
  readonly agedBefore: number
  survey: RetentionSurvey
  /** Number of parts removed when the search began. */
  partsBefore: number
  parts: number
  readonly evicted: Record<GapReason, number>
  /** Latest time of the removed parts, ms. */
  until: number
}

/** The parts of one stream that a group removes (s = 0: of the other changes of an entity). */
interface Loss {
  readonly rid: number
  readonly s: number
  readonly name: number
  readonly t0: number
  t1: number
  m1: number
  count: number
}

const dayMs = 86_400_000
/** A run by size reduces to this share of the bound, so that it is worth its search. */
const keptShare = 0.95
/** Intervals at which size and age are checked, ms. */
const sizeEveryMs = 1000
const ageEveryMs = 3_600_000
/** Pause when the file is too large and no history is left, ms. */
const hopelessMs = 600_000

export function createRetention(ports: RetentionPorts, settings: RetentionSettings) {
  const { retained, history, records, log } = ports
  const { maxBytes, maxAgeDays, rollUpDays } = settings
  const now = ports.clock.monotonic
  const evictedTotal = ports.metrics.counter('selvedge_history_evicted_total')
  let run: Run | undefined
  /** When the size was within its bound, or could not be reduced. */
  let restedAt = Number.NEGATIVE_INFINITY
  let restsLong = false
  let ageAt = maxAgeDays === undefined ? Number.POSITIVE_INFINITY : 0
  let isHopeless = false
  let gapCount = retained.gapCount()
  let lastGap = retained.lastGap()

  /** Bytes to delete because disk space is short; 0 if even deleting everything would not help. */
  function shortBytes(logBytes: number): number {
    if (ports.room?.isShort() !== true) return 0
    const used = retained.usedBytes(logBytes)
    const short = ports.room.shortBytes(used)
    return short < used ? short : 0
  }

  /** Adds the next step of an eviction, if one is due, to a group about to be sent. */
  function attach({ stage }: Group, logBytes: number): void {
    if (gapCount > limits.gapsMax.value) {
      sumUpGaps(stage)
      return
    }
    if (run === undefined && isDue(logBytes)) run = begin(ageTime(stage), logBytes)
    if (run?.survey.search()) step(stage, run, logBytes)
  }

  /**
   * Reference time of ages. Commit times may be ahead of the clock; by an unreliable clock nothing is old.
   */
  const ageTime = (stage: Stage): number =>
    (ports.clock.trust?.mayRemove() ?? true)
      ? Math.min(stage.at, ports.clock.now())
      : Number.NEGATIVE_INFINITY

  function isDue(logBytes: number): boolean {
    if (run !== undefined || now() >= ageAt) return true
    if (now() < restedAt + restMs()) return false
    if (retained.usedBytes(logBytes) > maxBytes || shortBytes(logBytes) > 0) return true
    restedAt = now()
    restsLong = false
    return false
  }

  /** When disk space is short, checks are frequent, since the log soon becomes deletable history. */
  const restMs = (): number =>
    ports.room?.isShort() === true ? limits.shrinkEveryMs.value : restsLong ? hopelessMs : sizeEveryMs

  function begin(at: number, logBytes: number): Run {
    const used = retained.usedBytes(logBytes)
    const short = shortBytes(logBytes)
    const isBySize = used > maxBytes || short > 0
    const agedBefore = maxAgeDays === undefined ? Number.NEGATIVE_INFINITY : at - maxAgeDays * dayMs
    return {
      isBySize,
      goalBytes: Math.min(maxBytes * keptShare, short > 0 ? used - short : Number.POSITIVE_INFINITY),
      agedBefore,
      survey: createRetentionSurvey(retained.partIndexes, isBySize ? Number.POSITIVE_INFINITY : agedBefore),
      partsBefore: 0,
      parts: 0,
      evicted: { size: 0, age: 0 },
      until: Number.NEGATIVE_INFINITY,
    }
  }

  /** Removes the oldest parts, all for the same reason; ends the run if none must be removed. */
  function step(stage: Stage, current: Run, logBytes: number): void {
    const { survey, isBySize, agedBefore } = current
    const settled = Number(records.meta('replay') ?? 0)
    let excess = isBySize ? retained.usedBytes(logBytes) - current.goalBytes : 0
    const reasonFor = (part: RemovablePart | undefined): GapReason | undefined => {
      if (part === undefined) return undefined
      if (part.t1 < agedBefore) return 'age'
      return excess > 0 ? 'size' : undefined
    }
    const reason = reasonFor(survey.oldest())
    if (reason === undefined) {
      trimRollUps(stage, excess > 0)
      end(current, logBytes)
      return
    }
    const removed: RemovablePart[] = []
    for (let room: number = limits.evictionPartsPerGroup.value; room > 0; room--) {
      const part = survey.oldest()
      if (part === undefined || reasonFor(part) !== reason) break
      const isRemoved = isRemovable(part, settled)
      survey.pass(isRemoved)
      if (!isRemoved) continue
      removed.push(part)
      excess -= part.bytes
    }
    if (removed.length > 0) remove(stage, current, removed, reason)
  }

  /**
   * A chunk is never replayed from the log, since its stream knows up to where it is folded. Other parts must
   * precede the replay start. The last document of an entity is removed after the rest of its history.
   */
  function isRemovable(part: RemovablePart, settled: number): boolean {
    if (part.kind === 'chunk') return true
    if (part.number > settled) return false
    return part.kind === 'changes' || !hasHistory(part.rid)
  }

  function hasHistory(rid: number): boolean {
    const { changes, chunk } = retained.partIndexes
    if (changes.seriesAfter(rid - 1)?.series === rid) return true
    return history.streamsOf(rid).some(({ s }) => chunk.seriesAfter(s - 1)?.series === s)
  }

  function remove(stage: Stage, current: Run, parts: readonly RemovablePart[], reason: GapReason): void {
    restoreWhenUndone(stage)
    const backlogSince = ports.followers?.since() ?? Number.POSITIVE_INFINITY
    for (const loss of lossesOf(parts, backlogSince)) recordGap(stage, loss, reason, backlogSince)
    for (const part of parts) {
      if (part.kind === 'chunk' && reason === 'age' && rollUpDays !== undefined) rollUp(stage, part)
      for (const row of removalOf(part)) stage.write(...row)
    }
    stage.published(() => {
      const count = parts.reduce((sum, part) => sum + part.count, 0)
      evictedTotal.value += count
      current.evicted[reason] += count
      current.parts += parts.length
      current.until = Math.max(current.until, parts.at(-1)!.t1)
    })
  }

  function rollUp(stage: Stage, { series: s, t0 }: RemovablePart): void {
    for (const { hour, count, min, max, sum, sumsq } of rollUpOf(ports, s, t0)) {
      stage.write('rollup.add', s, hour, count, min, max, sum, sumsq)
    }
  }

  /** Deletes roll-ups that are too old, and the oldest week of them if nothing else can free space. */
  function trimRollUps(stage: Stage, isForRoom: boolean): void {
    const first = ports.rollUps.first()
    if (first === undefined) return
    const aged = ageTime(stage) - (rollUpDays ?? 0) * dayMs
    const bound = isForRoom ? Math.max(aged, first + 7 * dayMs) : aged
    if (first < bound) stage.write('rollup.trim', bound)
  }

  /** A failed group leaves everything unchanged; the next one starts a new run. */
  function restoreWhenUndone(stage: Stage): void {
    const before = { gapCount, lastGap }
    stage.undone(() => {
      run = undefined
      restedAt = Number.NEGATIVE_INFINITY
      gapCount = before.gapCount
      lastGap = before.lastGap
    })
  }

  function lossesOf(parts: readonly RemovablePart[], backlogSince: number): Iterable<Loss> {
    const losses = new Map<string, Loss>()
    for (const { kind, series, rid, t0, t1, m1, count } of parts) {
      if (kind === 'tombstone') continue
      const key = `${kind} ${series} ${m1 >= backlogSince}`
      const known = losses.get(key)
      if (known === undefined) {
        const owner = kind === 'chunk' ? streamOf(series) : { rid, s: 0, name: 0 }
        losses.set(key, { ...owner, t0, t1, m1, count })
      } else {
        known.t1 = t1
        known.m1 = Math.max(known.m1, m1)
        known.count += count
      }
    }
    return losses.values()
  }

  function streamOf(s: number): { rid: number; s: number; name: number } {
    const row = history.stream(s)
    assert(row !== undefined, 'chunks belong to streams')
    return { rid: row.rid, s, name: row.name }
  }

  /** Extends the last gap record if the reason is the same, and all followers sent both or neither. */
  function recordGap(stage: Stage, loss: Loss, reason: GapReason, backlogSince: number): void {
    const { rid, s, name, t0, t1, m1, count } = loss
    const last = retained.lastGapOf(rid, s)
    const isUnsent = m1 >= backlogSince
    const unsent = isUnsent ? 1 : 0
    lastGap++
    if (last?.reason === reason && last.m1 >= backlogSince === isUnsent)
      stage.write('gap.extend', lastGap, t0, t1, count, stage.at, m1, unsent, last.g)
    else {
      gapCount++
      stage.write('gap.insert', lastGap, s, rid, name, t0, t1, count, stage.at, reason, stage.at, m1, unsent)
    }
  }

  function sumUpGaps(stage: Stage): void {
    restoreWhenUndone(stage)
    const excess = Math.min(gapCount - limits.gapsMax.value, limits.evictionPartsPerGroup.value)
    for (const g of retained.oldestGaps(excess)) {
      stage.write('gap.sum', g)
      stage.write('gap.delete', g)
      gapCount--
    }
  }

  function end(current: Run, logBytes: number): void {
    const isExhausted = current.survey.oldest() === undefined
    if (isExhausted && current.survey.isCut() && current.parts > current.partsBefore) {
      const { isBySize, agedBefore } = current
      current.survey = createRetentionSurvey(
        retained.partIndexes,
        isBySize ? Number.POSITIVE_INFINITY : agedBefore,
      )
      current.partsBefore = current.parts
      return
    }
    run = undefined
    if (maxAgeDays !== undefined) ageAt = now() + ageEveryMs
    const { tenant } = ports
    const { parts, evicted, until } = current
    if (parts > 0) log.info('history.evicted', { tenant, parts, ...evicted, until: msToDateTime(until) })
    const usedBytes = retained.usedBytes(logBytes)
    const wasHopeless = isHopeless
    isHopeless = isExhausted && (usedBytes > maxBytes || shortBytes(logBytes) > 0)
    // The current log may soon become deletable history.
    restedAt = isHopeless || shortBytes(logBytes) > 0 ? now() : Number.NEGATIVE_INFINITY
    restsLong = isHopeless
    if (!isHopeless) return
    if (!wasHopeless) log.warn('history.no-room', { tenant, usedBytes, maxBytes })
  }

  return Object.freeze({
    attach,
    /** True when a group should be started for it alone. */
    isDue,
  })
}

export type Retention = ReturnType<typeof createRetention>
