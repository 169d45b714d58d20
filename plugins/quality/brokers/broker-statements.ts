/**
 * Tables and statements for the broker whose streams are rated: its row, and for a remote one its entities
 * and the times that were counted.
 */
import type { PluginDatabase } from '#contract'

/** Migration step. */
export const brokerTables = `CREATE TABLE broker (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  address TEXT NOT NULL,
  secret TEXT NOT NULL,
  state TEXT NOT NULL,
  facts TEXT NOT NULL
);
CREATE TABLE entities (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counted_times (n INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (n, time)) WITHOUT ROWID;`

/** Tables of what a broker reported. */
const derived = ['streams', 'observations', 'downtimes', 'cursor', 'entities', 'counted_times']

export const prepareRowStatements = (database: PluginDatabase) => ({
  get: database.prepare('SELECT address, secret, state, facts FROM broker'),
  put: database.prepare('INSERT OR REPLACE INTO broker VALUES (1, ?, ?, ?, ?)'),
  clear: derived.map((table) => database.prepare(`DELETE FROM ${table}`)),
})

export const prepareEntityStatements = (database: PluginDatabase) => ({
  get: database.prepare('SELECT text FROM entities WHERE id = ?').pluck(),
  ids: database.prepare('SELECT id FROM entities').pluck(),
  put: database.prepare('INSERT OR REPLACE INTO entities VALUES (?, ?)'),
  remove: database.prepare('DELETE FROM entities WHERE id = ?'),
})

export const prepareCountedStatements = (database: PluginDatabase) => ({
  find: database.prepare('SELECT 1 FROM counted_times WHERE n = ? AND time = ?').pluck(),
  /** The time at an offset from the newest. */
  at: database
    .prepare('SELECT time FROM counted_times WHERE n = ? ORDER BY time DESC LIMIT 1 OFFSET ?')
    .pluck(),
  put: database.prepare('INSERT OR IGNORE INTO counted_times VALUES (?, ?)'),
  trim: database.prepare('DELETE FROM counted_times WHERE n = ? AND time < ?'),
  remove: database.prepare('DELETE FROM counted_times WHERE n = ?'),
})
