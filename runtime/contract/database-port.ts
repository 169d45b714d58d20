/** The SQLite file of a plugin. */

/** A row as an object of its columns. */
export type Row = Record<string, unknown>

export interface PluginStatement {
  run(...parameters: readonly unknown[]): {
    readonly changes: number
    readonly lastInsertRowid: number | bigint
  }
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
  iterate(...parameters: readonly unknown[]): IterableIterator<unknown>
  /** Returns rows as arrays. */
  raw(isRaw?: boolean): PluginStatement
  /** Returns only the first column. */
  pluck(isPlucked?: boolean): PluginStatement
}

/**
 * The plugin's own SQLite file, in WAL mode with synchronous NORMAL, since derived data can be derived again.
 * Plain `?` parameters.
 */
export interface PluginDatabase {
  prepare(sql: string): PluginStatement
  /** Runs the work as one transaction; rolls back if it throws. */
  transaction<A extends readonly unknown[], T>(work: (...given: A) => T): (...given: A) => T
  /**
   * To be awaited between two transactions of a long task: yields to other work, and checkpoints the WAL of
   * the file if it is long. @throws the error of a failing disk.
   */
  rest(): Promise<void>
  /** Bytes of the file and its WAL. */
  bytes(): number
  /** Empties the file and creates its tables again. Statements prepared before become invalid. */
  reset(): Promise<void>
}
