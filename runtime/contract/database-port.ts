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
   * From now on commits are held: transactions share one that is committed every `pluginHoldMs`, which saves
   * most writes to flash where small changes are spread over the file. Queries find held data. A kill takes
   * it away, the cursor included. So does a failing disk: then `onLoss` is called, and the file is as it was
   * at the last commit.
   */
  holdCommits(onLoss: () => void): void
  /** Commits what is held; without effect otherwise. @throws the error of a failing disk. */
  commit(): void
  /**
   * To be awaited between two transactions of a long task: yields to other work, and checkpoints the WAL of
   * the file if it is long. @throws the error of a failing disk.
   */
  rest(): Promise<void>
  /** Resolves once all transactions before the call are on the disk. Rejects if the disk fails. */
  flushed(): Promise<void>
  /** Bytes of the file and its WAL. */
  bytes(): number
  /** Empties the file and creates its tables again. Statements prepared before become invalid. */
  reset(): Promise<void>
}
