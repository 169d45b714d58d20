/**
 * Cuts a plan whose rows come in rid order into ranges of rids, so that no statement runs for long: each filter is checked
 * for each row, and a query may have 128 of them. The size of a range follows from the number of filters alone.
 */
import { limits } from '#base/limits/limits.ts'
import type { Plan, RidRange } from './query-plan.ts'

/** How many times at most the sets of a plan are made anew, once per range. */
const rangesWithSets = 8

/** Whether one statement reads all rids of a plan: it checks its filters for few rows, or the rows are not in rid order. */
export const isOneStatement = (plan: Plan): boolean =>
  !plan.ordered || plan.filters.length === 0 || (plan.rows ?? Infinity) <= rowsAtOnce(plan)

/** All rids behind `after`. */
export const allBehind = (after: number): RidRange => ({ after, to: Number.MAX_SAFE_INTEGER })

/** The ranges behind `after`, up to `last`, of a plan that is no single statement. */
export function* rangesOf(plan: Plan, after: number, last: number): Generator<RidRange> {
  const size = ridsPerStatement(plan, last - after)
  for (let start = after; start < last; start += size)
    yield { after: start, to: Math.min(start + size, last) }
}

/** How many rids one statement checks. */
export const ridsPerStatement = (plan: Plan, all: number): number =>
  plan.hasSets ? Math.max(rowsAtOnce(plan), Math.ceil(all / rangesWithSets)) : rowsAtOnce(plan)

/** How many rows may be checked at once: the fewer, the more filters there are. */
function rowsAtOnce({ filters }: Plan): number {
  const checks = filters.reduce((sum, { params }) => sum + 1 + params.length, 0)
  return Math.ceil(limits.queryFiltersAtOnce.value / checks)
}
