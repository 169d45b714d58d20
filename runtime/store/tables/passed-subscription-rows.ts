/**
 * Subscriptions forwarded to context sources, as rows: they link a subscription here to one at the source.
 * The federation room defines the content of the documents.
 */
import type { Database } from '#store/file/database.ts'

export const passedSubscriptionWrites = {
  'passed_subscription.put':
    'INSERT INTO passed_subscription (id, doc) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc',
  'passed_subscription.delete': 'DELETE FROM passed_subscription WHERE id = ?',
} as const

export interface PassedSubscriptionRow {
  readonly id: string
  readonly doc: string
}

export function createPassedSubscriptions(database: Database) {
  const all = database.prepare<[], PassedSubscriptionRow>(
    'SELECT id, doc FROM passed_subscription ORDER BY id',
  )
  return Object.freeze({ all: () => all.all() })
}

export type PassedSubscriptions = ReturnType<typeof createPassedSubscriptions>
