/** Values, and rows to write, as SQLite takes them. */

/** What SQLite stores. Booleans travel as 0 and 1. */
export type SqlValue = null | number | string | bigint | Uint8Array

/** One row to write by a statement of some register: its name and its positional parameters. */
export type RowOf<Writes> = readonly [statement: keyof Writes & string, ...parameters: SqlValue[]]
