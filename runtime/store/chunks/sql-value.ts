/** Types of SQLite values and of rows to write. */

/** A value that SQLite stores. Booleans are stored as 0 and 1. */
export type SqlValue = null | number | string | bigint | Uint8Array

/** A row to write: the name of a statement in a register, and its positional parameters. */
export type RowOf<Writes> = readonly [statement: keyof Writes & string, ...parameters: SqlValue[]]
