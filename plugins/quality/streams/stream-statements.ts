/**
 * The table of streams in the plugin's own file: records, and the log number up to which they include all
 * observations. Both are written in one transaction, so a restart counts each observation exactly once.
 */
import type { PluginDatabase } from '#contract'
import { bins, rareSize } from '#plugins/quality/measures/day-table.ts'
import { type RecordRows, savedNumbers } from '#plugins/quality/measures/record-rows.ts'
import type { Downtime, StreamRecord } from '#plugins/quality/measures/stream-record.ts'
import { beginSlots, firstMean, type TimeSlots, tableSize } from '#plugins/quality/measures/time-slots.ts'
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
    /** Their streams; undefined for observation entities that are not known any more. */
    readonly observations: Iterable<readonly [id: string, n: number | undefined]>
    readonly removed: Iterable<number>
    readonly downtimes: readonly Downtime[]
    readonly cursor: Cursor
    /** Called in the transaction. */
    readonly saved: () => void
  }): void
}

export function createStreamStatements(database: PluginDatabase, rows: RecordRows): StreamStatements {
  const put = database.prepare(
    `INSERT INTO streams (n, id, record, day, written, rare) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (n) DO UPDATE
     SET record = excluded.record, day = excluded.day, written = excluded.written, rare = excluded.rare`,
  )
  const putObservation = database.prepare('INSERT OR REPLACE INTO observations (id, n) VALUES (?, ?)')
  const removeObservation = database.prepare('DELETE FROM observations WHERE id = ?')
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
      const rare = record.rare === undefined ? null : bytesOf(record.rare)
      put.run(n, id, textOf(record), bytesOf(dayOf(record)), written ?? null, rare)
    }
    for (const [id, n] of state.observations) {
      if (n === undefined) removeObservation.run(id)
      else putObservation.run(id, n)
    }
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
        .map((row) => storedOf(row as StreamRow, rows.create())),
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

const slotNames = new Set<string>(['shortest', 'origin', 'newestAt'] satisfies (keyof TimeSlots)[])

/** The numbers of a record, those of its slots apart. */
function textOf(record: StreamRecord): string {
  const { isPlausible, shortest, origin, newestAt } = record
  const figures = savedNumbers.flatMap((name) => (slotNames.has(name) ? [] : [[name, record[name]] as const]))
  const slots = shortest === undefined ? undefined : { shortest, origin, newestAt }
  return JSON.stringify({ ...Object.fromEntries(figures), isPlausible, slots })
}

/** The values of each half hour, then the table of the record. */
function dayOf({ received, firstBin, table, first, shortest }: StreamRecord): Float32Array {
  const size = shortest === undefined ? firstMean : tableSize
  const day = new Float32Array(bins + size)
  day.set(received.subarray(firstBin, firstBin + bins))
  day.set(table.subarray(first, first + size), bins)
  return day
}

function storedOf(
  { n, id, record: text, day, written, rare }: StreamRow,
  record: StreamRecord,
): StoredStream {
  const { slots, ...figures } = JSON.parse(text) as Partial<StreamRecord> & { readonly slots?: TimeSlots }
  Object.assign(record, figures)
  if (slots !== undefined) {
    beginSlots(record, slots.shortest!, slots.origin)
    record.newestAt = slots.newestAt
  }
  const numbers = numbersOf(day)
  record.received.set(numbers.subarray(0, bins), record.firstBin)
  record.table.set(numbers.subarray(bins), record.first)
  if (rare !== null) {
    record.rare = new Float32Array(rareSize)
    record.rare.set(numbersOf(rare))
  }
  return { n, id, record, written: written ?? undefined }
}
