/**
 * Takes rows for one page: as many as its bytes allow, and at least one. Rows are read one by one, so that those beyond the page are
 * not read at all: a thousand entities of 1 MB may follow a thousand small ones.
 */
import { limits } from '#base/limits/limits.ts'

export interface EntityRow {
  readonly rid: number
  readonly id: string
  readonly n: number
  readonly created: number
  readonly modified: number
  readonly sys: string
  readonly doc: string
}

export interface RowsWithin {
  readonly rows: readonly EntityRow[]
  /** How many of the rids this page covers. The next page begins behind them. */
  readonly taken: number
}

/** @param rowOf the row of a rid; undefined where the entity was deleted */
export function rowsWithin(
  rids: readonly number[],
  rowOf: (rid: number, index: number) => EntityRow | undefined,
): RowsWithin {
  const rows: EntityRow[] = []
  let bytes = 0
  for (let i = 0; i < rids.length; i++) {
    const row = rowOf(rids[i]!, i)
    if (row === undefined) continue
    bytes += row.doc.length
    if (bytes > limits.pageBytesMax.value && rows.length > 0) return { rows, taken: i }
    rows.push(row)
  }
  return { rows, taken: rids.length }
}
