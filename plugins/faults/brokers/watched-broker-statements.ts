/**
 * The row of the watched broker: its address, the secret of its callbacks, and the ids of subscriptions
 * there.
 */
import { randomBytes } from 'node:crypto'
import type { FormerBroker } from '#client/requests/chosen-broker.ts'
import type { SubscriptionIds } from '#client/subscriptions/own-subscriptions.ts'
import type { PluginDatabase } from '#contract'

/** Migration steps. */
export const brokerTables = [
  `CREATE TABLE broker (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  subscriptions TEXT NOT NULL
);`,
  `DROP TABLE broker;
  CREATE TABLE watched_broker (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    address TEXT NOT NULL,
    secret TEXT NOT NULL,
    subscriptions TEXT NOT NULL
  );`,
]

export interface SubscriptionFacts {
  readonly ids: () => SubscriptionIds
  readonly saveIds: (ids: SubscriptionIds) => void
  /** Signs the addresses of callbacks. */
  readonly secret: () => string
  /** The broker that was watched before, if it was another one. */
  readonly former: FormerBroker | undefined
}

interface BrokerRow {
  readonly address: string
  readonly secret: string
  readonly subscriptions: string
}

/** Reads the row. If it is of another broker, everything known of that one is deleted. */
export function openSubscriptionFacts(database: PluginDatabase, address: string): SubscriptionFacts {
  const put = database.prepare('INSERT OR REPLACE INTO watched_broker VALUES (1, ?, ?, ?)')
  const get = database.prepare('SELECT address, secret, subscriptions FROM watched_broker')
  const clear = [
    'DELETE FROM stream_saves',
    'DELETE FROM cursor',
    "UPDATE replacements SET wish = 'unwanted'",
  ].map((statement) => database.prepare(statement))
  const stored = get.get() as BrokerRow | undefined
  if (stored?.address !== address)
    database.transaction(() => {
      if (stored !== undefined) for (const statement of clear) statement.run()
      put.run(address, randomBytes(24).toString('hex'), '{}')
    })()
  const { secret, subscriptions } = get.get() as BrokerRow
  let ids = JSON.parse(subscriptions) as SubscriptionIds
  const isOther = stored !== undefined && stored.address !== address
  return Object.freeze({
    ids: () => ids,
    saveIds(given) {
      ids = given
      put.run(address, secret, JSON.stringify(given))
    },
    secret: () => secret,
    former: isOther
      ? {
          address: stored.address,
          subscriptions: Object.values(JSON.parse(stored.subscriptions) as SubscriptionIds),
        }
      : undefined,
  } satisfies SubscriptionFacts)
}
