/**
 * What of a backlog goes up when more waits than is allowed. The current values go anyway, and so do changes that are no
 * observations. Of observations, the oldest numbers are thinned first; then numbers go, oldest first; then, oldest first,
 * everything that was observed. What is too old goes without being thinned. Pure.
 */

/**
 * - thinned: of numbers one value of each attribute and period goes up
 * - numberless: what was observed and is no number goes up: states and alarms, which are known by nothing else
 * - bare: nothing of what was observed goes up
 */
export type Level = 'full' | 'thinned' | 'numberless' | 'bare'

const levels: readonly Level[] = ['full', 'thinned', 'numberless', 'bare']

/** A part of a backlog, by commit times: from <= ms < to. */
export interface Portion {
  readonly from: number
  readonly to: number
  readonly level: Level
}

export interface Amount {
  readonly observations: number
  readonly bytes: number
}

/** What a portion would hold at each level. */
export type Weighed = Portion & { readonly amounts: Readonly<Record<Level, Amount>> }

export interface Budget {
  readonly bytes: number
  readonly observations: number
  /** Commit time (ms) before which nothing numeric goes up. */
  readonly oldest: number
}

/**
 * The portions, oldest first, with the levels that keep them within a budget. No level is ever taken back, and the first
 * `fixed` of them stay as they are.
 */
export function withinBudget(all: readonly Weighed[], budget: Budget, fixed = 0): readonly Portion[] {
  const portions = all.map((one, i) => ({
    ...one,
    level: i >= fixed && one.to <= budget.oldest ? atLeast(one.level, 'numberless') : one.level,
  }))
  const sum = { observations: 0, bytes: 0 }
  const add = ({ amounts, level }: Weighed, sign: 1 | -1): void => {
    sum.observations += sign * amounts[level].observations
    sum.bytes += sign * amounts[level].bytes
  }
  for (const one of portions) add(one, 1)
  for (const level of levels.slice(1)) {
    for (const one of portions.slice(fixed)) {
      if (sum.bytes <= budget.bytes && sum.observations <= budget.observations)
        return portions.map(withoutAmounts)
      if (levels.indexOf(one.level) >= levels.indexOf(level)) continue
      add(one, -1)
      one.level = level
      add(one, 1)
    }
  }
  return portions.map(withoutAmounts)
}

const atLeast = (level: Level, least: Level): Level =>
  levels.indexOf(level) < levels.indexOf(least) ? least : level

const withoutAmounts = ({ from, to, level }: Portion): Portion => ({ from, to, level })

/** Neighbours of one level as one. */
export function joinedPortions(all: readonly Portion[]): readonly Portion[] {
  const joined: Portion[] = []
  for (const one of all) {
    const last = joined.at(-1)
    if (last?.level === one.level && last.to === one.from) joined[joined.length - 1] = { ...last, to: one.to }
    else joined.push(one)
  }
  return joined
}

/** What portions without holes say of a stretch of time; where they say nothing, all goes up. */
export function stretchOf(portions: readonly Portion[], from: number, to: number): readonly Portion[] {
  const full = (begin: number, end: number): Portion => ({ from: begin, to: end, level: 'full' })
  const ends = { begin: portions[0]?.from ?? to, end: portions.at(-1)?.to ?? to }
  const clipped = [full(from, ends.begin), ...portions, full(ends.end, to)].map((one) => ({
    ...one,
    from: Math.max(one.from, from),
    to: Math.min(one.to, to),
  }))
  return joinedPortions(clipped.filter((one) => one.from < one.to))
}

/** A portion in at most so many parts of one length. */
export function cutPortion({ from, to, level }: Portion, parts: number, leastMs: number): readonly Portion[] {
  const ms = Math.max(leastMs, Math.ceil((to - from) / parts))
  return Array.from({ length: Math.max(1, Math.ceil((to - from) / ms)) }, (_, i) => ({
    from: from + i * ms,
    to: Math.min(to, from + (i + 1) * ms),
    level,
  }))
}

/** Folded or live history of one stream: how much was committed between two times. */
export interface Volume extends Amount {
  readonly from: number
  /** The time of the last. */
  readonly to: number
  readonly isNumeric: boolean
  /** From the first to the last time of observation, ms; these may be other times than those of commits. */
  readonly observedMs: number
}

/** The place of the first portion, in order of time, that ends behind a time. */
function firstBehind(portions: readonly Portion[], at: number): number {
  let low = 0
  let high = portions.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (portions[middle]!.to > at) high = middle
    else low = middle + 1
  }
  return low
}

/** What portions hold at each level, as far as volumes tell: evenly spread over their times. */
export function weigh(
  portions: readonly Portion[],
  volumes: Iterable<Volume>,
  thinMs: number,
): readonly Weighed[] {
  const sums = portions.map(() => [0, 0, 0, 0, 0, 0])
  for (const { from, to, observations, bytes, isNumeric, observedMs } of volumes) {
    for (let i = firstBehind(portions, from); i < portions.length && portions[i]!.from <= to; i++) {
      const part = portions[i]!
      const begin = Math.max(from, part.from)
      const end = Math.min(to, part.to)
      const share = to === from ? 1 : Math.min(1, (end - begin) / (to - from))
      const whole = observations * share
      const thin = isNumeric ? Math.min(whole, (observedMs * share) / thinMs + 1) : whole
      const each = observations === 0 ? 0 : bytes / observations
      const sum = sums[i]!
      sum[0]! += whole
      sum[1]! += whole * each
      sum[2]! += thin
      sum[3]! += thin * each
      if (isNumeric) continue
      sum[4]! += whole
      sum[5]! += whole * each
    }
  }
  const amount = (observations: number, bytes: number): Amount => ({
    observations: Math.round(observations),
    bytes: Math.round(bytes),
  })
  return portions.map((portion, i) => {
    const sum = sums[i]!
    return {
      ...portion,
      amounts: {
        full: amount(sum[0]!, sum[1]!),
        thinned: amount(sum[2]!, sum[3]!),
        numberless: amount(sum[4]!, sum[5]!),
        bare: amount(0, 0),
      },
    }
  })
}
