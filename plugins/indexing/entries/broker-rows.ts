/**
 * Stores the indexed brokers as rows; the gateway's own broker is number 1. Other data about a broker
 * (subscription ids, read times, differences) is JSON that `followed-broker.ts` and `own-broker-index.ts`
 * define.
 */
import { randomBytes } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import { canonicalAddress } from '#client/requests/same-broker.ts'
import type { PluginDatabase } from '#contract'
import { prepareBrokerStatements } from './statements.ts'

/** Number of the gateway's own broker. */
export const ownBroker = 1

/** How a broker came to be indexed. */
export type BrokerOrigin = 'own' | 'registered' | 'declared' | 'learnt'

/**
 * loading: being read in full; following: notifies of changes; down: unreachable; refused: its answers are
 * unusable.
 */
export type BrokerState = 'new' | 'loading' | 'following' | 'down' | 'refused' | 'leaving'

/** Progress of a full read. */
export interface LoadProgress {
  /** Position where the read resumes after a restart; opaque here. */
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
  /** Address as registered, without `/ngsi-ld/v1` and trailing slashes. */
  readonly host: string
  readonly origin: BrokerOrigin
  readonly state: BrokerState
  /** When the state last changed, ms. */
  readonly since: number
  /** Log number up to which the index is complete; own broker only. */
  readonly position: number | null
  readonly load: LoadProgress | null
  /** Subscription ids, differences found, last full read and so on. */
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
  /**
   * The last number assigned. Numbers are not reused while this process runs, so a late removal of a deleted
   * broker cannot affect another one.
   */
  let given = ownBroker
  const one = (row: unknown): BrokerRow | undefined =>
    row === undefined ? undefined : rowOf(row as StoredRow)
  const all = (): BrokerRow[] => (sql.all.all() as StoredRow[]).map(rowOf)
  const get = (b: number): BrokerRow | undefined => one(sql.get.get(b))
  /** Finds a broker by any of its addresses. */
  const byHost = (host: string): BrokerRow | undefined => {
    const rows = all()
    return (
      rows.find((row) => row.host === host) ??
      rows.find((row) => canonicalAddress(row.host) === canonicalAddress(host))
    )
  }

  return Object.freeze({
    all,
    get,
    byHost,
    byKey: (key: string): BrokerRow | undefined => one(sql.byKey.get(key)),

    /** @throws ngsi-ld.already-exists if the address is registered. */
    add(host: string, origin: BrokerOrigin, facts: BrokerRow['facts'] = {}): BrokerRow {
      const known = byHost(host)
      if (known !== undefined)
        throw new GatewayError('ngsi-ld.already-exists', `${known.host} is registered already`, { host })
      const key = randomBytes(12).toString('hex')
      // Number 1 is reserved for the gateway's own broker.
      const last = (sql.last.get() as number | null) ?? ownBroker
      if (origin !== 'own') given = Math.max(given, last) + 1
      const b = origin === 'own' ? ownBroker : given
      sql.add.run(b, key, host, origin, 'new', now(), JSON.stringify(facts))
      database.commit()
      return get(b)!
    },

    /** Changes the given members. `facts` is replaced as a whole. */
    set(b: number, change: BrokerChange): void {
      const row = get(b)
      if (row === undefined) return
      const next = { ...row, ...change }
      const since = next.state === row.state ? row.since : now()
      const load = next.load === null ? null : JSON.stringify(next.load)
      sql.set.run(next.host, next.state, since, next.position, load, JSON.stringify(next.facts), b)
      database.commit()
    },

    /** Deletes a broker's row. Its entries must be deleted first: `catalogue.removeAll`. */
    remove(b: number): void {
      sql.forgetTally.run(b)
      sql.remove.run(b)
      database.commit()
    },

    /** Writes rows back into an emptied index. */
    restore(rows: readonly BrokerRow[]): void {
      sql = prepareBrokerStatements(database)
      for (const { b, key, host, origin, state, facts } of rows) {
        // A broker being removed has no entries to read again.
        const next = state === 'leaving' ? state : 'new'
        sql.add.run(b, key, host, origin, next, now(), JSON.stringify(facts))
      }
      database.commit()
    },
  })
}

const rowOf = (row: StoredRow): BrokerRow => ({
  ...row,
  origin: row.origin as BrokerOrigin,
  state: row.state as BrokerState,
  load: row.load === null ? null : (JSON.parse(row.load) as LoadProgress),
  facts: JSON.parse(row.facts) as BrokerRow['facts'],
})
