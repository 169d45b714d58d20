/**
 * The brokers whose entities are indexed, as rows: the gateway's own is number 1, others follow. What is known of one beside
 * its address (subscriptions there, when it was read, what differed) is JSON that whoever follows it reads and writes.
 */
import { randomBytes } from 'node:crypto'
import { GatewayError } from '#base/errors.ts'
import type { PluginDatabase } from '#contract'

/** Number of the gateway's own broker. */
export const ownBroker = 1

/** Who said that it be indexed. */
export type Origin = 'own' | 'registered' | 'declared' | 'learnt'

/** loading: read for the first time, or anew; following: told of changes; down: not reached; refused: it answers, but not so. */
export type BrokerState = 'new' | 'loading' | 'following' | 'down' | 'refused' | 'leaving'

/** How far a full reading is. */
export interface LoadProgress {
  /** Where it goes on after a restart; whoever reads knows what it means. */
  readonly at: string
  readonly read: number
  readonly total: number | null
  /** ms */
  readonly since: number
}

export interface BrokerRow {
  readonly b: number
  /** 24 hexadecimal digits; the id in `/api/broker`. */
  readonly key: string
  /** As registered, without `/ngsi-ld/v1` and without a slash at its end. */
  readonly host: string
  readonly origin: Origin
  readonly state: BrokerState
  /** When it came to be in that state, ms. */
  readonly since: number
  /** Log number that the index includes; own broker only. */
  readonly position: number | null
  readonly load: LoadProgress | null
  /** Subscription ids, differences found, last crawl and its like. */
  readonly facts: Readonly<Record<string, unknown>>
}

export type BrokerChange = Partial<Pick<BrokerRow, 'state' | 'load' | 'facts' | 'position' | 'host'>>

interface StoredRow {
  readonly b: number
  readonly key: string
  readonly host: string
  readonly origin: string
  readonly state: string
  readonly since: number
  readonly position: number | null
  readonly load: string | null
  readonly facts: string
}

export type Brokers = ReturnType<typeof createBrokers>

export function createBrokers(database: PluginDatabase, now: () => number) {
  const columns = 'b, key, host, origin, state, since, position, load, facts'
  const all = (): BrokerRow[] =>
    (database.prepare(`SELECT ${columns} FROM broker ORDER BY b`).all() as StoredRow[]).map(rowOf)
  const get = (b: number): BrokerRow | undefined => {
    const row = database.prepare(`SELECT ${columns} FROM broker WHERE b = ?`).get(b) as StoredRow | undefined
    return row && rowOf(row)
  }
  const byHost = (host: string): BrokerRow | undefined => {
    const row = database.prepare(`SELECT ${columns} FROM broker WHERE host = ?`).get(host) as
      | StoredRow
      | undefined
    return row && rowOf(row)
  }

  return Object.freeze({
    all,
    get,
    byHost,
    byKey: (key: string): BrokerRow | undefined => all().find((one) => one.key === key),

    /** @throws ngsi-ld.already-exists where the address is known. */
    add(host: string, origin: Origin, facts: BrokerRow['facts'] = {}): BrokerRow {
      if (byHost(host) !== undefined)
        throw new GatewayError('ngsi-ld.already-exists', `${host} is registered already`, { host })
      const key = randomBytes(12).toString('hex')
      // The first one is the gateway's own, whoever comes first.
      const b = origin === 'own' ? ownBroker : Math.max(ownBroker, ...all().map((one) => one.b)) + 1
      database
        .prepare(
          'INSERT INTO broker (b, key, host, origin, state, since, facts) VALUES (?, ?, ?, ?, ?, ?, ?)',
        )
        .run(b, key, host, origin, 'new', now(), JSON.stringify(facts))
      return get(b)!
    },

    /** Changes what is named; facts are replaced as a whole. */
    set(b: number, change: BrokerChange): void {
      const row = get(b)
      if (row === undefined) return
      const next = { ...row, ...change }
      const since = next.state === row.state ? row.since : now()
      const load = next.load === null ? null : JSON.stringify(next.load)
      database
        .prepare(
          'UPDATE broker SET host = ?, state = ?, since = ?, position = ?, load = ?, facts = ? WHERE b = ?',
        )
        .run(next.host, next.state, since, next.position, load, JSON.stringify(next.facts), b)
    },

    /** Forgets a broker. Its entries have to be gone: `catalogue.removeAll`. */
    remove(b: number): void {
      database.prepare('DELETE FROM tally WHERE b = ?').run(b)
      database.prepare('DELETE FROM broker WHERE b = ?').run(b)
    },

    /** Rows written back as they were, into an index that was emptied. */
    restore(rows: readonly BrokerRow[]): void {
      const add = database.prepare(
        'INSERT INTO broker (b, key, host, origin, state, since, facts) VALUES (?, ?, ?, ?, ?, ?, ?)',
      )
      for (const { b, key, host, origin, facts } of rows)
        add.run(b, key, host, origin, 'new', now(), JSON.stringify(facts))
    },
  })
}

const rowOf = (row: StoredRow): BrokerRow => ({
  ...row,
  origin: row.origin as Origin,
  state: row.state as BrokerState,
  load: row.load === null ? null : (JSON.parse(row.load) as LoadProgress),
  facts: JSON.parse(row.facts) as BrokerRow['facts'],
})
