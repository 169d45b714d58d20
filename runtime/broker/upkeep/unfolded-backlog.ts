/**
 * How much history there is behind a commit time, folded and in tails, and how much room it has until the oldest of it is
 * removed. All of it is about: a chunk is spread evenly over the commit times of its instances.
 */

import type { Owed } from '#broker/changes/follower-backlog.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import type { HistorySpans, SpanVolume } from '#store/history/history-spans.ts'
import type { GapRow, OwnedGapRow, Retained } from '#store/history/oldest-parts.ts'

export interface BacklogPorts {
  readonly spans: HistorySpans
  readonly live: Pick<LiveState, 'streams'>
  readonly retained: Retained
  /** Bytes of the log, which has bounds of its own. */
  readonly logBytes: () => number
  readonly owed: Owed
}

export interface Backlog {
  /** What was observed from a commit time (ms) on. */
  volumes(from: number): readonly SpanVolume[]
  /** Bytes that history may grow by until something is removed that was committed at `from` or later. */
  roomBytes(from: number): number
  /** Gaps behind a number, of what was committed at a time (ms) or later, in the order of their numbers: so many at most. */
  gapsBehind(g: number, since: number, limit: number): readonly OwnedGapRow[]
  /** The same of what somebody was not told when it went, and of all that began before a time (ms). */
  gapsOwed(g: number, before: number, limit: number): readonly OwnedGapRow[]
  /** Number of the gap that was touched longest ago, as far as it is no part of a sum; undefined where there is none. */
  firstGap(): number | undefined
  /** What gaps beyond their ceiling became: one sum per reason, of nobody. */
  gapSums(): readonly GapRow[]
  /** Says since when (commit time, ms) something is not told; returns how that ends. */
  readonly owe: Owed['add']
}

/** An observation that is not folded yet, when it will be. */
const unfoldedBytes = 3

export function createBacklog(
  { spans, live, retained, logBytes, owed }: BacklogPorts,
  { maxBytes }: { readonly maxBytes: number },
): Backlog {
  return Object.freeze({
    volumes(from) {
      const found = spans.volumes(from)
      for (const { s, tail } of live.streams()) {
        const { committed, modified, times, values } = tail
        const first = modified.findIndex((at) => at >= from)
        if (first < 0 || first >= committed) continue
        const observations = committed - first
        found.push({
          s,
          from: modified[first]!,
          to: modified[committed - 1]!,
          observations,
          bytes: observations * unfoldedBytes,
          isNumeric: typeof values[first] === 'number',
          observedMs: Math.abs(times[committed - 1]! - times[first]!),
        })
      }
      return found
    },
    roomBytes(from) {
      const free = maxBytes - retained.usedBytes(logBytes())
      // What is older goes first, and makes room.
      return Math.max(0, free) + spans.bytesBefore(from)
    },
    gapsBehind: retained.gapsBehind,
    gapsOwed: retained.gapsOwed,
    firstGap: retained.firstGap,
    gapSums: retained.gapSums,
    owe: owed.add,
  } satisfies Backlog)
}
