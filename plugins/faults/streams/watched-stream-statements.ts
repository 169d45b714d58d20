/**
 * The table of streams in the plugin's own file: detectors, findings that wait to be written, and the log
 * number up to which both include all observations. A save writes its rows in slices, each a transaction,
 * beside those of the save before. The last transaction sets the number of the save and the log number. A
 * restart takes the rows up to that save, so it judges each observation exactly once.
 */
import { limits } from '#base/limits/limits.ts'
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

/** A later migration step, which numbers the saves. A row without a record is that of a removed stream. */
export const saveTables = [
  `CREATE TABLE stream_saves (
    id TEXT NOT NULL,
    save INTEGER NOT NULL,
    observations TEXT,
    record TEXT,
    detector TEXT,
    PRIMARY KEY (id, save)
  ) WITHOUT ROWID;
  INSERT INTO stream_saves SELECT id, 0, observations, record, detector FROM streams;
  DROP TABLE streams;
  ALTER TABLE cursor ADD COLUMN save INTEGER NOT NULL DEFAULT 0;`,
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

/** A part of the work of a save. */
export interface SaveSlice {
  readonly save: number
  /** Streams, and ids of removed ones. */
  readonly items: readonly (FaultStream | string)[]
  readonly from: number
  /** Ends the slice after any item. */
  readonly isEnough: () => boolean
}

export interface WatchStatements {
  readonly cursor: () => JudgedUntil | undefined
  /**
   * The rows of the last save that ended, in order of ids. It reads some at a time, so that the caller may
   * yield between two, and deletes those that an interrupted save left. A save meanwhile may only have rows
   * that were returned.
   */
  all(): Generator<StoredWatch, void, undefined>
  /** Number of a save that begins. */
  readonly nextSave: () => number
  /** Writes rows. Returns the index of the next item. */
  put(slice: SaveSlice): number
  /** Ends a save: its rows count from now on. */
  end(save: number, cursor: JudgedUntil): void
  /** Deletes the rows that a save replaced. Returns the index of the next item. */
  tidy(slice: SaveSlice): number
  /** Yields between two slices. */
  readonly rest: () => Promise<void>
}

export function createWatchStatements(database: PluginDatabase): WatchStatements {
  const put = database.prepare('INSERT OR REPLACE INTO stream_saves VALUES (?, ?, ?, ?, ?)')
  const removeOlder = database.prepare('DELETE FROM stream_saves WHERE id = ? AND save < ?')
  const removeOne = database.prepare('DELETE FROM stream_saves WHERE id = ? AND save = ?')
  const putCursor = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?, ?, ?)')
  const ended = database.prepare('SELECT save FROM cursor').pluck()
  const lastSave = (): number => (ended.get() as number | undefined) ?? 0

  const slice = (work: (item: FaultStream | string, save: number) => void) =>
    database.transaction(({ save, items, from, isEnough }: SaveSlice) => {
      let at = from
      do work(items[at++]!, save)
      while (at < items.length && !isEnough())
      return at
    })

  function putItem(item: FaultStream | string, save: number): void {
    if (typeof item === 'string') {
      put.run(item, save, null, null, null)
      return
    }
    const { id, observations, record, detector } = item
    const saved = detector === undefined ? null : JSON.stringify(detector.saved())
    put.run(id, save, JSON.stringify([...observations]), JSON.stringify(record), saved)
  }

  function tidyItem(item: FaultStream | string, save: number): void {
    removeOlder.run(typeof item === 'string' ? item : item.id, save)
    if (typeof item === 'string') removeOne.run(item, save)
  }

  const lastOfPage = database
    .prepare('SELECT max(id) FROM (SELECT id FROM stream_saves WHERE id > ? ORDER BY id LIMIT ?)')
    .pluck()
  const inPage = 'FROM stream_saves AS row WHERE id > ? AND id <= ?'
  const removeInterrupted = database.prepare(`DELETE ${inPage} AND save > ?`)
  const removeReplaced = database.prepare(
    `DELETE ${inPage} AND EXISTS (SELECT 1 FROM stream_saves WHERE id = row.id AND save > row.save)`,
  )
  const removeDeleted = database.prepare(`DELETE ${inPage} AND record IS NULL`)
  const rows = database.prepare(`SELECT id, observations, record, detector ${inPage}`)

  const cleaned = database.transaction((after: string, last: string): readonly StreamRow[] => {
    removeInterrupted.run(after, last, lastSave())
    removeReplaced.run(after, last)
    removeDeleted.run(after, last)
    return rows.all(after, last) as StreamRow[]
  })

  return Object.freeze({
    cursor: () => database.prepare('SELECT position, committed FROM cursor').get() as JudgedUntil | undefined,
    *all() {
      for (let after = ''; ; ) {
        const last = lastOfPage.get(after, limits.clientReadPage.value) as string | null
        if (last === null) return
        yield* cleaned(after, last).values().map(storedOf)
        after = last
      }
    },
    nextSave: () => lastSave() + 1,
    put: slice(putItem),
    end: (save, { position, committed }) => void putCursor.run(position, committed, save),
    tidy: slice(tidyItem),
    rest: database.rest,
  } satisfies WatchStatements)
}

const storedOf = ({ id, observations, record, detector }: StreamRow): StoredWatch => ({
  id,
  observations: new Set(JSON.parse(observations) as readonly string[]),
  record: { ...newRecord(), ...(JSON.parse(record) as WatchRecord) },
  detector: detector === null ? undefined : (JSON.parse(detector) as JsonObject),
})
