/**
 * Registrations of context sources, the subscriptions to them, and the last answers of sources, as rows.
 * Subscription numbers are negative, so that their deliveries can share the one outbox. The federation room
 * defines the content of the documents.
 */
import type { Database } from '#store/file/database.ts'
import type { SubscriptionRow } from './records.ts'

export const contextSourceWrites = {
  'csource.put':
    'INSERT INTO csource (id, doc, stats) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc, stats = excluded.stats',
  'csource.stats': 'UPDATE csource SET stats = ? WHERE id = ?',
  'csource.delete': 'DELETE FROM csource WHERE id = ?',
  'csource_subscription.put':
    'INSERT INTO csource_subscription (i, id, doc, stats) VALUES (?, ?, ?, ?) ON CONFLICT (i) DO UPDATE SET doc = excluded.doc, stats = excluded.stats',
  'csource_subscription.stats': 'UPDATE csource_subscription SET stats = ? WHERE i = ?',
  'csource_subscription.delete': 'DELETE FROM csource_subscription WHERE i = ?',
  'source_copy.put':
    'INSERT INTO source_copy (key, source, at, answer) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET at = excluded.at, answer = excluded.answer',
  'source_copy.delete': 'DELETE FROM source_copy WHERE key = ?',
  'source_copy.forget': 'DELETE FROM source_copy WHERE source = ?',
} as const

export interface ContextSourceRow {
  readonly id: string
  readonly doc: string
  readonly stats: string
}

/** The last answer of a source. */
export interface SourceCopyRow {
  readonly key: string
  /** Id of the registration. */
  readonly source: string
  /** Time of the answer, ms. */
  readonly at: number
  /** JSON. */
  readonly answer: string
}

/** Read access in order of creation; copies in order of age, oldest first. */
export function createContextSources(database: Database) {
  const registrations = database.prepare<[], ContextSourceRow>(
    'SELECT id, doc, stats FROM csource ORDER BY r',
  )
  const subscriptions = database.prepare<[], SubscriptionRow>(
    'SELECT i, id, doc, stats FROM csource_subscription ORDER BY i DESC',
  )
  const copies = database.prepare<[], SourceCopyRow>(
    'SELECT key, source, at, answer FROM source_copy ORDER BY at',
  )
  return Object.freeze({
    copies: () => copies.all(),
    registrations: () => registrations.all(),
    subscriptions: () => subscriptions.all(),
  })
}

export type ContextSources = ReturnType<typeof createContextSources>
