/**
 * Folded history as rows: streams, chunks per stream, entity changes per entity. The chunks of one stream are
 * disjoint in time and ordered by key. Readers merge them with the unfolded tail, which is in memory.
 */
import type { EncodedChunk } from '#store/chunks/chunk-codec.ts'
import { keySql, slotMax, slotOf } from '#store/chunks/chunk-key.ts'
import type { Database } from '#store/file/database.ts'

export const historyWrites = {
  'stream.insert':
    'INSERT INTO stream (s, rid, name, dataset, folded, shape, mirror) VALUES (?, ?, ?, ?, ?, ?, ?)',
  'stream.shape': 'UPDATE stream SET shape = ? WHERE s = ?',
  'stream.mirror': 'UPDATE stream SET mirror = ? WHERE s = ?',
  'stream.retire': 'UPDATE stream SET retired = 1 WHERE s = ?',
  'stream.retire-entity': 'UPDATE stream SET retired = 1 WHERE rid = ?',
  'stream.folded': 'UPDATE stream SET folded = ? WHERE s = ?',
  'chunk.insert': `INSERT INTO chunk (k, t0, t1, count, min, max, sum, sumsq, codec, shapes, body, m0, m1)
     VALUES (${keySql('?', '?')}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  'chunk.delete': `DELETE FROM chunk WHERE k = ${keySql('?', '?')}`,
  'entity-history.insert':
    'INSERT INTO entity_history (rid, n0, n1, t0, t1, count, body) VALUES (?, ?, ?, ?, ?, ?, ?)',
  'entity-history.extend':
    'UPDATE entity_history SET n1 = ?, t1 = ?, count = ?, body = ? WHERE rid = ? AND n0 = ?',
  'entity-history.delete': 'DELETE FROM entity_history WHERE rid = ? AND n0 = ?',
} as const

export interface StreamRow {
  readonly s: number
  readonly rid: number
  readonly name: number
  readonly dataset: string
  readonly folded: number
  readonly retired: number
  readonly shape: string
  readonly mirror: number | null
}

export interface ChunkRow extends EncodedChunk {
  /** Commit times of all instances lie within these bounds, ms. */
  readonly m0: number
  readonly m1: number
}

/** A chunk without its content. */
export type ChunkSummary = Omit<ChunkRow, 'codec' | 'shapes' | 'body'>

/** A change record in the log: its text and its commit time. */
export interface LoggedChange {
  readonly at: number
  readonly text: string
}

export interface EntityHistoryRow {
  readonly n0: number
  readonly n1: number
  readonly t0: number
  readonly count: number
  readonly body: Uint8Array
}

const streamColumns = 's, rid, name, dataset, folded, retired, shape, mirror'
export const chunkColumns = 't0, t1, count, min, max, sum, sumsq, m0, m1, codec, shapes, body'

/** Chunk rows held at once while a long history is read. */
const chunksPerRead = 32

/** Read access to streams and folded history. */
export function createHistory(database: Database) {
  const byNumber = database.prepare<[number], StreamRow>(`SELECT ${streamColumns} FROM stream WHERE s = ?`)
  const ofEntity = database.prepare<[number], StreamRow>(`SELECT ${streamColumns} FROM stream WHERE rid = ?`)
  const ofInstance = database.prepare<[number, number, string], StreamRow>(
    `SELECT ${streamColumns} FROM stream WHERE rid = ? AND name = ? AND dataset = ? AND retired = 0`,
  )
  const last = database.prepare<[], { s: number | null }>('SELECT max(s) AS s FROM stream')
  const lastChunk = database.prepare<[number, number], ChunkRow>(
    `SELECT ${chunkColumns} FROM chunk WHERE k BETWEEN ${keySql('?', '0')} AND ${keySql('?', String(slotMax))} ORDER BY k DESC LIMIT 1`,
  )
  const lastTime = database.prepare<[number, number], { t1: number }>(
    `SELECT t1 FROM chunk WHERE k BETWEEN ${keySql('?', '0')} AND ${keySql('?', String(slotMax))} ORDER BY k DESC LIMIT 1`,
  )
  const before = database.prepare<[number, number, number], ChunkRow>(
    `SELECT ${chunkColumns} FROM chunk WHERE k BETWEEN ${keySql('?', '0')} AND ${keySql('?', '?')} ORDER BY k DESC LIMIT 1`,
  )
  const lastTimeBefore = database.prepare<[number, number, number], { t0: number }>(
    `SELECT t0 FROM chunk WHERE k BETWEEN ${keySql('?', '0')} AND ${keySql('?', '?')} ORDER BY k DESC LIMIT 1`,
  )
  const span = `k BETWEEN ${keySql('?', '?')} AND ${keySql('?', '?')}`
  const upwards = database.prepare<[number, number, number, number], ChunkRow>(
    `SELECT ${chunkColumns} FROM chunk WHERE ${span} ORDER BY k LIMIT ${chunksPerRead}`,
  )
  const downwards = database.prepare<[number, number, number, number], ChunkRow>(
    `SELECT ${chunkColumns} FROM chunk WHERE ${span} ORDER BY k DESC LIMIT ${chunksPerRead}`,
  )
  const summaries = database.prepare<[number, number, number, number], ChunkSummary>(
    `SELECT t0, t1, count, min, max, sum, sumsq, m0, m1 FROM chunk WHERE ${span} ORDER BY k`,
  )
  const changes = database.prepare<[number], EntityHistoryRow>(
    'SELECT n0, n1, t0, count, body FROM entity_history WHERE rid = ? ORDER BY n0',
  )
  const lastChanges = database.prepare<[number], EntityHistoryRow>(
    'SELECT n0, n1, t0, count, body FROM entity_history WHERE rid = ? ORDER BY n0 DESC LIMIT 1',
  )
  const lastChange = database
    .prepare<[number], number>('SELECT n1 FROM entity_history WHERE rid = ? ORDER BY n0 DESC LIMIT 1')
    .pluck()
  const loggedChange = database.prepare<[number], LoggedChange>(
    'SELECT at, CAST(body AS TEXT) AS text FROM log WHERE n = ?',
  )
  return Object.freeze({
    stream: (s: number) => byNumber.get(s),
    streamsOf: (rid: number) => ofEntity.all(rid),
    streamOf: (rid: number, name: number, dataset: string) => ofInstance.get(rid, name, dataset),
    lastStream: () => last.get()?.s ?? 0,
    lastChunk: (s: number) => lastChunk.get(s, s),
    /** The last observedAt in the chunks of a stream. */
    lastTime: (s: number) => lastTime.get(s, s)?.t1,
    /** The chunk that would contain `ms`: the last one that begins at or before its slot. */
    chunkAt: (s: number, ms: number) => before.get(s, s, slotOf(ms)),
    /**
     * Chunks that may hold instances with from <= observedAt <= to, in order of time, read a few at a time.
     */
    *chunks(s: number, from: number, to: number): Generator<ChunkRow> {
      const first = before.get(s, s, slotOf(from))
      let slot = first === undefined ? slotOf(from) : slotOf(first.t0)
      for (;;) {
        const rows = upwards.all(s, slot, s, slotOf(to))
        for (const row of rows) if (row.t1 >= from && row.t0 <= to) yield row
        if (rows.length < chunksPerRead) return
        slot = slotOf(rows.at(-1)!.t0) + 1
      }
    },
    /** Like `chunks`, in reverse order. */
    *chunksBackwards(s: number, from: number, to: number): Generator<ChunkRow> {
      const first = before.get(s, s, slotOf(from))
      const lowest = first === undefined ? slotOf(from) : slotOf(first.t0)
      let slot = slotOf(to)
      while (slot >= lowest) {
        const rows = downwards.all(s, lowest, s, slot)
        for (const row of rows) if (row.t1 >= from && row.t0 <= to) yield row
        if (rows.length < chunksPerRead) return
        slot = slotOf(rows.at(-1)!.t0) - 1
      }
    },
    /** The chunks of `chunks`, without their content. */
    summaries(s: number, from: number, to: number): ChunkSummary[] {
      const first = lastTimeBefore.get(s, s, slotOf(from))
      const slot = first === undefined ? slotOf(from) : slotOf(first.t0)
      return summaries.all(s, slot, s, slotOf(to)).filter((row) => row.t1 >= from && row.t0 <= to)
    },
    entityChanges: (rid: number) => changes.all(rid),
    lastEntityChanges: (rid: number) => lastChanges.get(rid),
    /** The log number of the entity's last folded change; 0 if there is none. Reads no body. */
    lastFoldedChange: (rid: number): number => lastChange.get(rid) ?? 0,
    loggedChange: (n: number) => loggedChange.get(n),
  })
}

export type History = ReturnType<typeof createHistory>
