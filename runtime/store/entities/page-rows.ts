/**
 * Collects rows for one page: as many as its byte limit allows, and at least one. Rows are read one by one,
 * so rows beyond the page are not read: a thousand entities of 1 MB may follow a thousand small ones.
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
  /** Number of rids that this page covers. The next page begins after them. */
  readonly taken: number
}

/** @param rowOf returns the row of a rid; undefined when the entity was deleted */
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
