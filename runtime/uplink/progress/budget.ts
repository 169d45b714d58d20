/**
 * Decides what to send of a backlog that exceeds its budget. Current values and changes other than
 * observations are always sent. First the oldest numbers are thinned, then numbers are dropped, oldest first,
 * then all observations, oldest first. Numbers beyond the maximum age are dropped without thinning.
 * `losses.ts` applies the decision to each slice, and counts what it removes. Pure.
 */

/**
 * - thinned: one number of each attribute and period is sent
 * - numberless: only observations other than numbers are sent: states and alarms, which have no other source
 * - bare: no observation is sent
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

/** A portion with its size at each level. */
export type Weighed = Portion & { readonly amounts: Readonly<Record<Level, Amount>> }

export interface Budget {
  readonly bytes: number
  readonly observations: number
  /** Commit time (ms) before which no number is sent. */
  readonly oldest: number
}

/**
 * Portions, oldest first, with the levels that keep them within a budget. Levels are never lowered, and the
 * first `fixed` portions keep theirs.
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
  // The amounts of portions may be fractions, whose sum is not exact.
  const fits = (): boolean =>
    Math.round(sum.bytes) <= budget.bytes && Math.round(sum.observations) <= budget.observations
  for (const one of portions) add(one, 1)
  for (const level of levels.slice(1)) {
    for (const one of portions.slice(fixed)) {
      if (fits()) return portions.map(withoutAmounts)
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

/** Joins adjacent portions of one level. */
export function joinedPortions(all: readonly Portion[]): readonly Portion[] {
  const joined: Portion[] = []
  for (const one of all) {
    const last = joined.at(-1)
    if (last?.level === one.level && last.to === one.from) joined[joined.length - 1] = { ...last, to: one.to }
    else joined.push(one)
  }
  return joined
}

/** The part of contiguous portions within a period; uncovered time has the level full. */
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

/** Splits a portion into at most `parts` parts of equal length. */
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
  /** Time of the last observation. */
  readonly to: number
  readonly isNumeric: boolean
  /** Time between the first and the last observation (ms); observation times may differ from commit times. */
  readonly observedMs: number
}

/** Index of the first portion, in order of time, that ends after a time. */
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

/**
 * Sizes of portions at each level, assuming that volumes are spread evenly over their time. A short portion
 * may have a fraction of an observation.
 */
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
  return portions.map((portion, i) => {
    const sum = sums[i]!
    return {
      ...portion,
      amounts: {
        full: { observations: sum[0]!, bytes: sum[1]! },
        thinned: { observations: sum[2]!, bytes: sum[3]! },
        numberless: { observations: sum[4]!, bytes: sum[5]! },
        bare: { observations: 0, bytes: 0 },
      },
    }
  })
}
