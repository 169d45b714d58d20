/**
 * Given values of one stream and the budget level of their span, returns the values to send and the ranges
 * that are dropped. Pure.
 */
import type { CommittedPart } from '#broker/history/committed-part.ts'
import type { Level } from './budget.ts'

/** Missing values of an attribute: times of the first and the last (ms), and their number. */
export interface Loss {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: 'thinned' | 'budget'
  /** Range of commit times (ms) of the missing values; absent in states that older versions stored. */
  readonly writtenFrom?: number
  readonly writtenBefore?: number
}

/** Values in ascending order of time. */
export type Timed = Pick<CommittedPart, 'timeAt' | 'valueAt'>

/** Selects which of some values, given by ascending indexes, are sent, and what is lost. */
export function keptOf(
  { timeAt, valueAt }: Timed,
  places: readonly number[],
  { level, thinMs }: { readonly level: Level; readonly thinMs: number },
): { readonly kept: readonly number[]; readonly lost: Loss | undefined } {
  const isKept = (place: number, next: number | undefined): boolean => {
    if (level === 'full') return true
    if (level === 'bare') return false
    if (typeof valueAt(place) !== 'number') return true
    if (level === 'numberless') return false
    // Keeps the last value of each period.
    return next === undefined || Math.floor(timeAt(next) / thinMs) !== Math.floor(timeAt(place) / thinMs)
  }
  const lost: number[] = []
  const kept = places.filter((place, i) => {
    const is = isKept(place, places[i + 1])
    if (!is) lost.push(place)
    return is
  })
  if (lost.length === 0) return { kept, lost: undefined }
  const [from, to] = [lost[0]!, lost.at(-1)!].map((place) => timeAt(place)) as [number, number]
  return { kept, lost: { from, to, count: lost.length, reason: level === 'thinned' ? 'thinned' : 'budget' } }
}
