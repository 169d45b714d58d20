/**
 * A failed registration leaves nothing behind: no entities that the broker notified before the failure, and no
 * subscriptions at the broker. Registrations are limited.
 */
import { afterAll, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer, BrokerRequest } from '#contract'
import { createBrokers } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createRemotes } from './remote-brokers.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

const sensors = sentItemsOf([{ id: 'urn:s:1', type: 'http://www.w3.org/ns/sosa/Sensor' }], 0)

/**
 * A broker that accepts one subscription and notifies at once; then it rejects the others and does not answer
 * `lost` deletions.
 */
function open(lost = 0) {
  const brokers = createBrokers(database, Date.now)
  const catalogue = createCatalogue(database, systemClock.monotonic)
  const there = new Set<string>()
  let requests = 0
  async function exchange(request: BrokerRequest): Promise<BrokerAnswer> {
    const answer = (status: number): BrokerAnswer => ({ status, text: '[]', headers: {} })
    if (request.method === 'DELETE') {
      if (lost-- > 0) return { failure: 'unreachable', reason: 'no answer' }
      return answer(there.delete(decodeURIComponent(request.path.split('/').at(-1)!)) ? 204 : 404)
    }
    if (request.method !== 'POST') return answer(200)
    if (requests++ > 0) return answer(403)
    const { id, notification } = JSON.parse(String(request.body)) as {
      id: string
      notification: { endpoint: { uri: string } }
    }
    there.add(id)
    const [key, sign] = notification.endpoint.uri.split('/').at(-1)!.split('.') as [string, string]
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
  return { brokers, catalogue, remotes, there, requests: () => requests }
}

it.each([
  ['accepts only one of the subscriptions', 0],
  ['does not answer the first deletion of a subscription either', 1],
])('leaves nothing at a broker, nor of it, that %s', async (_what, lost) => {
  const { brokers, catalogue, remotes, there, requests } = open(lost)
  await expect(remotes.register('http://there')).rejects.toMatchObject({ code: 'peer.refused' })
  expect(requests()).toBeGreaterThan(1)
  expect(catalogue.entity('urn:s:1')).toBeUndefined()
  expect(remotes.all()).toEqual([])
  await expect.poll(() => [...there]).toEqual([])
  await expect.poll(() => brokers.all()).toEqual([])
})

it('registers as many brokers besides its own as the limit permits, and no more', async () => {
  const { brokers, remotes } = open()
  setLimit('indexBrokersMax', 2)
  brokers.add('http://own', 'own')
  brokers.add('http://first', 'registered')
  await expect(remotes.register('http://second')).rejects.toMatchObject({ code: 'peer.refused' })
  brokers.add('http://second', 'registered')
  const reason = {
    code: 'ngsi-ld.bad-request-data',
    message: 'host: no more than 2 brokers can be registered',
  }
  await expect(remotes.register('http://third')).rejects.toMatchObject(reason)
})
