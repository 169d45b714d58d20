/**
 * Retention: removes the oldest history, of all streams and entities alike, when the tenant's file holds more than it
 * may or when history is older than it may be. A run first finds the series with the oldest parts, then removes parts
 * in order of their last time, a few per group; what a group removes and the gap records of it are one commit. Whole
 * parts only: a chunk that reaches over the bound stays. It measures and decides; it holds nothing that a restart loses.
 */
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import type { History } from '#store/history.ts'
import type { Records } from '#store/records.ts'
import { type GapReason, type Part, removalOf, type Retained, type Shelf } from '#store/retention.ts'
import type { Group, Stage } from './stage.ts'

export interface RetentionPorts {
  readonly tenant: string
  readonly retained: Retained
  readonly history: History
  readonly records: Records
  readonly log: Log
  readonly metrics: Metrics
}

export interface RetentionSettings {
  /** Bytes in use by the tenant's file apart from the log. */
  readonly maxBytes: number
  readonly maxAgeDays?: number | undefined
}

/** One eviction, from the first look to the last part. */
interface Run {
  readonly bySize: boolean
  /** History that ends before this time goes whatever the size, ms. */
  readonly agedBefore: number
  survey: Survey
  parts: number
  readonly evicted: Record<GapReason, number>
  until: number
}

interface Gap {
  readonly rid: number
  readonly s: number
  readonly name: number
  readonly t0: number
  t1: number
  count: number
}

const now = (): number => performance.now()
const dayMs = 86_400_000
/** A run by size ends at this share of the bound, so that it is worth its search. */
const keptShare = 0.95
/** How often the size is looked at, and the age, ms. */
const sizeEveryMs = 1000
const ageEveryMs = 3_600_000
/** How long to rest when there was nothing left to remove, ms. */
const hopelessMs = 600_000

export function createRetention(ports: RetentionPorts, settings: RetentionSettings) {
  const { retained, history, records, log } = ports
  const evictedTotal = ports.metrics.counter('selvedge_history_evicted_total')
  const hasAge = settings.maxAgeDays !== undefined
  let run: Run | undefined
  let sizeAt = 0
  let ageAt = 0
  let isHopeless = false
  let gapCount = retained.gapCount()
  let lastGap = retained.lastGap()

  /** Adds the next step of an eviction, if one is due, to a group that is about to be sent. */
  function attach(group: Group, logBytes: number): void {
    const { stage } = group
    if (gapCount > limits.gapsMax.value) {
      sumUpGaps(stage)
      return
    }
    run ??= begin(stage.at, logBytes)
    if (run?.survey.look()) evict(stage, run, logBytes)
  }

  function begin(at: number, logBytes: number): Run | undefined {
    if (!isDue(logBytes)) return undefined
    sizeAt = now() + sizeEveryMs
    const bySize = retained.usedBytes(logBytes) > settings.maxBytes
    const agedBefore = hasAge ? at - settings.maxAgeDays! * dayMs : Number.NEGATIVE_INFINITY
    return {
      bySize,
      agedBefore,
      survey: surveyOf(bySize, agedBefore),
      parts: 0,
      evicted: { size: 0, age: 0 },
      until: Number.NEGATIVE_INFINITY,
    }
  }

  function surveyOf(bySize: boolean, agedBefore: number): Survey {
    return createSurvey(retained.shelves, bySize ? Number.POSITIVE_INFINITY : agedBefore)
  }

  /** Removes what is oldest, for one reason at a time, and records the gaps. */
  function evict(stage: Stage, current: Run, logBytes: number): void {
    const { survey } = current
    const settled = Number(records.meta('replay') ?? 0)
    const gaps = new Map<number, Gap>()
    let excess = retained.usedBytes(logBytes) - settings.maxBytes * keptShare
    let reason: GapReason | undefined
    let room: number = limits.evictionPartsPerGroup.value
    const removed: Part[] = []
    for (; room > 0; room--) {
      const part = survey.oldest()
      const why = part && reasonFor(current, part, excess)
      if (part === undefined || why === undefined || (reason ??= why) !== why) break
      const goes = isRemovable(part, settled)
      survey.drop(goes)
      if (!goes) continue
      removed.push(part)
      excess -= part.bytes
    }
    // Whoever undoes the group makes the next one begin anew.
    stage.undone(() => {
      run = undefined
      sizeAt = 0
    })
    for (const part of removed) {
      for (const row of removalOf(part)) stage.write(...row)
    }
  }
}
