/**
 * Cuts a plan whose rows come in rid order into ranges of rids, so that no statement runs for long: each filter is checked
 * for each row, and a query may have 128 of them. The size of a range follows from the number of filters alone.
 */
import { limits } from '#base/limits/limits.ts'
import type { Plan, RidRange } from './query-plan.ts'

/** How many times at most the sets of a plan are made anew, once per range. */
const rangesWithSets = 8

/** The ranges behind `after`, up to `last`; a single one where the plan has no filters or its rows are not in rid order. */
export function* rangesOf(plan: Plan, after: number, last: number): Generator<RidRange> {
  const size = plan.ordered && plan.filters.length > 0 ? ridsPerStatement(plan, last - after) : Infinity
  for (let start = after; start < last; start += size)
    yield { after: start, to: Math.min(start + size, last) }
}

/** How many rids one statement checks. */
export function ridsPerStatement(plan: Plan, all: number): number {
  const filters = plan.filters.reduce((sum, { params }) => sum + 1 + params.length, 0)
  const size = Math.ceil(limits.queryFiltersAtOnce.value / filters)
  return plan.hasSets ? Math.max(size, Math.ceil(all / rangesWithSets)) : size
}
