/**
 * In-memory copies of numeric index columns: values of an attribute, cells of its places, and entity types,
 * each with the rid.
 *
 * A column that searches use is loaded piece by piece, one piece per search for all columns together. It
 * answers searches once it is complete; until then, or when there is no space for it, the tables answer.
 * Commits update it, so no search has to load it again. It holds only committed and published rows.
 */
import { limits } from '#base/limits/limits.ts'
import type { Database } from '#store/file/database.ts'
import type { IndexRows } from './entity-index.ts'
import { createNumberPairs, type NumberPairs, type NumberRange } from './number-pairs.ts'

/** Names a column: an attribute with a kind of scalars, or all entity types. */
export type ColumnName = { readonly name: number; readonly kind: number } | 'types'

/** The part of a column that a search requests. */
export interface ColumnPart {
  readonly column: ColumnName
  readonly ranges: readonly NumberRange[]
}

export type ColumnRow = readonly [rid: number, value: number]

interface Column {
  readonly pairs: NumberPairs
  /** The last pair loaded; undefined when the column is complete. */
  readTo: readonly [value: number, rid: number] | undefined
  usedAt: number
}

export interface KnownColumnSettings {
  readonly bytesMax: number
  readonly rowsPerSearch: number
  /** Number of searches during which an evicted column is not loaded again. */
  readonly cooldown: number
}

const defaults: KnownColumnSettings = {
  bytesMax: limits.knownColumnsBytes.value,
  rowsPerSearch: limits.columnRowsPerSearch.value,
  cooldown: 10_000,
}

export function createKnownColumns(database: Database, settings = defaults) {
  const scalars = database
    .prepare<number[], [number, number]>(
      `SELECT value, rid FROM scalar WHERE name = ? AND kind = ? AND (value, rid) > (?, ?)
       ORDER BY value, rid LIMIT ?`,
    )
    .raw()
  const types = database
    .prepare<number[], [number, number]>(
      'SELECT type, rid FROM entity_type WHERE (type, rid) > (?, ?) ORDER BY type, rid LIMIT ?',
    )
    .raw()
  const columns = new Map<string, Column>()
  /**
   * Evicted columns, each with the number of the search that may load it again, in that order. Bounded by the
   * number of names.
   */
  const resting = new Map<string, number>()
  let searches = 0
  /** Number of rows that the current search may still load. */
  let left = 0

  const makeRoom = (): void => {
    let bytes = 0
    for (const { pairs } of columns.values()) bytes += pairs.bytes()
    while (bytes > settings.bytesMax) {
      const [key, { pairs }] = [...columns].reduce((a, b) => (b[1].usedAt < a[1].usedAt ? b : a))
      columns.delete(key)
      resting.set(key, searches + settings.cooldown)
      bytes -= pairs.bytes()
    }
  }
  const readOn = (name: ColumnName, column: Column): void => {
    const { pairs, readTo } = column
    if (readTo === undefined || left === 0) return
    const rows =
      name === 'types' ? types.all(...readTo, left) : scalars.all(name.name, name.kind, ...readTo, left)
    for (const [value, rid] of rows) pairs.append(value, rid)
    column.readTo = rows.length < left ? undefined : rows.at(-1)
    left -= rows.length
    makeRoom()
  }
  /** The pairs of a column, if it is complete. */
  const known = (name: ColumnName): NumberPairs | undefined => {
    const key = keyOf(name)
    let column = columns.get(key)
    if (column === undefined) {
      if (left === 0 || resting.has(key)) return undefined
      column = { pairs: createNumberPairs(), readTo: [-Infinity, 0], usedAt: searches }
      columns.set(key, column)
    }
    column.usedAt = searches
    readOn(name, column)
    return column.readTo === undefined && columns.has(key) ? column.pairs : undefined
  }
  /**
   * The pairs that a changed row belongs to, if it lies within the loaded part. Rows after that are loaded
   * later.
   */
  const renewed = (name: ColumnName, value: number | string, rid: number): NumberPairs | undefined => {
    if (typeof value === 'string') return undefined
    const column = columns.get(keyOf(name))
    if (column?.readTo === undefined) return column?.pairs
    const [last, lastRid] = column.readTo
    return value < last || (value === last && rid <= lastRid) ? column.pairs : undefined
  }

  return Object.freeze({
    /** Call when a search begins; the calls that follow belong to it. */
    begin(): void {
      searches++
      left = settings.rowsPerSearch
      for (const [key, until] of resting) {
        if (until > searches) break
        resting.delete(key)
      }
    },

    /**
     * Calls `visit` with each row (rid, value) of a part, at most about `most` times. The array is reused, so
     * `visit` must not keep it. Returns the number of calls; undefined when the column is not in memory.
     */
    each({ column, ranges }: ColumnPart, most: number, visit: (row: ColumnRow) => void): number | undefined {
      const pairs = known(column)
      if (pairs === undefined) return undefined
      // Starting with a fraction makes V8 store plain doubles instead of boxed numbers.
      const row: [rid: number, value: number] = [0, 0.5]
      let count = 0
      for (const range of ranges) {
        pairs.each(range, (value, rid) => {
          row[0] = rid
          row[1] = value
          visit(row)
          return ++count < most
        })
      }
      return count
    },

    /** The rids of a part, at most about `most`; undefined when the column is not in memory. */
    rids({ column, ranges }: ColumnPart, most: number): readonly number[] | undefined {
      const pairs = known(column)
      if (pairs === undefined) return undefined
      const rids: number[] = []
      for (const range of ranges) pairs.each(range, (_, rid) => rids.push(rid) < most)
      return rids
    },

    /** Number of rows of a part; undefined when the column is not in memory. */
    count({ column, ranges }: ColumnPart): number | undefined {
      const pairs = known(column)
      return pairs && ranges.reduce((sum, range) => sum + pairs.count(range), 0)
    },

    /** Returns a filter for rids, in order, that have a type; undefined when the column is not in memory. */
    ofType(type: number): ((rids: readonly number[]) => readonly number[]) | undefined {
      const pairs = known('types')
      return pairs && ((rids) => pairs.having(type, rids))
    },

    /** Call with the written index rows of an entity, once they are on disk. */
    renew(
      rid: number,
      { add, remove }: { readonly add: IndexRows; readonly remove: IndexRows },
      nameOf: (text: string) => number | undefined,
    ): void {
      if (columns.size === 0) return
      const numberOf = (text: string): number => nameOf(text)!
      for (const type of remove.types) renewed('types', numberOf(type), rid)?.remove(numberOf(type), rid)
      for (const [name, kind, value] of remove.scalars)
        renewed({ name: numberOf(name), kind }, value, rid)?.remove(value as number, rid)
      for (const type of add.types) renewed('types', numberOf(type), rid)?.add(numberOf(type), rid)
      for (const [name, kind, value] of add.scalars)
        renewed({ name: numberOf(name), kind }, value, rid)?.add(value as number, rid)
      makeRoom()
    },

    /** Call when another process wrote the tables. */
    forget: () => columns.clear(),
  })
}

const keyOf = (name: ColumnName): string => (name === 'types' ? name : `${name.name} ${name.kind}`)
