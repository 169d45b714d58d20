/**
 * The table of streams in the plugin's own file: records, and the log number up to which they include all
 * observations. Both are written in one transaction, so a restart counts each observation exactly once.
 */
import type { PluginDatabase } from '#contract'
import { type Downtime, newRecord, type StreamRecord } from '#plugins/quality/measures/stream-record.ts'
import { newSlots, type TimeSlots } from '#plugins/quality/measures/time-slots.ts'
import type { Stream } from './stream.ts'

/** Migration steps; a released step never changes. */
export const tables = [
  `CREATE TABLE streams (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    day BLOB NOT NULL,
    written TEXT
  );
  CREATE TABLE observations (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE downtimes (began INTEGER NOT NULL, ended INTEGER NOT NULL);
  CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    counts_from INTEGER NOT NULL
  );`,
  'ALTER TABLE streams ADD COLUMN slots BLOB;',
]

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
  readonly written: Readonly<Record<string, string>> | undefined
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
    `INSERT INTO streams (n, id, record, day, written, slots) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (n) DO UPDATE
     SET record = excluded.record, day = excluded.day, written = excluded.written, slots = excluded.slots`,
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
      const { day, slots, ...figures } = record
      const means = slots === undefined ? null : bytesOf(slots.means)
      const text = JSON.stringify({ ...figures, ...(slots && { slots: { ...slots, means: undefined } }) })
      put.run(n, id, text, bytesOf(day), written === undefined ? null : JSON.stringify(written), means)
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
        .prepare('SELECT n, id, record, day, written, slots FROM streams ORDER BY n')
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
  readonly slots: Buffer | null
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array | Float32Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

function storedOf({ n, id, record, day, written, slots: means }: StreamRow): StoredStream {
  const fresh = newRecord()
  bytesOf(fresh.day).set(day)
  const stored = JSON.parse(record) as Partial<StreamRecord>
  const slots = means === null || stored.slots === undefined ? undefined : slotsOf(stored.slots, means)
  return {
    n,
    id,
    record: Object.assign(fresh, stored, { slots }),
    written: written === null ? undefined : (JSON.parse(written) as Record<string, string>),
  }
}

function slotsOf(stored: Omit<TimeSlots, 'means'>, means: Buffer): TimeSlots {
  const slots = { ...newSlots(stored.shortest, stored.origin), newestAt: stored.newestAt }
  bytesOf(slots.means).set(means)
  return slots
}
