/**
 * Answers that cannot hold all instances (GS CIM 009, 6.3.10): the longest lists are cut until the rest fits, and then
 * everything outside the range of time that all lists cover goes, so that the answer is complete within its range and
 * the client can go on from where it ends. Forwards from the oldest; with `lastN` backwards from the newest. What
 * remains of a list may be nothing; its attribute stays, since it has values elsewhere.
 */
import { msToDateTime } from './datetime.ts'
import { type Evolution, type TemporalSelection, type TimedInstance, timeOf } from './temporal.ts'

/** An evolution whose lists may have been cut on the way, by name. */
export interface CutEvolution extends Evolution {
  readonly cut: ReadonlySet<string>
}

export interface Part {
  readonly evolutions: readonly Evolution[]
  /** Value of Content-Range; undefined when everything is there. */
  readonly range?: string | undefined
}

export interface PartOptions extends TemporalSelection {
  readonly lastN?: number | undefined
}

/** Cuts lists to what fits; of each the beginning stays, with `lastN` the end. */
function cutToFit(evolutions: readonly CutEvolution[], most: number, isBackwards: boolean): CutEvolution[] {
  const lengths = evolutions.flatMap(({ attributes }) => [...attributes.values()].map((list) => list.length))
  const share = shareOf(lengths, most)
  if (share === Number.POSITIVE_INFINITY) return [...evolutions]
  return evolutions.map((evolution) => {
    const cut = new Set(evolution.cut)
    const attributes = new Map<string, readonly TimedInstance[]>()
    for (const [name, list] of evolution.attributes) {
      if (list.length > share) cut.add(name)
      attributes.set(name, isBackwards ? list.slice(-share) : list.slice(0, share))
    }
    return { ...evolution, attributes, cut }
  })
}

/** How many instances each list may have, so that all lists together hold at most so many; at least one each. */
function shareOf(lengths: readonly number[], most: number): number {
  let rest = most
  const ascending = lengths.toSorted((a, b) => a - b)
  for (const [i, length] of ascending.entries()) {
    const share = Math.floor(rest / (ascending.length - i))
    if (length > share) return Math.max(1, share)
    rest -= length
  }
  return Number.POSITIVE_INFINITY
}

/** Evolutions that together hold at most `most` instances, and the range that they cover. */
export function partOf(evolutions: readonly CutEvolution[], most: number, options: PartOptions): Part {
  const { lastN, timeproperty } = options
  const isBackwards = lastN !== undefined
  const fitting = cutToFit(evolutions, most, isBackwards)
  const time = (one: TimedInstance | undefined): number => timeOf(one!, timeproperty)!
  const cutLists = fitting.flatMap(({ attributes, cut }) =>
    [...attributes].filter(([name, list]) => cut.has(name) && list.length > 0).map(([, list]) => list),
  )
  if (cutLists.length === 0) return { evolutions: fitting }
  const bound = isBackwards
    ? Math.max(...cutLists.map((list) => time(list[0])))
    : Math.min(...cutLists.map((list) => time(list.at(-1))))
  let first = Number.POSITIVE_INFINITY
  let last = Number.NEGATIVE_INFINITY
  const kept = fitting.map((evolution) => {
    const attributes = new Map<string, readonly TimedInstance[]>()
    for (const [name, list] of evolution.attributes) {
      const part = list.filter((one) => (isBackwards ? time(one) >= bound : time(one) <= bound))
      if (part.length > 0) {
        first = Math.min(first, time(part[0]))
        last = Math.max(last, time(part.at(-1)))
      }
      attributes.set(name, part)
    }
    return { ...evolution, attributes }
  })
  const [start, end] = isBackwards
    ? [latestAsked(options) ?? last, first]
    : [earliestAsked(options) ?? first, last]
  return {
    evolutions: kept,
    range: `date-time ${msToDateTime(start)}-${msToDateTime(end)}/${lastN ?? '*'}`,
  }
}

const earliestAsked = ({ timerel, timeAtMs }: TemporalSelection): number | undefined =>
  timerel === 'before' ? undefined : timeAtMs

const latestAsked = ({ timerel, timeAtMs, endTimeAtMs }: TemporalSelection): number | undefined =>
  timerel === 'before' ? timeAtMs : endTimeAtMs
