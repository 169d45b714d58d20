/**
 * The search for the oldest history among all series, a few series at a time, and the order in which their parts go. It
 * keeps the series whose first parts end earliest, as many as its ceiling allows; while parts are taken, each makes way
 * for the next of its series. What comes into being after its series was looked at may be missed until the next search.
 */
import { limits } from '#base/limits/limits.ts'
import type { Part, PartKind, Shelf } from '#store/history/oldest-parts.ts'

/** Looks for parts whose last time is before `bound`, ms. */
export function createSurvey(shelves: Readonly<Record<PartKind, Shelf>>, bound: number) {
  const most = limits.evictionCandidatesMax.value
  const toSearch = Object.values(shelves)
  let series = 0
  let before = bound
  let isCut = false
  /** One of each series; after the search a heap, the oldest first. */
  const parts: Part[] = []

  function keepOldest(): void {
    parts.sort((a, b) => a.t1 - b.t1)
    if (parts.length <= most) return
    parts.length = most
    before = parts.at(-1)!.t1
    isCut = true
  }

  /** Puts a part in the place of the first one and lets it sink to where no younger one is above it. */
  function replaceFirst(part: Part): void {
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

  /** Takes the first one away, for another one of its series where there is one that is old enough. */
  function takeFirst(other: Part | undefined): void {
    if (other !== undefined && other.t1 < before) replaceFirst(other)
    else {
      const last = parts.pop()
      if (last !== undefined && parts.length > 0) replaceFirst(last)
    }
  }

  return Object.freeze({
    /** Goes on with the search; true when it is through. */
    look(): boolean {
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
    /** The oldest part found, as it is now; undefined when there is none. */
    oldest(): Part | undefined {
      for (;;) {
        const part = parts[0]
        if (part === undefined) return undefined
        const now = shelves[part.kind].partNow(part)
        if (now?.t1 === part.t1) return now
        // What was folded since the search is not lost uncounted, nor is it older than it is.
        takeFirst(now)
      }
    },
    /** Leaves the oldest part behind: for the next one of its series, or with all of its series. */
    pass(toNext: boolean): void {
      const part = parts[0]
      takeFirst(toNext && part !== undefined ? shelves[part.kind].partAfter(part) : undefined)
    },
    /** True when more was found than could be kept: another search finds the rest. */
    isCut: () => isCut,
  })
}

export type Survey = ReturnType<typeof createSurvey>
