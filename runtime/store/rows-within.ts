/**
 * Rows of one page, as many as its bytes allow and at least one: a page of large entities ends early, and the rows behind it are
 * not even read.
 */
import { limits } from '#base/limits.ts'
import type { EntityRow } from './entities.ts'

/** Rows read at once while nothing is known of their size. */
const rowsAtFirst = 32

/** The rows of these rids in their order. @param read reads some of them, leaving out those that are no more */
export function rowsWithin(
  rids: readonly number[],
  read: (rids: readonly number[]) => readonly EntityRow[],
): { readonly rows: readonly EntityRow[]; readonly isCut: boolean } {
  const most = limits.pageBytesMax.value
  const rows: EntityRow[] = []
  let bytes = 0
  for (let at = 0, count = rowsAtFirst; at < rids.length; at += count) {
    if (rows.length > 0) count = Math.max(1, Math.floor(((most - bytes) * rows.length) / bytes))
    for (const row of read(rids.slice(at, at + count))) {
      bytes += row.doc.length
      if (bytes > most && rows.length > 0) return { rows, isCut: true }
      rows.push(row)
    }
  }
  return { rows, isCut: false }
}

/** A page of rows that are in memory already. */
export function cutPage<Page extends { readonly rows: readonly EntityRow[]; readonly more: boolean }>(
  page: Page,
): Page {
  let bytes = 0
  const end = page.rows.findIndex(({ doc }, i) => {
    bytes += doc.length
    return bytes > limits.pageBytesMax.value && i > 0
  })
  return end < 0 ? page : { ...page, rows: page.rows.slice(0, end), more: true }
}
