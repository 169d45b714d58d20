/**
 * The table of streams in the plugin's own file: detectors, findings that wait to be written, and the log
 * number up to which both include all observations. All are written in one transaction, so that a restart
 * judges each observation exactly once.
 */
import type { PluginDatabase } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { type FaultStream, newRecord, type WatchRecord } from './fault-stream.ts'

/** Migration steps; a released step never changes. */
export const tables = [
  `CREATE TABLE streams (
    id TEXT PRIMARY KEY,
    observations TEXT NOT NULL,
    record TEXT NOT NULL,
    detector TEXT
  ) WITHOUT ROWID;
  CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL,
    committed INTEGER NOT NULL
  );`,
]

/** How far the detectors reach. */
export interface JudgedUntil {
  /** All changes up to this log number are included. */
  readonly position: number
  /** Commit time of that row, ms. */
  readonly committed: number
}

export interface StoredWatch extends Pick<FaultStream, 'id' | 'record' | 'observations'> {
  /** State of its detector; undefined if it has not learned. */
  readonly detector: JsonObject | undefined
}

interface StreamRow {
  readonly id: string
  readonly observations: string
  readonly record: string
  readonly detector: string | null
}

export interface WatchStatements {
  readonly cursor: () => JudgedUntil | undefined
  all(): readonly StoredWatch[]
  save(state: {
    readonly streams: Iterable<FaultStream>
    readonly removed: Iterable<string>
    readonly cursor: JudgedUntil | undefined
  }): void
}

export function createWatchStatements(database: PluginDatabase): WatchStatements {
  const put = database.prepare('INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)')
  const remove = database.prepare('DELETE FROM streams WHERE id = ?')
  const putCursor = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?, ?)')
  const save = database.transaction((state: Parameters<WatchStatements['save']>[0]) => {
    for (const id of state.removed) remove.run(id)
    for (const { id, observations, record, detector } of state.streams) {
      const saved = detector === undefined ? null : JSON.stringify(detector.saved())
      put.run(id, JSON.stringify([...observations]), JSON.stringify(record), saved)
    }
    if (state.cursor !== undefined) putCursor.run(state.cursor.position, state.cursor.committed)
  })
  return Object.freeze({
    cursor: () => database.prepare('SELECT position, committed FROM cursor').get() as JudgedUntil | undefined,
    all: () =>
      database
        .prepare('SELECT id, observations, record, detector FROM streams')
        .all()
        .map((row) => storedOf(row as StreamRow)),
    save,
  } satisfies WatchStatements)
}

const storedOf = ({ id, observations, record, detector }: StreamRow): StoredWatch => ({
  id,
  observations: new Set(JSON.parse(observations) as readonly string[]),
  record: { ...newRecord(), ...(JSON.parse(record) as WatchRecord) },
  detector: detector === null ? undefined : (JSON.parse(detector) as JsonObject),
})
