/**
 * Counts the requests of each client, in memory, and writes the counts to disk at an interval. The number of
 * clients and of what is known of each is bounded: the least recently used ones are dropped.
 */
import { limits } from '#base/limits/limits.ts'
import type { ClientIdentity } from './client-identity.ts'
import { type ClientRecord, type ClientStatements, useKey } from './client-statements.ts'

/** Where copies of the records go. */
export interface ClientCopies {
  put(tenant: string, id: string, record: object): void
  remove(tenant: string, id: string): void
}

export interface ClientsPorts {
  readonly statements: ClientStatements
  /** Yields between two transactions. */
  readonly rest: () => Promise<void>
  readonly copies: ClientCopies
  readonly now: () => number
}

/** One request of a client. */
export interface NotedRequest {
  readonly tenant: string
  readonly client: ClientIdentity
  readonly method: string
  readonly resource: string
  readonly status: number
}

export type Clients = ReturnType<typeof createClients>

export function createClients({ statements, rest, copies, now }: ClientsPorts) {
  /** The least recently active first. */
  const known = new Map(statements.all().map((one) => [keyOf(one), one]))
  const changed = new Set<ClientRecord>()
  const removed = new Map<string, ClientRecord>()
  let saving: Promise<void> | undefined

  function note({ tenant, client, method, resource, status }: NotedRequest): void {
    const at = now()
    const key = keyOf({ tenant, id: client.id })
    const record: ClientRecord = known.get(key) ?? {
      tenant,
      id: client.id,
      by: client.by,
      requests: 0,
      failures: 0,
      firstAt: at,
      lastAt: at,
      uses: new Map(),
    }
    record.by = client.by
    record.requests++
    if (status >= 400) record.failures++
    record.lastAt = at
    const name = useKey({ method, resource })
    const use = record.uses.get(name) ?? { method, resource, count: 0, lastAt: at }
    use.count++
    use.lastAt = at
    record.uses.delete(name)
    record.uses.set(name, use)
    if (record.uses.size > limits.orchestratorUsesMax.value)
      record.uses.delete(record.uses.keys().next().value!)
    known.delete(key)
    known.set(key, record)
    removed.delete(key)
    changed.add(record)
    if (known.size > limits.orchestratorClientsMax.value) drop(known.keys().next().value!)
  }

  function drop(key: string): void {
    const record = known.get(key)!
    known.delete(key)
    changed.delete(record)
    removed.set(key, record)
  }

  async function saveAll(): Promise<void> {
    while (changed.size > 0 || removed.size > 0) {
      const some = [...changed].slice(0, limits.orchestratorSavedClients.value)
      const gone = [...removed.values()]
      for (const one of some) changed.delete(one)
      removed.clear()
      statements.save(some, gone)
      for (const one of some) copies.put(one.tenant, one.id, shownClient(one))
      for (const { tenant, id } of gone) copies.remove(tenant, id)
      await rest()
    }
  }

  return Object.freeze({
    note,
    /** Writes what changed. @throws the error of a failing disk. */
    save: (): Promise<void> => (saving ??= saveAll().finally(() => (saving = undefined))),
    /** Sends copies of all clients, to a store that may have lost them. */
    copyAll(): void {
      for (const one of known.values()) copies.put(one.tenant, one.id, shownClient(one))
    },
    /** The most recently active first. @param tenant all if it is undefined. */
    list({ tenant, limit, offset }: { tenant: string | undefined; limit: number; offset: number }) {
      const some = [...known.values()]
        .reverse()
        .filter((one) => tenant === undefined || one.tenant === tenant)
      return { count: some.length, clients: some.slice(offset, offset + limit).map(shownClient) }
    },
  })
}

const keyOf = ({ tenant, id }: Pick<ClientRecord, 'tenant' | 'id'>): string => `${tenant}\n${id}`

const at = (ms: number): string => new Date(ms).toISOString()

/** A client as operators and copies have it. */
export function shownClient({
  tenant,
  id,
  by,
  requests,
  failures,
  firstAt,
  lastAt,
  uses,
}: ClientRecord): object {
  return {
    client: id,
    by,
    tenant,
    requests,
    failures,
    firstAt: at(firstAt),
    lastAt: at(lastAt),
    uses: [...uses.values()]
      .reverse()
      .map(({ method, resource, count, lastAt: last }) => ({ method, resource, count, lastAt: at(last) })),
  }
}
