/**
 * The search for the oldest history among all series, a few series at a time, and the order in which their
 * parts are removed. It holds the series whose first parts end earliest, up to its ceiling; a removed part is
 * replaced by the next of its series. Parts created after their series was searched may be missed until the
 * next search.
 */
import { limits } from '#base/limits/limits.ts'
import type { PartIndex, PartKind, RemovablePart } from '#store/history/oldest-parts.ts'

/** Searches for parts whose last time is before `bound`, ms. */
export function createRetentionSurvey(partIndexes: Readonly<Record<PartKind, PartIndex>>, bound: number) {
  const most = limits.evictionCandidatesMax.value
  const toSearch = Object.values(partIndexes)
  let series = 0
  let before = bound
  let isCut = false
  /** The parts, one per series; after the search a heap, oldest first. */
  const parts: RemovablePart[] = []

  function keepOldest(): void {
    parts.sort((a, b) => a.t1 - b.t1)
    if (parts.length <= most) return
    parts.length = most
    before = parts.at(-1)!.t1
    isCut = true
  }

  /** Replaces the first part of the heap and restores the heap order. */
  function replaceFirst(part: RemovablePart): void {
    let place = 0
    for (;;) {
      const left = place * 2 + 1
      const right = left + 1
      const older = right < parts.length && parts[right]!.t1 < parts[left]!.t1 ? right : left
      if (older >= parts.length || parts[older]!.t1 >= part.t1) break
      parts[place] = parts[older]!
      place = older
    }
    parts[place] = part
  }

  /** Removes the first part, or replaces it by another of its series that is old enough. */
  function takeFirst(other: RemovablePart | undefined): void {
    if (other !== undefined && other.t1 < before) replaceFirst(other)
    else {
      const last = parts.pop()
      if (last !== undefined && parts.length > 0) replaceFirst(last)
    }
  }

  return Object.freeze({
    /** Continues the search; true when it is complete. */
    search(): boolean {
      for (let room: number = limits.evictionSearchesPerGroup.value; toSearch.length > 0; room--) {
        if (room <= 0) return false
        const part = toSearch[0]!.seriesAfter(series)
        series = part?.series ?? 0
        if (part === undefined) {
          toSearch.shift()
          if (toSearch.length === 0) keepOldest()
        } else if (part.t1 < before) {
          parts.push(part)
          if (parts.length >= most * 2) keepOldest()
        }
      }
      return true
    },
    /** The oldest part found, in its current form; undefined if there is none. */
    oldest(): RemovablePart | undefined {
      for (;;) {
        const part = parts[0]
        if (part === undefined) return undefined
        const now = partIndexes[part.kind].partNow(part)
        if (now?.t1 === part.t1) return now
        // Folding changed the part since the search, so it is placed again by its new time.
        takeFirst(now)
      }
    },
    /** Skips the oldest part: continues with the next of its series, or skips the whole series. */
    pass(toNext: boolean): void {
      const part = parts[0]
      takeFirst(toNext && part !== undefined ? partIndexes[part.kind].partAfter(part) : undefined)
    },
    /** True if not all parts found fit: another search finds the rest. */
    isCut: () => isCut,
  })
}

export type RetentionSurvey = ReturnType<typeof createRetentionSurvey>
