/**
 * Corrections of history: single instances that a client replaced or removed, erased attributes and entities,
 * and entities that exist only because a client wrote their history. Chunks and change records stay as
 * written; every reader of history applies the corrections.
 */
import { keySql, slotMax } from '#store/chunks/chunk-key.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import type { Database } from '#store/file/database.ts'

export const historyEditWrites = {
  'history-edit.put':
    'INSERT INTO history_edit (rid, instance, at, body) VALUES (?, ?, ?, ?) ON CONFLICT (rid, instance) DO UPDATE SET at = excluded.at, body = excluded.body',
  'history-edit.clear': 'DELETE FROM history_edit WHERE rid = ?',
  'history-erased.put':
    'INSERT INTO history_erased (rid, name, dataset, n, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (rid, name, dataset) DO UPDATE SET n = excluded.n, at = excluded.at',
  'history-erased.clear': 'DELETE FROM history_erased WHERE rid = ?',
  'history-born.put': 'INSERT OR IGNORE INTO history_born (rid) VALUES (?)',
  'history-born.clear': 'DELETE FROM history_born WHERE rid = ?',
  'chunk.erase': `DELETE FROM chunk WHERE k BETWEEN ${keySql('?', '0')} AND ${keySql('?', String(slotMax))}`,
  'entity-history.erase': 'DELETE FROM entity_history WHERE rid = ?',
} as const

export interface HistoryEditRow {
  readonly instance: string
  readonly at: number
  readonly body: string | null
}

export interface HistoryErasedRow {
  readonly name: string
  readonly dataset: string
  readonly n: number
  readonly at: number
}

/** Read access to corrections, and to tombstones in order. */
export function createHistoryEdits(database: Database) {
  const edits = database.prepare<[number, string, string], HistoryEditRow>(
    'SELECT instance, at, body FROM history_edit WHERE rid = ? AND instance >= ? AND instance < ?',
  )
  const count = database.prepare<[number], { c: number }>(
    'SELECT count(*) AS c FROM history_edit WHERE rid = ?',
  )
  const erased = database.prepare<[number], HistoryErasedRow>(
    'SELECT name, dataset, n, at FROM history_erased WHERE rid = ?',
  )
  const born = database.prepare<[number], { rid: number }>('SELECT rid FROM history_born WHERE rid = ?')
  const tombstones = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, via, created FROM tombstone WHERE n > ? ORDER BY n LIMIT ?',
  )
  return Object.freeze({
    /** Corrections of an entity's instances whose ids have this prefix. */
    edits: (rid: number, prefix: string) => edits.all(rid, prefix, `${prefix}\uffff`),
    /** Number of corrected instances of an entity. */
    count: (rid: number) => count.get(rid)!.c,
    erased: (rid: number) => erased.all(rid),
    isBorn: (rid: number) => born.get(rid) !== undefined,
    /** Tombstones after a log number, in order of deletion. */
    tombstonesAfter: (n: number, limit: number) => tombstones.all(n, limit),
  })
}

export type HistoryEdits = ReturnType<typeof createHistoryEdits>
