/**
 * Columns of the index in memory, as far as they hold numbers: values of an attribute, cells of its places, and the types of
 * entities, each with its entity. A column that searches ask for is read piece by piece, and answers once it is whole; each search
 * reads one piece, of however many columns. Until then, and where there is no room for it, the tables answer. It follows what is
 * committed, so that no commit makes a search read it again; what is on disk and not yet published is not in it.
 */
import { limits } from '#base/limits/limits.ts'
import type { Database } from '#store/file/database.ts'
import type { IndexRows } from './entity-index.ts'
import { createNumberPairs, type NumberPairs, type NumberRange } from './number-pairs.ts'

/** Which column: that of an attribute and a kind of scalars, or that of all types. */
export type ColumnName = { readonly name: number; readonly kind: number } | 'types'

/** What of a column is asked for. */
export interface ColumnPart {
  readonly column: ColumnName
  readonly ranges: readonly NumberRange[]
}

export type ColumnRow = readonly [rid: number, value: number]

interface Column {
  readonly pairs: NumberPairs
  /** The last pair that was read; undefined when the column is whole. */
  readTo: readonly [value: number, rid: number] | undefined
  askedAt: number
}

export interface KnownColumnSettings {
  readonly bytesMax: number
  readonly rowsPerSearch: number
  /** Searches for which a column that had to leave is not read again. */
  readonly rest: number
}

const defaults: KnownColumnSettings = {
  bytesMax: limits.knownColumnsBytes.value,
  rowsPerSearch: limits.columnRowsPerSearch.value,
  rest: 10_000,
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
  /** Columns that had to leave, with the search from which on they may come back: in the order of that, and no more than there are names. */
  const resting = new Map<string, number>()
  let searches = 0
  /** Rows that the search may still read. */
  let left = 0

  const makeRoom = (): void => {
    let bytes = 0
    for (const { pairs } of columns.values()) bytes += pairs.bytes()
    while (bytes > settings.bytesMax) {
      const [key, { pairs }] = [...columns].reduce((a, b) => (b[1].askedAt < a[1].askedAt ? b : a))
      columns.delete(key)
      resting.set(key, searches + settings.rest)
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
  /** The pairs of a column that is whole. */
  const known = (name: ColumnName): NumberPairs | undefined => {
    const key = keyOf(name)
    let column = columns.get(key)
    if (column === undefined) {
      if (left === 0 || resting.has(key)) return undefined
      column = { pairs: createNumberPairs(), readTo: [-Infinity, 0], askedAt: searches }
      columns.set(key, column)
    }
    column.askedAt = searches
    readOn(name, column)
    return column.readTo === undefined && columns.has(key) ? column.pairs : undefined
  }
  /** Where a pair is within what was read; what is behind that is read later, as it then is. */
  const renewed = (name: ColumnName, value: number | string, rid: number): NumberPairs | undefined => {
    if (typeof value === 'string') return undefined
    const column = columns.get(keyOf(name))
    if (column?.readTo === undefined) return column?.pairs
    const [last, lastRid] = column.readTo
    return value < last || (value === last && rid <= lastRid) ? column.pairs : undefined
  }

  return Object.freeze({
    /** To be called when a search begins: what follows is asked by it. */
    begin(): void {
      searches++
      left = settings.rowsPerSearch
      for (const [key, until] of resting) {
        if (until > searches) break
        resting.delete(key)
      }
    },

    /**
     * Calls with each row of a part, rid and value, at most about `most` times: always with the same array, which `take` must not
     * keep. Tells how often; undefined where the column is not in memory.
     */
    each({ column, ranges }: ColumnPart, most: number, take: (row: ColumnRow) => void): number | undefined {
      const pairs = known(column)
      if (pairs === undefined) return undefined
      // Begun with a fraction, it holds numbers as they are and not as objects.
      const row: [rid: number, value: number] = [0, 0.5]
      let count = 0
      for (const range of ranges) {
        pairs.each(range, (value, rid) => {
          row[0] = rid
          row[1] = value
          take(row)
          return ++count < most
        })
      }
      return count
    },

    /** The rids of a part, at most about `most`; undefined where the column is not in memory. */
    rids({ column, ranges }: ColumnPart, most: number): readonly number[] | undefined {
      const pairs = known(column)
      if (pairs === undefined) return undefined
      const rids: number[] = []
      for (const range of ranges) pairs.each(range, (_, rid) => rids.push(rid) < most)
      return rids
    },

    /** How many rows a part has. */
    count({ column, ranges }: ColumnPart): number | undefined {
      const pairs = known(column)
      return pairs && ranges.reduce((sum, range) => sum + pairs.count(range), 0)
    },

    /** Tells which of some rids, in order, have a type. */
    ofType(type: number): ((rids: readonly number[]) => readonly number[]) | undefined {
      const pairs = known('types')
      return pairs && ((rids) => pairs.having(type, rids))
    },

    /** To be called with what was written of the index rows of an entity, once that is on disk. */
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

    /** Where the tables were written by another hand. */
    forget: () => columns.clear(),
  })
}

const keyOf = (name: ColumnName): string => (name === 'types' ? name : `${name.name} ${name.kind}`)
