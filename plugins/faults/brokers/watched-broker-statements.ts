/** The row of the watched broker: its address, and facts such as the ids of subscriptions. */
import type { SubscriptionIds } from '#client/own-subscriptions.ts'
import type { PluginDatabase } from '#contract'

/** Migration step. */
export const brokerTable = `CREATE TABLE broker (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  subscriptions TEXT NOT NULL
);`

export interface SubscriptionFacts {
  readonly ids: () => SubscriptionIds
  readonly saveIds: (ids: SubscriptionIds) => void
}

export function openSubscriptionFacts(database: PluginDatabase): SubscriptionFacts {
  const put = database.prepare('INSERT OR REPLACE INTO broker VALUES (1, ?)')
  const text = database.prepare('SELECT subscriptions FROM broker').pluck().get() as string | undefined
  let ids = JSON.parse(text ?? '{}') as SubscriptionIds
  return Object.freeze({
    ids: () => ids,
    saveIds(given) {
      ids = given
      put.run(JSON.stringify(given))
    },
  } satisfies SubscriptionFacts)
}
