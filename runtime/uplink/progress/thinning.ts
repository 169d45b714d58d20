/**
 * Which values of a slice go up at the level of its span, and what does not. Pure.
 */
import type { CommittedPart } from '#broker/history/committed-part.ts'
import type { Level } from './budget.ts'

/** What is missing of an attribute: times of the first and the last (ms), and how many. */
export interface Loss {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: 'thinned' | 'budget'
  /** Commit times (ms) from and before which all of it was written; left out in states that older versions kept. */
  readonly writtenFrom?: number
  readonly writtenBefore?: number
}

/** Values in the order of their times. */
export type Timed = Pick<CommittedPart, 'timeAt' | 'valueAt'>

/** Which of some values, told by their ascending places, go up, and what does not. */
export function keptOf(
  values: Timed,
  places: readonly number[],
  { level, thinMs }: { readonly level: Level; readonly thinMs: number },
): { readonly kept: readonly number[]; readonly lost: Loss | undefined } {
  const lost: number[] = []
  const kept = places.filter((place, i) => {
    const is = isKept(values, { place, next: places[i + 1] }, level, thinMs)
    if (!is) lost.push(place)
    return is
  })
  if (lost.length === 0) return { kept, lost: undefined }
  const [from, to] = [lost[0]!, lost.at(-1)!].map((place) => values.timeAt(place)) as [number, number]
  return { kept, lost: { from, to, count: lost.length, reason: level === 'thinned' ? 'thinned' : 'budget' } }
}

function isKept(
  { timeAt, valueAt }: Timed,
  { place, next }: { readonly place: number; readonly next: number | undefined },
  level: Level,
  thinMs: number,
): boolean {
  if (level === 'full') return true
  if (level === 'bare') return false
  if (typeof valueAt(place) !== 'number') return true
  if (level === 'numberless') return false
  // The last of each period.
  return next === undefined || Math.floor(timeAt(next) / thinMs) !== Math.floor(timeAt(place) / thinMs)
}
