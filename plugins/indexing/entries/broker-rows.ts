/**
 * The brokers whose entities are indexed, as rows: the gateway's own is number 1, others follow. What is known of one beside
 * its address (subscriptions there, when it was read, what differed) is JSON that whoever follows it reads and writes.
 */
import { randomBytes } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import type { PluginDatabase } from '#contract'
import { placeOf } from './same-broker.ts'
import { prepareBrokerStatements } from './statements.ts'

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
  let sql = prepareBrokerStatements(database)
  /** The last number given: while this runs none is given again, so what still removes one that is gone touches no other. */
  let given = ownBroker
  const one = (row: unknown): BrokerRow | undefined =>
    row === undefined ? undefined : rowOf(row as StoredRow)
  const all = (): BrokerRow[] => (sql.all.all() as StoredRow[]).map(rowOf)
  const get = (b: number): BrokerRow | undefined => one(sql.get.get(b))
  /** By any address of its. */
  const byHost = (host: string): BrokerRow | undefined => {
    const rows = all()
    return rows.find((row) => row.host === host) ?? rows.find((row) => placeOf(row.host) === placeOf(host))
  }

  return Object.freeze({
    all,
    get,
    byHost,
    byKey: (key: string): BrokerRow | undefined => one(sql.byKey.get(key)),

    /** @throws ngsi-ld.already-exists where the address is known. */
    add(host: string, origin: Origin, facts: BrokerRow['facts'] = {}): BrokerRow {
      const known = byHost(host)
      if (known !== undefined)
        throw new GatewayError('ngsi-ld.already-exists', `${known.host} is registered already`, { host })
      const key = randomBytes(12).toString('hex')
      // The number 1 is kept for the gateway's own, whoever comes first.
      const last = (sql.last.get() as number | null) ?? ownBroker
      if (origin !== 'own') given = Math.max(given, last) + 1
      const b = origin === 'own' ? ownBroker : given
      sql.add.run(b, key, host, origin, 'new', now(), JSON.stringify(facts))
      return get(b)!
    },

    /** Changes what is named; facts are replaced as a whole. */
    set(b: number, change: BrokerChange): void {
      const row = get(b)
      if (row === undefined) return
      const next = { ...row, ...change }
      const since = next.state === row.state ? row.since : now()
      const load = next.load === null ? null : JSON.stringify(next.load)
      sql.set.run(next.host, next.state, since, next.position, load, JSON.stringify(next.facts), b)
    },

    /** Forgets a broker. Its entries have to be gone: `catalogue.removeAll`. */
    remove(b: number): void {
      sql.forgetTally.run(b)
      sql.remove.run(b)
    },

    /** Rows written back as they were, into an index that was emptied. */
    restore(rows: readonly BrokerRow[]): void {
      sql = prepareBrokerStatements(database)
      for (const { b, key, host, origin, state, facts } of rows) {
        // What is left of one that is leaving is not in the index.
        const next = state === 'leaving' ? state : 'new'
        sql.add.run(b, key, host, origin, next, now(), JSON.stringify(facts))
      }
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
