/**
 * The plugin's own file: models, cached values, and the log number up to which they include all observations.
 * Values, groups, unwritten events and the number are saved in one transaction, so a restart reads each
 * observation of the log exactly once more.
 */
import type { PluginDatabase } from '#contract'
import type { WaitingWindow } from '#plugins/patterns/labelling/label-queue.ts'

/** Migration steps; a released step never changes. */
export const tables = [
  `CREATE TABLE models (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    document TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE streams (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
  CREATE TABLE cached (
    time INTEGER NOT NULL,
    n INTEGER NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (time, n)
  ) WITHOUT ROWID;
  CREATE TABLE groups (key TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE waiting (id TEXT PRIMARY KEY, entity TEXT) WITHOUT ROWID;
  CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL,
    committed INTEGER NOT NULL
  );`,
  `CREATE TABLE unlabelled (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    streams TEXT NOT NULL,
    features BLOB NOT NULL
  );`,
]

/** How far the cached values reach. */
export interface LogCursor {
  /** All changes up to this log number are included. */
  readonly position: number
  /** Commit time of that row, ms. */
  readonly committed: number
}

/** A change of a cached value; undefined if it was removed. */
export interface CachedChange {
  readonly n: number
  readonly time: number
  readonly value: number | undefined
}

export interface CachedValue {
  readonly time: number
  readonly n: number
  readonly value: number
}

export interface StoredModel {
  readonly id: string
  readonly created: number
  /** JSON text. */
  readonly document: string
}

export interface SavedState {
  /** Numbers of streams; undefined for those that were dropped. */
  readonly streams: ReadonlyMap<string, number | undefined>
  readonly values: readonly CachedChange[]
  /** Time of the first row of groups; undefined for groups that ended. */
  readonly groups: ReadonlyMap<string, number | undefined>
  /** Events to write, or to delete (undefined), as JSON text. */
  readonly waiting: Iterable<readonly [id: string, entity: string | undefined]>
  /** Windows that wait for the label of an ONNX model; undefined for those that do not any more. */
  readonly unlabelled: ReadonlyMap<string, WaitingWindow | undefined>
  readonly cursor: LogCursor
}

export interface PatternStatements {
  models(): readonly StoredModel[]
  putModel(model: StoredModel): void
  removeModel(id: string): void
  cursor(): LogCursor | undefined
  streams(): readonly (readonly [id: string, n: number])[]
  groups(): readonly (readonly [key: string, since: number])[]
  waiting(): readonly (readonly [id: string, entity: string | null])[]
  /** In the order of the queue. */
  unlabelled(): readonly WaitingWindow[]
  /** Cached values in order of time, after one of them. */
  cachedAfter(last: Pick<CachedValue, 'time' | 'n'> | undefined, most: number): readonly CachedValue[]
  save(state: SavedState): void
  /** Removes everything but models. */
  clear(): void
}

export function createPatternStatements(database: PluginDatabase): PatternStatements {
  const putModel = database.prepare('INSERT OR REPLACE INTO models VALUES (?, ?, ?)')
  const removeModel = database.prepare('DELETE FROM models WHERE id = ?')
  const putStream = database.prepare('INSERT OR REPLACE INTO streams VALUES (?, ?)')
  const removeStream = database.prepare('DELETE FROM streams WHERE id = ?')
  const put = database.prepare('INSERT OR REPLACE INTO cached VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM cached WHERE time = ? AND n = ?')
  const after = database.prepare(
    'SELECT time, n, value FROM cached WHERE (time, n) > (?, ?) ORDER BY time, n LIMIT ?',
  )
  const putGroup = database.prepare('INSERT OR REPLACE INTO groups VALUES (?, ?)')
  const removeGroup = database.prepare('DELETE FROM groups WHERE key = ?')
  const clearWaiting = database.prepare('DELETE FROM waiting')
  const putWaiting = database.prepare('INSERT INTO waiting VALUES (?, ?)')
  const removeUnlabelled = database.prepare('DELETE FROM unlabelled WHERE id = ?')
  const putUnlabelled = database.prepare(
    'INSERT INTO unlabelled (id, model, start, end, streams, features) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const putCursor = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?, ?)')
  const save = database.transaction((state: SavedState) => {
    for (const [id, n] of state.streams) {
      if (n === undefined) removeStream.run(id)
      else putStream.run(n, id)
    }
    for (const { n, time, value } of state.values) {
      if (value === undefined) remove.run(time, n)
      else put.run(time, n, value)
    }
    for (const [key, since] of state.groups) {
      if (since === undefined) removeGroup.run(key)
      else putGroup.run(key, since)
    }
    clearWaiting.run()
    for (const [id, entity] of state.waiting) putWaiting.run(id, entity ?? null)
    for (const [id, window] of state.unlabelled) {
      removeUnlabelled.run(id)
      if (window === undefined) continue
      const { model, start, end, streams, features } = window
      putUnlabelled.run(id, model, start, end, JSON.stringify(streams), bytesOf(features))
    }
    putCursor.run(state.cursor.position, state.cursor.committed)
  })
  const clears = ['cached', 'streams', 'groups', 'waiting', 'unlabelled', 'cursor'].map((table) =>
    database.prepare(`DELETE FROM ${table}`),
  )
  const clear = database.transaction(() => {
    for (const statement of clears) statement.run()
  })
  const pairs = <T>(sql: string): readonly T[] => database.prepare(sql).raw().all() as T[]
  return Object.freeze({
    models: () =>
      database
        .prepare('SELECT id, created, document FROM models ORDER BY created, id')
        .all() as StoredModel[],
    putModel({ id, created, document }) {
      putModel.run(id, created, document)
    },
    removeModel(id) {
      removeModel.run(id)
    },
    cursor: () => database.prepare('SELECT position, committed FROM cursor').get() as LogCursor | undefined,
    streams: () => pairs('SELECT id, n FROM streams ORDER BY n'),
    groups: () => pairs('SELECT key, since FROM groups'),
    waiting: () => pairs('SELECT id, entity FROM waiting'),
    unlabelled: () =>
      (database.prepare('SELECT * FROM unlabelled ORDER BY n').all() as SavedWindow[]).map(windowOf),
    cachedAfter: (last, most) =>
      after.all(last?.time ?? Number.MIN_SAFE_INTEGER, last?.n ?? 0, most) as CachedValue[],
    save,
    clear,
  } satisfies PatternStatements)
}

type SavedWindow = Omit<WaitingWindow, 'streams' | 'features'> & {
  readonly streams: string
  readonly features: Buffer
}

function windowOf({ id, model, start, end, streams, features }: SavedWindow): WaitingWindow {
  const numbers = new Float32Array(features.length / Float32Array.BYTES_PER_ELEMENT)
  bytesOf(numbers).set(features)
  return { id, model, start, end, streams: JSON.parse(streams) as string[], features: numbers }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
