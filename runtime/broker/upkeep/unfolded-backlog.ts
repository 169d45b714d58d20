/**
 * Estimates the history after a commit time, folded and in tails, and how much it may grow before its oldest
 * part is removed. All figures are approximate: a chunk counts as spread evenly over the commit times of its
 * instances.
 */

import type { FollowerBacklogs } from '#broker/changes/follower-backlog.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import type { HistorySpans, SpanVolume } from '#store/history/history-spans.ts'
import type { GapRow, OwnedGapRow, RemovableParts } from '#store/history/oldest-parts.ts'

export interface UnfoldedBacklogPorts {
  readonly spans: HistorySpans
  readonly live: Pick<LiveState, 'streams'>
  readonly retained: RemovableParts
  /** Bytes of the log, which has bounds of its own. */
  readonly logBytes: () => number
  readonly followers: FollowerBacklogs
}

export interface UnfoldedBacklog {
  /** Volumes of the observations committed at or after a time (ms). */
  volumes(from: number): readonly SpanVolume[]
  /** Bytes by which history may grow before something committed at `from` or later is removed. */
  roomBytes(from: number): number
  /**
   * Gaps after a number with history committed at a time (ms) or later, in order of their numbers, at most
   * `limit`.
   */
  gapsSince(g: number, since: number, limit: number): readonly OwnedGapRow[]
  /**
   * Like the member above, for history removed before a follower had sent it, and for all gaps that began
   * before a time (ms).
   */
  gapsUnread(g: number, before: number, limit: number): readonly OwnedGapRow[]
  /** Number of the gap changed longest ago that is not part of a sum; undefined if there is none. */
  firstGap(): number | undefined
  /** Sums of gaps beyond their ceiling: one per reason, of no particular entity. */
  gapSums(): readonly GapRow[]
  /**
   * Adds a follower; `since` returns the commit time (ms) where its backlog begins. Returns a function that
   * removes it.
   */
  readonly follow: FollowerBacklogs['add']
}

/** Approximate size of an observation after folding. */
const unfoldedBytes = 3

export function createUnfoldedBacklog(
  { spans, live, retained, logBytes, followers }: UnfoldedBacklogPorts,
  { maxBytes }: { readonly maxBytes: number },
): UnfoldedBacklog {
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
      // Older history is removed first, which frees space.
      return Math.max(0, free) + spans.bytesBefore(from)
    },
    gapsSince: retained.gapsSince,
    gapsUnread: retained.gapsUnread,
    firstGap: retained.firstGap,
    gapSums: retained.gapSums,
    follow: followers.add,
  } satisfies UnfoldedBacklog)
}
