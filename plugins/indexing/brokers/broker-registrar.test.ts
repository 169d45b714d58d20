/**
 * A failed registration leaves nothing behind, not even entities that the broker notified before the failure.
 */
import { afterAll, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer } from '#contract'
import { createBrokers } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createRemotes } from './remote-brokers.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

it('discards entities of a broker that accepts only one of the subscriptions', async () => {
  const brokers = createBrokers(database, Date.now)
  const catalogue = createCatalogue(database, systemClock.monotonic)
  const sensors = sentItemsOf([{ id: 'urn:s:1', type: 'http://www.w3.org/ns/sosa/Sensor' }], 0)
  let subscriptions = 0
  /** Sends a notification as soon as it accepts a subscription. */
  async function exchange(request: { method: string; path: string; body?: unknown }): Promise<BrokerAnswer> {
    const answer = (status: number): BrokerAnswer => ({ status, text: '[]', headers: {} })
    if (request.method !== 'POST') return answer(200)
    if (subscriptions++ > 0) return answer(403)
    const { endpoint } = (JSON.parse(String(request.body)) as { notification: { endpoint: { uri: string } } })
      .notification
    const [key, sign] = endpoint.uri.split('/').at(-1)!.split('.') as [string, string]
    await remotes.notified('stream', { key, sign }, sensors, 0)
    return answer(201)
  }
  const remotes = createRemotes({
    brokers,
    catalogue,
    reportError: () => (error) => {
      throw error
    },
    host: {
      settings: { brokers: [], pagesPerSecond: 1000, learn: false },
      remote: ({ url }: { url: string }) => ({ address: url, exchange, close: () => undefined }),
      addresses: () => ['http://here'],
      isOwn: () => false,
      signal: new AbortController().signal,
      clock: systemClock,
      log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
    } as never,
  })
  await expect(remotes.register('http://there')).rejects.toMatchObject({ code: 'peer.refused' })
  expect(subscriptions).toBeGreaterThan(1)
  expect(catalogue.entity('urn:s:1')).toBeUndefined()
  expect(brokers.all()).toEqual([])
})
