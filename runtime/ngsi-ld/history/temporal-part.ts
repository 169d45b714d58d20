/**
 * Answers that cannot hold all instances (GS CIM 009, 6.3.10): the longest lists are cut until the rest fits, and then
 * everything outside the range of time that all lists cover goes, so that the answer is complete within its range and
 * the client can go on from where it ends. Forwards from the oldest; with `lastN` backwards from the newest. What
 * remains of a list may be nothing; its attribute stays, since it has values elsewhere.
 */
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type Evolution, type TemporalSelection, type TimedInstance, timeOf } from './temporal-query.ts'

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

/**
 * What stays of a list of which so many fit: the first ones, backwards the last. Who goes on from where a part ends has to get
 * on, however many share a time: forwards, where the last time of a part comes again with the next one, it reaches beyond
 * the `first` time; backwards it holds each of its times whole. So it may be longer than what fits.
 */
export function beginningOf(
  list: readonly TimedInstance[],
  most: number,
  { timeproperty, lastN }: Pick<PartOptions, 'timeproperty' | 'lastN'>,
  first?: number,
): readonly TimedInstance[] {
  if (list.length <= most) return list
  const time = (one: TimedInstance): number => timeOf(one, timeproperty)!
  if (lastN === undefined) {
    const held = first ?? time(list[0]!)
    const beyond = list.findIndex((one) => time(one) > held)
    return beyond < 0 ? list : list.slice(0, Math.max(most, beyond + 1))
  }
  const left = time(list.at(-most - 1)!)
  const whole = list.slice(-most).findIndex((one) => time(one) > left)
  return whole < 0 ? list.slice(list.findIndex((one) => time(one) === left)) : list.slice(-most + whole)
}

/**
 * An attribute because of which no part leads on: where a part would begin, all that was read of it is of one time although
 * there is more, or more than `most` are. One that is so elsewhere is read again when a part begins there.
 */
export function stuckAttribute(
  evolutions: readonly CutEvolution[],
  most: number,
  { timeproperty, lastN }: PartOptions,
): { readonly id: string; readonly name: string; readonly time: number; readonly count: number } | undefined {
  const lists = evolutions.flatMap(({ id, attributes, cut }) =>
    [...attributes].flatMap(([name, list]) => {
      const [first, last] = [list[0], list.at(-1)].map((one) => one && timeOf(one, timeproperty))
      return first === undefined ? [] : { id, name, isCut: cut.has(name), first, last, count: list.length }
    }),
  )
  const begins = lists.reduce((least, { first }) => Math.min(least, first), Number.POSITIVE_INFINITY)
  const ends = lists.reduce(
    (latest, { isCut, first }) => (isCut ? Math.max(latest, first) : latest),
    Number.NEGATIVE_INFINITY,
  )
  const stuck = lists.find(
    ({ isCut, first, last, count }) =>
      isCut && first === (lastN === undefined ? begins : ends) && (first === last || count > most),
  )
  return stuck && { id: stuck.id, name: stuck.name, time: stuck.first, count: stuck.count }
}

/** Cuts lists to what fits; of each the beginning stays, with `lastN` the end. */
function cutToFit(evolutions: readonly CutEvolution[], most: number, options: PartOptions): CutEvolution[] {
  const lengths = evolutions.flatMap(({ attributes }) => [...attributes.values()].map((list) => list.length))
  const share = shareOf(lengths, most)
  if (share === Number.POSITIVE_INFINITY) return [...evolutions]
  const lists = evolutions.flatMap(({ attributes }) => [...attributes.values()])
  const starts = lists.flatMap(([one]) => (one === undefined ? [] : timeOf(one, options.timeproperty)!))
  const first = starts.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY)
  return evolutions.map((evolution) => {
    const cut = new Set(evolution.cut)
    const attributes = new Map<string, readonly TimedInstance[]>()
    for (const [name, list] of evolution.attributes) {
      const kept = beginningOf(list, share, options, first)
      if (kept.length < list.length) cut.add(name)
      attributes.set(name, kept)
    }
    return { ...evolution, attributes, cut }
  })
}

/**
 * How many instances each of the lists that were cut may have, so that all lists together hold at most so many: as those that
 * were not show, since nobody knows how long the others are.
 */
export function roomOf(evolutions: readonly CutEvolution[], most: number): number {
  const lengths = evolutions.flatMap(({ attributes, cut }) =>
    [...attributes].map(([name, list]) => (cut.has(name) ? Number.POSITIVE_INFINITY : list.length)),
  )
  return shareOf(lengths, most)
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

/** Evolutions that together hold at most `most` instances, beside those that share one time, and the range that they cover. */
export function partOf(evolutions: readonly CutEvolution[], most: number, options: PartOptions): Part {
  const { lastN, timeproperty } = options
  const isBackwards = lastN !== undefined
  const fitting = cutToFit(evolutions, most, options)
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
