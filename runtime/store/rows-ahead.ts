/** Rows of entities for who goes through their rids and may stop at any: a statement for each would cost as much again. */
import type { Entities, EntityRow } from './entities.ts'

/** Tells the rows of rids that are asked for in this order, some of which it reads at a time; undefined of all others. */
export function rowsAhead(
  rids: readonly number[],
  byRids: Entities['byRids'],
): (rid: number) => EntityRow | undefined {
  let rows: ReadonlyMap<number, EntityRow> = new Map()
  let first = 0
  return (rid) => {
    if (rid === rids[first]) {
      rows = new Map(byRids(rids.slice(first, first + rowsAtOnce)).map((row) => [row.rid, row]))
      first += rowsAtOnce
    }
    return rows.get(rid)
  }
}

/** Few of them are read for nothing. */
const rowsAtOnce = 32
