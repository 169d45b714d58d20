/**
 * The table of replacements by virtual sensors, by stream. A row outlives its stream, so that the replacement
 * of a deleted stream is withdrawn, too.
 */
import type { PluginDatabase } from '#contract'

/** Migration steps. */
export const replacementTables = [
  `CREATE TABLE replacements (
    stream TEXT PRIMARY KEY,
    sensor TEXT NOT NULL,
    wish TEXT NOT NULL
  ) WITHOUT ROWID;`,
]

export interface ReplacementRow {
  readonly stream: string
  /** The broken sensor. */
  readonly sensor: string
  /** Requested, existing, or to be withdrawn. */
  readonly wish: 'wanted' | 'placed' | 'unwanted'
}

export interface ReplacementStatements {
  all(): readonly ReplacementRow[]
  put(row: ReplacementRow): void
  delete(stream: string): void
}

export function createReplacementStatements(database: PluginDatabase): ReplacementStatements {
  const put = database.prepare('INSERT OR REPLACE INTO replacements VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM replacements WHERE stream = ?')
  return Object.freeze({
    all: () =>
      database.prepare('SELECT stream, sensor, wish FROM replacements').all() as readonly ReplacementRow[],
    put: ({ stream, sensor, wish }) => void put.run(stream, sensor, wish),
    delete: (stream) => void remove.run(stream),
  } satisfies ReplacementStatements)
}
