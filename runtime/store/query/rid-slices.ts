/**
 * Splits a plan in rid order into ranges of rids, so that no statement runs for long: each filter is checked
 * for each row, and a query may have 128 filters. The number of filters alone determines the size of a range.
 */
import { limits } from '#base/limits/limits.ts'
import type { Plan, RidRange } from './query-plan.ts'

/** Highest number of ranges when each range has to rebuild the sets of a plan. */
const rangesWithSets = 8

/**
 * True if one statement reads all rids of a plan: it checks its filters for few rows, or the rows are not in
 * rid order.
 */
export const isOneStatement = (plan: Plan): boolean =>
  !plan.ordered || plan.filters.length === 0 || (plan.rows ?? Infinity) <= rowsAtOnce(plan)

/** All rids above `after`. */
export const allAfter = (after: number): RidRange => ({ after, to: Number.MAX_SAFE_INTEGER })

/** The ranges above `after`, up to `last`, of a plan that needs several statements. */
export function* rangesOf(plan: Plan, after: number, last: number): Generator<RidRange> {
  const size = ridsPerStatement(plan, last - after)
  for (let start = after; start < last; start += size)
    yield { after: start, to: Math.min(start + size, last) }
}

/** Number of rids that one statement checks. */
export const ridsPerStatement = (plan: Plan, all: number): number =>
  plan.hasSets ? Math.max(rowsAtOnce(plan), Math.ceil(all / rangesWithSets)) : rowsAtOnce(plan)

/** Number of rows to check at once: fewer if there are more filters. */
function rowsAtOnce({ filters }: Plan): number {
  const checks = filters.reduce((sum, { params }) => sum + 1 + params.length, 0)
  return Math.ceil(limits.queryFiltersAtOnce.value / checks)
}
