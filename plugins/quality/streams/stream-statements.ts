/**
 * The table of streams in the plugin's own file: records, and the log number up to which they include all
 * observations. Both are written in one transaction, so a restart counts each observation exactly once.
 */
import type { PluginDatabase } from '#contract'
import { type Downtime, newRecord, type StreamRecord } from '#plugins/quality/measures/stream-record.ts'
import { newSlots } from '#plugins/quality/measures/time-slots.ts'
import type { Stream } from './stream.ts'

/** Migration step; a released step never changes. */
export const streamTables = `CREATE TABLE streams (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    day BLOB NOT NULL,
    written TEXT,
    rare BLOB
  );
  CREATE TABLE observations (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE downtimes (began INTEGER NOT NULL, ended INTEGER NOT NULL);
  CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    counts_from INTEGER NOT NULL
  );`

/** How far the records reach. */
export interface Cursor {
  /** All changes up to this log number are included. */
  readonly position: number
  /** Commit time of that row, ms. */
  readonly committed: number
  /** Observations committed before this time, ms, were read from history and not from the log. */
  readonly countsFrom: number
}

export interface StoredStream {
  readonly n: number
  readonly id: string
  readonly record: StreamRecord
  readonly written: string | undefined
}

export interface StreamStatements {
  readonly cursor: () => Cursor | undefined
  all(): readonly StoredStream[]
  /** Ids of observation entities, with the number of their stream. */
  observations(): readonly (readonly [id: string, n: number])[]
  downtimes(): readonly Downtime[]
  save(state: {
    readonly streams: Iterable<Stream>
    readonly observations: Iterable<readonly [id: string, n: number]>
    readonly removed: Iterable<number>
    readonly downtimes: readonly Downtime[]
    readonly cursor: Cursor
    /** Called in the transaction. */
    readonly saved: () => void
  }): void
}

export function createStreamStatements(database: PluginDatabase): StreamStatements {
  const put = database.prepare(
    `INSERT INTO streams (n, id, record, day, written, rare) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (n) DO UPDATE
     SET record = excluded.record, day = excluded.day, written = excluded.written, rare = excluded.rare`,
  )
  const putObservation = database.prepare('INSERT OR REPLACE INTO observations (id, n) VALUES (?, ?)')
  const remove = database.prepare('DELETE FROM streams WHERE n = ?')
  const removeObservations = database.prepare('DELETE FROM observations WHERE n = ?')
  const clearDowntimes = database.prepare('DELETE FROM downtimes')
  const putDowntime = database.prepare('INSERT INTO downtimes VALUES (?, ?)')
  const putCursor = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?, ?, ?)')
  const save = database.transaction((state: Parameters<StreamStatements['save']>[0]) => {
    for (const n of state.removed) {
      remove.run(n)
      removeObservations.run(n)
    }
    for (const { n, id, record, written } of state.streams) {
      const { table, rare, slots, ...figures } = record
      const text = JSON.stringify({ ...figures, ...(slots && { slots: { ...slots, table: undefined } }) })
      put.run(n, id, text, bytesOf(table), written ?? null, rare === undefined ? null : bytesOf(rare))
    }
    for (const [id, n] of state.observations) putObservation.run(id, n)
    clearDowntimes.run()
    for (const { from, to } of state.downtimes) putDowntime.run(from, to)
    const { position, committed, countsFrom } = state.cursor
    putCursor.run(position, committed, countsFrom)
    state.saved()
  })
  return Object.freeze({
    cursor() {
      const row = database.prepare('SELECT position, committed, counts_from AS countsFrom FROM cursor').get()
      return row as Cursor | undefined
    },
    all: () =>
      database
        .prepare('SELECT n, id, record, day, written, rare FROM streams ORDER BY n')
        .all()
        .map((row) => storedOf(row as StreamRow)),
    observations: () =>
      database.prepare('SELECT id, n FROM observations').raw().all() as (readonly [string, number])[],
    downtimes: () =>
      database.prepare('SELECT began AS "from", ended AS "to" FROM downtimes').all() as Downtime[],
    save,
  } satisfies StreamStatements)
}

interface StreamRow {
  readonly n: number
  readonly id: string
  readonly record: string
  readonly day: Buffer
  readonly written: string | null
  readonly rare: Buffer | null
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
const numbersOf = (bytes: Buffer): Float32Array =>
  new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))

function storedOf({ n, id, record, day, written, rare }: StreamRow): StoredStream {
  const { slots, ...figures } = JSON.parse(record) as Partial<StreamRecord>
  const fresh: StreamRecord = Object.assign(newRecord(), figures)
  if (slots !== undefined)
    fresh.slots = { ...newSlots(fresh, slots.shortest, slots.origin), newestAt: slots.newestAt }
  fresh.table.set(numbersOf(day))
  if (rare !== null) fresh.rare = numbersOf(rare)
  return { n, id, record: fresh, written: written ?? undefined }
}
