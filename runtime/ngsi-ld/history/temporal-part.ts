/**
 * Partial responses if not all instances fit (GS CIM 009, 6.3.10). The longest lists are cut until the rest
 * fits. Then instances outside the time range that all lists cover are dropped. So the response is complete
 * within its range, and the client can continue at its end. The range starts at the oldest instance; with
 * `lastN` it extends backwards from the newest. A list may become empty; its attribute remains, because it
 * has values in other parts.
 */
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type Evolution, type TemporalSelection, type TimedInstance, timeOf } from './temporal-query.ts'

/** An evolution with the names of lists that were already cut. */
export interface CutEvolution extends Evolution {
  readonly cut: ReadonlySet<string>
}

export interface TemporalPart {
  readonly evolutions: readonly Evolution[]
  /** Value of Content-Range; undefined if the response is complete. */
  readonly range?: string | undefined
}

export interface PartOptions extends TemporalSelection {
  readonly lastN?: number | undefined
}

/**
 * Cuts a list to about `most` instances: keeps the first, or with `lastN` the last. A client that continues
 * at the end of a part must always progress, however many instances share a time. Forwards, the next part
 * repeats the last time, so the list extends beyond the `first` time. Backwards, the list contains all
 * instances of each of its times. The result may therefore exceed `most`.
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
 * Finds an attribute that prevents progress to the next part. At the start of the part, all its instances
 * read share one time although more exist, or more than `most` do. An attribute with many equal times
 * elsewhere is checked again when a part starts there.
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

/** Cuts lists to fit; keeps the beginning of each, with `lastN` the end. */
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
 * The number of instances that each cut list may have, so that all lists together hold at most `most`. Lists
 * known to be complete count with their length; the others may be arbitrarily long.
 */
export function roomOf(evolutions: readonly CutEvolution[], most: number): number {
  const lengths = evolutions.flatMap(({ attributes, cut }) =>
    [...attributes].map(([name, list]) => (cut.has(name) ? Number.POSITIVE_INFINITY : list.length)),
  )
  return shareOf(lengths, most)
}

/**
 * The number of instances that each list may have, so that all together hold at most `most`; at least one
 * each.
 */
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

/**
 * Evolutions with at most `most` instances in total, plus those that share a time, and the range that they
 * cover.
 */
export function partOf(
  evolutions: readonly CutEvolution[],
  most: number,
  options: PartOptions,
): TemporalPart {
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
    ? [latestRequested(options) ?? last, first]
    : [earliestRequested(options) ?? first, last]
  return {
    evolutions: kept,
    range: `date-time ${msToDateTime(start)}-${msToDateTime(end)}/${lastN ?? '*'}`,
  }
}

const earliestRequested = ({ timerel, timeAtMs }: TemporalSelection): number | undefined =>
  timerel === 'before' ? undefined : timeAtMs

const latestRequested = ({ timerel, timeAtMs, endTimeAtMs }: TemporalSelection): number | undefined =>
  timerel === 'before' ? timeAtMs : endTimeAtMs
