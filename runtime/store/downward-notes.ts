/**
 * What a gateway did at other brokers, as rows, so that it can be undone when nobody remembers the settings it came from.
 * What a note says is decided above.
 */
import type { Database } from './database.ts'

export const downwardWrites = {
  'downward_note.put':
    'INSERT INTO downward_note (key, doc) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET doc = excluded.doc',
  'downward_note.delete': 'DELETE FROM downward_note WHERE key = ?',
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
