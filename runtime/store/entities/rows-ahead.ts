/**
 * Reads rows of entities ahead for a caller that goes through their rids and may stop at any of them: a statement for each row
 * would cost as much again.
 */
import type { Entities } from './entity-rows.ts'
import type { EntityRow } from './page-rows.ts'

/** Returns the rows of these rids, which must be requested in this order; undefined for any other rid and for deleted entities. */
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

/** The caller may need none of them but the first. */
const rowsAtOnce = 32
