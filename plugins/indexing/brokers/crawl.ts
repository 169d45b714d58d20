/**
 * Reads one registered broker in full into the index. Marks each entity that the broker returns. Requests the
 * unmarked ones by id, then deletes those that are still missing. A notification received after a page was
 * requested is newer than the page and wins.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import { type BrokerPage, readAll, readByIds } from '#client/requests/broker-reading.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import type { Brokers, LoadProgress } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import type { BrokerEntity } from '#plugins/indexing/entries/entries.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'

export interface CrawlPorts {
  readonly b: number
  readonly client: BrokerClient
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly clock: Clock
  /** Runs the index writes of one broker one after the other. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Whether a notification about an entity arrived since this time, monotonic ms. */
  readonly isNotifiedSince: (id: string, at: number) => boolean
}

/** Differences that a full read found and notifications had not reported. */
export interface Crawled {
  readonly began: string
  readonly ended: string
  readonly read: number
  readonly added: number
  readonly changed: number
  readonly removed: number
  readonly unreadable: number
}

export async function crawl(
  ports: CrawlPorts,
): Promise<{ readonly crawled: Crawled } | { readonly trouble: RequestTrouble }> {
  const { b, client, brokers, catalogue, clock, inTurn } = ports
  const began = clock.now()
  const sums = { read: 0, added: 0, changed: 0, removed: 0, unreadable: 0 }
  let total: number | undefined
  const progress = (): LoadProgress => ({ at: '', read: sums.read, total: total ?? null, since: began })

  async function take({ items, requestedAt }: Omit<BrokerPage, 'total'>): Promise<void> {
    const entities: BrokerEntity[] = []
    for (let at = 0; at < items.length; at += limits.indexSlice.value) {
      const some = sentItemsOf(items.slice(at, at + limits.indexSlice.value), clock.now())
      entities.push(...some.entities)
      sums.unreadable += some.unreadable.length
      await nextTurn()
    }
    sums.read += items.length
    await inTurn(async () => {
      const changed = entities.filter(({ id }) => !ports.isNotifiedSince(id, requestedAt))
      const difference = await catalogue.take(b, { changed })
      sums.added += difference.added
      sums.changed += difference.changed
      sums.removed += difference.removed
    })
    brokers.set(b, { load: progress() })
  }

  /** Requests entities that no page contained: pages shift while entities are added or deleted. */
  async function lookForMissing(types: readonly string[]): Promise<RequestTrouble | undefined> {
    for (let behind = 0; ; ) {
      const missing = catalogue.unmarked(b, behind, limits.clientIdsPerRequest.value)
      if (missing.length === 0) return undefined
      behind = missing.at(-1)!.n
      const requestedAt = clock.monotonic()
      const found = await readByIds(
        missing.map(({ id }) => id),
        types,
        client,
      )
      if ('trouble' in found) return found.trouble
      await take({ items: found.value, requestedAt })
    }
  }

  const types = [...indexedTypes]
  await inTurn(async () => catalogue.beginLoad(b))
  brokers.set(b, { state: 'loading', load: progress() })
  const trouble =
    (await readAll(types, { client, monotonic: clock.monotonic }, async (page) => {
      if (page.total !== undefined) total = (total ?? 0) + page.total
      await take(page)
    })) ?? (await lookForMissing(types))
  if (trouble !== undefined) {
    brokers.set(b, { load: null })
    return { trouble }
  }
  sums.removed += await inTurn(() => catalogue.endLoad(b))
  brokers.set(b, { load: null })
  const crawled = { began: iso(began), ended: iso(clock.now()), ...sums }
  return { crawled }
}

const iso = (ms: number): string => new Date(ms).toISOString()
