/**
 * Corrections of history: single instances that a client replaced or removed, what was erased as a whole, and which
 * entities exist only because somebody wrote their history. They lie over chunks and change records, which stay as they
 * were written; whoever reads history applies them.
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

/** Read access to corrections, and to deleted entities one after the other. */
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
  const graves = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, heard, created FROM tombstone WHERE n > ? ORDER BY n LIMIT ?',
  )
  return Object.freeze({
    /** Of the instances of an entity whose ids begin like this. */
    edits: (rid: number, prefix: string) => edits.all(rid, prefix, `${prefix}\uffff`),
    /** How many instances of an entity are corrected. */
    count: (rid: number) => count.get(rid)!.c,
    erased: (rid: number) => erased.all(rid),
    isBorn: (rid: number) => born.get(rid) !== undefined,
    /** Deleted entities in order of deletion, after a log number. */
    gravesAfter: (n: number, limit: number) => graves.all(n, limit),
  })
}

export type HistoryEdits = ReturnType<typeof createHistoryEdits>
