/**
 * Follows one registered broker: creates and checks subscriptions, reads it in full, applies notifications.
 * If a broker is unreachable or its answers are unusable, its entries remain and count as stale until the
 * next full read. A full read runs whenever notifications may have been missed.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { readSources } from '#client/requests/broker-reading.ts'
import type { RequestTrouble } from '#client/requests/broker-requests.ts'
import {
  type BrokerFollowerPorts,
  createBrokerFollower,
  type FollowedFacts,
} from '#client/subscriptions/broker-follower.ts'
import type { BrokerChange, BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import type { SentItems } from '#plugins/indexing/entries/sent-entities.ts'
import { type Crawled, crawl } from './crawl.ts'
import { watched } from './index-watches.ts'

/** Stored facts about a registered broker besides its address. */
export interface RemoteFacts extends FollowedFacts {
  readonly tenant?: string
  /** Key that signs callback URLs. */
  readonly secret: string
  readonly lastCrawl?: Crawled
  /** Keys of the brokers whose registrations name this one. */
  readonly learntFrom?: readonly string[]
  /** When its removal began, ms. */
  readonly leftAt?: number
}

export const factsOf = ({ facts }: BrokerRow): RemoteFacts => facts as unknown as RemoteFacts

export interface RemotePorts
  extends ClockAndLog,
    Pick<BrokerFollowerPorts, 'client' | 'base' | 'callback' | 'signal'> {
  readonly row: BrokerRow
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  /** Receives broker addresses found in its registrations; undefined if such brokers are not followed. */
  readonly learn?: ((addresses: readonly string[]) => void) | undefined
}

export type Remote = ReturnType<typeof createRemote>

export function createRemote(ports: RemotePorts) {
  const { client, brokers, catalogue, clock, log } = ports
  const { b, host } = ports.row
  /** Last notification per entity. Pages requested before it are older. */
  const lastNotified = new Map<string, { readonly at: number; readonly stamp: number }>()
  const counts = { notifications: 0, unreadable: 0 }
  let waiting = 0
  /** Runs index writes one after the other. */
  const inTurn = createSemaphore()

  async function read(): Promise<RequestTrouble | undefined> {
    const outcome = await crawl({ b, client, brokers, catalogue, clock, inTurn, isNotifiedSince })
    if ('trouble' in outcome) return outcome.trouble
    brokers.set(b, { facts: { ...facts(), lastCrawl: outcome.crawled } })
    log.info('indexing.read', { broker: host, ...outcome.crawled })
    ports.learn?.(await readSources([...indexedTypes], client))
    return undefined
  }

  const isNotifiedSince = (id: string, at: number): boolean =>
    (lastNotified.get(id)?.at ?? Number.NEGATIVE_INFINITY) >= at

  const facts = (): RemoteFacts => factsOf(brokers.get(b) ?? ports.row)
  const followed = createBrokerFollower({
    ...ports,
    plugin: 'indexing',
    watches: watched,
    idPrefix: 'urn:ngsi-ld:Subscription:indexing:',
    read,
    row: {
      state: () => brokers.get(b)?.state,
      facts,
      set: (change) => brokers.set(b, change as BrokerChange),
    },
    isNotified: () => counts.notifications > 0,
  })

  return Object.freeze({
    ...followed,
    b,
    /**
     * Applies a notification, unless a newer one changed the same entity. Returns false if too many are
     * queued.
     * @param stamp when the broker sent it, ms by the broker's clock.
     */
    async take({ entities, deleted, unreadable }: SentItems, stamp: number): Promise<boolean> {
      if (waiting >= limits.indexNotificationsMax.value) return false
      waiting++
      counts.notifications++
      counts.unreadable += unreadable.length
      try {
        await inTurn(async () => {
          const isNew = (id: string): boolean => {
            const last = lastNotified.get(id)
            // Past this interval an older stamp means that the broker's clock was set back.
            const isRecent = last !== undefined && clock.monotonic() - last.at < limits.indexReorderMs.value
            if (isRecent && last.stamp > stamp) return false
            if (lastNotified.size >= limits.indexNotifiedMax.value)
              lastNotified.delete(lastNotified.keys().next().value!)
            lastNotified.delete(id)
            lastNotified.set(id, { at: clock.monotonic(), stamp })
            return true
          }
          const changed = entities.filter(({ id }) => isNew(id))
          await catalogue.take(b, { changed, deleted: deleted.filter(isNew) })
        })
      } finally {
        waiting--
      }
      followed.reportHeard()
      return true
    },
    counts: () => ({ ...counts }),
    /** Stops. Resolves when no write is in progress. */
    async close(): Promise<void> {
      await followed.close()
      await inTurn(async () => undefined)
    },
  })
}
