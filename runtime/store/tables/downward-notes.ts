/**
 * Notes on the registrations and subscriptions that this gateway made at other brokers, so that they can be
 * undone after their settings were removed. Also the list of entities copied from those brokers. The content
 * of a note belongs to the downward room.
 */
import type { Database } from '#store/file/database.ts'

export const downwardWrites = {
  'downward_note.put':
    'INSERT INTO downward_note (key, doc) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET doc = excluded.doc',
  'downward_note.delete': 'DELETE FROM downward_note WHERE key = ?',
  'entity_copy.put':
    'INSERT INTO entity_copy (id, source) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET source = excluded.source',
  'entity_copy.delete': 'DELETE FROM entity_copy WHERE id = ?',
} as const

export interface DownwardNoteRow {
  readonly key: string
  readonly doc: string
}

/** Read access to the notes. */
export function createDownwardNotes(database: Database) {
  const all = database.prepare<[], DownwardNoteRow>('SELECT key, doc FROM downward_note ORDER BY key')
  return Object.freeze({ all: () => all.all() })
}

export type DownwardNotes = ReturnType<typeof createDownwardNotes>

export interface EntityCopyRow {
  readonly id: string
  readonly source: string
}

/** Read access to the list of copies. */
export function createEntityCopies(database: Database) {
  const all = database.prepare<[], EntityCopyRow>('SELECT id, source FROM entity_copy ORDER BY id')
  return Object.freeze({ all: () => all.all() })
}

export type EntityCopies = ReturnType<typeof createEntityCopies>
