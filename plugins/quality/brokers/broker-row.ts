/**
 * The row of the broker whose streams are rated: its address, the secret of its callbacks, its state, and
 * facts such as the ids of subscriptions.
 */
import { randomBytes } from 'node:crypto'
import type { FormerBroker } from '#client/requests/chosen-broker.ts'
import type { FollowedFacts, FollowerRow } from '#client/subscriptions/broker-follower.ts'
import type { PluginDatabase } from '#contract'
import { prepareRowStatements } from './broker-statements.ts'

interface StoredBroker {
  readonly address: string
  readonly secret: string
  readonly state: string
  readonly facts: string
}

export interface CreatedFacts extends FollowedFacts {
  /** Ids of the subscriptions that people created here. */
  readonly created?: readonly string[]
}

export interface KnownBroker extends FollowerRow {
  readonly address: string
  /** Signs the addresses of callbacks. */
  readonly secret: string
  /** The broker that was served before, if it was another one. */
  readonly former: FormerBroker | undefined
}

/** Reads the row. If it is of another broker, everything known of that one is deleted. */
export function openBrokerRow(database: PluginDatabase, address: string): KnownBroker {
  const { get, put, clear } = prepareRowStatements(database)
  const stored = get.get() as StoredBroker | undefined
  if (stored?.address !== address)
    database.transaction(() => {
      for (const statement of clear) statement.run()
      put.run(address, randomBytes(24).toString('hex'), 'new', '{}')
    })()
  const { secret, state, facts } = get.get() as StoredBroker
  let current = { state, facts: JSON.parse(facts) as FollowedFacts }
  return Object.freeze({
    address,
    secret,
    former: stored === undefined || stored.address === address ? undefined : formerOf(stored),
    state: () => current.state,
    facts: () => current.facts,
    set(change) {
      const next = { ...current, ...change }
      const text = JSON.stringify(next.facts)
      // A check that found nothing new changes nothing but the time, which is not worth a write.
      const isSame = next.state === current.state && withoutTime(next.facts) === withoutTime(current.facts)
      current = next
      if (!isSame) put.run(address, secret, next.state, text)
    },
  } satisfies KnownBroker)
}

function formerOf({ address, facts }: StoredBroker): KnownBroker['former'] {
  const { subscriptions = {}, created = [] } = JSON.parse(facts) as CreatedFacts
  return { address, subscriptions: [...Object.values(subscriptions), ...created].filter((id) => id !== '') }
}

const withoutTime = ({ heardAt: _, ...facts }: FollowedFacts): string => JSON.stringify(facts)
