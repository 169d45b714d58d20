/**
 * The table of streams in the plugin's own file: records, each with the log number and the message up to
 * which it includes all observations. A save writes them in several transactions. The last one writes the
 * cursor: the log number that all records reach. A restart reads the log from there, without the observations
 * that a record of an interrupted save includes already. So each observation counts exactly once.
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

/** A later migration step. A record that was saved before it reaches as far as the cursor. */
export const reachColumns = `ALTER TABLE streams ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE streams ADD COLUMN committed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE streams ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;`

/** A later migration step. */
export const aliveColumn = 'ALTER TABLE cursor ADD COLUMN alive INTEGER NOT NULL DEFAULT 0;'

/** How far a record reaches. */
export interface RecordReach {
  /** Log number. */
  readonly position: number
  /** Commit time of that row, ms. */
  readonly committed: number
  /** Number of the last message of a source. */
  readonly messages: number
}

/** How far all records reach. */
export interface Cursor {
  /** All changes up to this log number are included. */
  readonly position: number
  /** Commit time of that row, ms. */
  readonly committed: number
  /** Observations committed before this time, ms, do not count in the log: they were read from history. */
  readonly countsFrom: number
}

export interface StoredStream {
  readonly n: number
  readonly id: string
  readonly record: StreamRecord
  readonly written: string | undefined
  readonly position: number
  readonly committed: number
}

/** A part of a save. Returns what follows once its transaction is committed. */
export type SaveStep = () => (() => void) | undefined

export interface StreamStatements {
  readonly cursor: () => Cursor | undefined
  /** When the last save ended, ms. */
  readonly aliveUntil: () => number
  all(): readonly StoredStream[]
  /** Ids of observation entities, with the number of their stream. */
  observations(): readonly (readonly [id: string, n: number])[]
  downtimes(): readonly Downtime[]
  /** The last message that the saved record of a stream includes; 0 for a stream that was not saved. */
  messagesOf(id: string): number
  /** Deletes all streams. */
  clear(): void
  /**
   * Takes steps as one transaction, the first in any case. Returns the index of the next step.
   * @param isEnough ends the transaction after any step.
   */
  transact(steps: readonly SaveStep[], from: number, isEnough: () => boolean): number
  remove(n: number): void
  /** @param reach of the record; one that reaches further already still does. */
  put(stream: Stream, reach: RecordReach): void
  /** @param n undefined for an observation entity that is not known any more. */
  place(observation: string, n: number | undefined): void
  /** Ends a save. @param now ms. */
  end(cursor: Cursor, downtimes: readonly Downtime[], now: number): void
  /** Yields between two transactions. */
  readonly rest: () => Promise<void>
}

export function createStreamStatements(database: PluginDatabase, rows: RecordRows): StreamStatements {
  const put = database.prepare(
    `INSERT INTO streams (n, id, record, day, written, rare, position, committed, messages)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (n) DO UPDATE
     SET record = excluded.record, day = excluded.day, written = excluded.written, rare = excluded.rare,
       position = max(position, excluded.position), committed = max(committed, excluded.committed),
       messages = max(messages, excluded.messages)`,
  )
  const putObservation = database.prepare('INSERT OR REPLACE INTO observations (id, n) VALUES (?, ?)')
  const removeObservation = database.prepare('DELETE FROM observations WHERE id = ?')
  const remove = database.prepare('DELETE FROM streams WHERE n = ?')
  const removeObservations = database.prepare('DELETE FROM observations WHERE n = ?')
  const clearDowntimes = database.prepare('DELETE FROM downtimes')
  const putDowntime = database.prepare('INSERT INTO downtimes VALUES (?, ?)')
  const putCursor = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?, ?, ?, ?)')
  const messages = database.prepare('SELECT messages FROM streams WHERE id = ?').pluck()
  const take = database.transaction(
    (steps: readonly SaveStep[], from: number, isEnough: () => boolean): (() => void)[] => {
      const committed: (() => void)[] = []
      for (let at = from; at < steps.length && (at === from || !isEnough()); at++)
        committed.push(steps[at]!() ?? nothing)
      return committed
    },
  )
  return Object.freeze({
    cursor() {
      const row = database.prepare('SELECT position, committed, counts_from AS countsFrom FROM cursor').get()
      return row as Cursor | undefined
    },
    aliveUntil: () => (database.prepare('SELECT alive FROM cursor').pluck().get() as number | undefined) ?? 0,
    all: () =>
      database
        .prepare('SELECT n, id, record, day, written, rare, position, committed FROM streams ORDER BY n')
        .all()
        .map((row) => storedOf(row as StreamRow, rows.create())),
    observations: () =>
      database.prepare('SELECT id, n FROM observations').raw().all() as (readonly [string, number])[],
    downtimes: () =>
      database.prepare('SELECT began AS "from", ended AS "to" FROM downtimes').all() as Downtime[],
    messagesOf: (id) => (messages.get(id) as number | undefined) ?? 0,
    clear() {
      database.prepare('DELETE FROM streams').run()
      database.prepare('DELETE FROM observations').run()
    },
    transact(steps, from, isEnough) {
      const committed = take(steps, from, isEnough)
      for (const one of committed) one()
      return from + committed.length
    },
    remove(n) {
      remove.run(n)
      removeObservations.run(n)
    },
    put({ n, id, record, written }, reach) {
      const rare = record.rare === undefined ? null : bytesOf(record.rare)
      const figures = [n, id, textOf(record), bytesOf(dayOf(record)), written ?? null, rare]
      put.run(...figures, reach.position, reach.committed, reach.messages)
    },
    place(observation, n) {
      if (n === undefined) removeObservation.run(observation)
      else putObservation.run(observation, n)
    },
    end({ position, committed, countsFrom }, downtimes, now) {
      clearDowntimes.run()
      for (const { from, to } of downtimes) putDowntime.run(from, to)
      putCursor.run(position, committed, countsFrom, now)
    },
    rest: database.rest,
  } satisfies StreamStatements)
}

const nothing = (): void => undefined

interface StreamRow {
  readonly n: number
  readonly id: string
  readonly record: string
  readonly day: Buffer
  readonly written: string | null
  readonly rare: Buffer | null
  readonly position: number
  readonly committed: number
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
  { n, id, record: text, day, written, rare, position, committed }: StreamRow,
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
  return { n, id, record, written: written ?? undefined, position, committed }
}
