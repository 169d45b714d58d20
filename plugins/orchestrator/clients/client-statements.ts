/** SQL statements for clients and their requests. */
import type { PluginDatabase } from '#contract'

export const clientTables = `
  CREATE TABLE client (
    tenant TEXT NOT NULL, id TEXT NOT NULL, by TEXT NOT NULL, requests INTEGER NOT NULL,
    failures INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
  ) WITHOUT ROWID;
  CREATE TABLE client_use (
    tenant TEXT NOT NULL, client TEXT NOT NULL, method TEXT NOT NULL, resource TEXT NOT NULL,
    count INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, client, method, resource)
  ) WITHOUT ROWID;
`

/** A method and resource that a client requested. */
export interface ClientUse {
  readonly method: string
  /** Below `/ngsi-ld/v1/`, with the types of a query. */
  readonly resource: string
  count: number
  lastAt: number
}

export interface ClientRecord {
  readonly tenant: string
  readonly id: string
  by: string
  requests: number
  /** Requests with an error status. */
  failures: number
  readonly firstAt: number
  lastAt: number
  /** The least recently repeated first. */
  readonly uses: Map<string, ClientUse>
}

export const useKey = ({ method, resource }: Pick<ClientUse, 'method' | 'resource'>): string =>
  `${method} ${resource}`

export type ClientStatements = ReturnType<typeof createClientStatements>

export function createClientStatements(database: PluginDatabase) {
  const clients = database.prepare(
    'SELECT tenant, id, by, requests, failures, first_at AS firstAt, last_at AS lastAt FROM client ORDER BY last_at',
  )
  const uses = database.prepare(
    'SELECT method, resource, count, last_at AS lastAt FROM client_use WHERE tenant = ? AND client = ? ORDER BY last_at',
  )
  const putClient = database.prepare('INSERT OR REPLACE INTO client VALUES (?, ?, ?, ?, ?, ?, ?)')
  const dropClient = database.prepare('DELETE FROM client WHERE tenant = ? AND id = ?')
  const putUse = database.prepare('INSERT OR REPLACE INTO client_use VALUES (?, ?, ?, ?, ?, ?)')
  const dropUses = database.prepare('DELETE FROM client_use WHERE tenant = ? AND client = ?')

  return Object.freeze({
    all: (): ClientRecord[] =>
      (clients.all() as Omit<ClientRecord, 'uses'>[]).map((row) => {
        const known = uses.all(row.tenant, row.id) as ClientUse[]
        return { ...row, uses: new Map(known.map((use) => [useKey(use), use])) }
      }),
    /** Writes clients as they are, and removes others. */
    save: database.transaction(
      (changed: readonly ClientRecord[], removed: readonly Pick<ClientRecord, 'tenant' | 'id'>[]) => {
        for (const { tenant, id } of [...removed, ...changed]) dropUses.run(tenant, id)
        for (const { tenant, id } of removed) dropClient.run(tenant, id)
        for (const { tenant, id, by, requests, failures, firstAt, lastAt, uses: known } of changed) {
          putClient.run(tenant, id, by, requests, failures, firstAt, lastAt)
          for (const use of known.values())
            putUse.run(tenant, id, use.method, use.resource, use.count, use.lastAt)
        }
      },
    ),
  })
}
