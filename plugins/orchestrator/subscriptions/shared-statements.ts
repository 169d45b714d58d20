/** Tables and statements of the subscriptions of the orchestrator, and of their clients. */
import type { PluginDatabase } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { ClientDelivery } from './subscription-form.ts'

/** Part of the first migration step. */
export const subscriptionTables = `CREATE TABLE shared_subscriptions (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  body TEXT NOT NULL,
  created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sharers (
  subscription TEXT NOT NULL,
  client TEXT NOT NULL,
  delivery TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (subscription, client)
) WITHOUT ROWID;
CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), secret TEXT NOT NULL);`

export interface SharedRow {
  readonly id: string
  readonly tenant: string
  readonly fingerprint: string
  readonly created: number
}

export interface ClientRow {
  readonly subscription: string
  readonly client: string
  readonly delivery: ClientDelivery
  readonly since: number
}

export function prepareShared(database: PluginDatabase) {
  const all = database.prepare('SELECT id, tenant, fingerprint, created FROM shared_subscriptions')
  const body = database.prepare('SELECT body FROM shared_subscriptions WHERE id = ?').pluck()
  const put = database.prepare('INSERT INTO shared_subscriptions VALUES (?, ?, ?, ?, ?)')
  const remove = database.prepare('DELETE FROM shared_subscriptions WHERE id = ?')
  const clients = database.prepare('SELECT subscription, client, delivery, since FROM sharers')
  const putClient = database.prepare('INSERT OR REPLACE INTO sharers VALUES (?, ?, ?, ?)')
  const removeClient = database.prepare('DELETE FROM sharers WHERE subscription = ? AND client = ?')
  const removeClients = database.prepare('DELETE FROM sharers WHERE subscription = ?')
  const secret = database.prepare('SELECT secret FROM secret').pluck()
  const putSecret = database.prepare('INSERT INTO secret VALUES (1, ?)')
  return Object.freeze({
    all: () => all.all() as SharedRow[],
    clients: () => clients.all() as ClientRow[],
    /** The body as its first client sent it, with its @context. */
    body: (id: string): JsonObject => JSON.parse(body.get(id) as string) as JsonObject,
    put: ({ id, tenant, fingerprint, created }: SharedRow, text: JsonObject) =>
      put.run(id, tenant, fingerprint, JSON.stringify(text), created),
    putClient: ({ subscription, client, delivery, since }: ClientRow) =>
      putClient.run(subscription, client, delivery, since),
    removeClient: (subscription: string, client: string) => removeClient.run(subscription, client),
    remove(id: string): void {
      removeClients.run(id)
      remove.run(id)
    },
    /** The secret that signs the addresses of all subscriptions; created at the first call. */
    secret(create: () => string): string {
      const known = secret.get() as string | undefined
      if (known !== undefined) return known
      putSecret.run(create())
      return secret.get() as string
    },
  })
}
