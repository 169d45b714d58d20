/**
 * Reads entity rows in batches for a caller that requests them one by one and may stop at any of them. A
 * statement per row would double the cost.
 */
import type { Entities } from './entity-rows.ts'
import type { EntityRow } from './page-rows.ts'

/**
 * Returns the rows of these rids, which must be requested in this order; undefined for any other rid and for
 * deleted entities.
 */
export function rowsAhead(
  rids: readonly number[],
  byRids: Entities['byRids'],
): (rid: number) => EntityRow | undefined {
  let rows: ReadonlyMap<number, EntityRow> = new Map()
  let first = 0
  return (rid) => {
    if (rid === rids[first]) {
      const { rows: read, taken } = byRids(rids.slice(first, first + rowsAtOnce))
      rows = new Map(read.map((row) => [row.rid, row]))
      first += taken
    }
    return rows.get(rid)
  }
}

/** Batch size; the caller may need only the first row. */
const rowsAtOnce = 32
