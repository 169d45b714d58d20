/**
 * A registered broker is followed again after write errors of the index's file. Its notifications are ordered
 * by its own clock, which may be set back.
 */
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { type Clock, systemClock } from '#base/time/clock.ts'
import { createBrokerClient } from '#client/requests/broker-requests.ts'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { createBrokers } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createRemote } from './followed-broker.ts'

const sensor = 'http://www.w3.org/ns/sosa/Sensor'
const database = createPluginDatabase(tables)
afterAll(() => database.close())
afterEach(restoreLimits)

/** A broker without entities that accepts subscriptions. */
function createEmptyBroker(): BrokerPort {
  const subscriptions = new Map<string, string>()
  return {
    address: 'http://127.0.0.1:1',
    async exchange({ method, path, body }): Promise<BrokerAnswer> {
      const answer = (status: number, text: string): BrokerAnswer => ({ status, text, headers: {} })
      if (!path.includes('/subscriptions')) return answer(200, '[]')
      if (method === 'POST') {
        subscriptions.set((JSON.parse(String(body)) as { id: string }).id, String(body))
        return answer(201, '')
      }
      const known = subscriptions.get(decodeURIComponent(path.split('/').at(-1)!))
      return known === undefined ? answer(404, '{}') : answer(200, known)
    },
  }
}

function begin(clock: Clock = systemClock) {
  const brokers = createBrokers(database, Date.now)
  for (const { b } of brokers.all()) brokers.remove(b)
  const row = brokers.add('http://127.0.0.1:1', 'declared', { secret: 'x' })
  const { signal } = new AbortController()
  const { monotonic } = systemClock
  const errors: unknown[] = []
  const remote = createRemote({
    row,
    brokers,
    signal,
    clock,
    client: createBrokerClient({ port: createEmptyBroker(), signal, monotonic, paceMs: 0 }),
    catalogue: createCatalogue(database, monotonic),
    log: createLog({ level: 'error', clock: systemClock, write: (line) => errors.push(line) }),
    base: () => 'http://here',
    callback: (base, purpose) => `${base}/${purpose}`,
  })
  return { remote, brokers, row, errors }
}

it('checks the broker repeatedly while the index cannot be written', async () => {
  setLimit('followCheckMs', 20)
  const { remote, brokers, row, errors } = begin()
  const follows = (): void => expect(brokers.get(row.b)?.state).toBe('following')
  const write = (isAllowed: boolean): unknown =>
    database.prepare(`PRAGMA query_only = ${isAllowed ? 0 : 1}`).run()
  const within = { interval: 10 }
  remote.start()
  await vi.waitFor(follows, within)
  write(false)
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), within)
  write(true)
  brokers.set(row.b, { state: 'refused' })
  await vi.waitFor(follows, within)
  await remote.close()
})

it('accepts notifications again some time after the broker set its clock back', async () => {
  let monotonic = 0
  const { remote } = begin({ ...systemClock, monotonic: () => monotonic })
  const notify = async (name: string, stamp: number): Promise<unknown> => {
    const entity = { id: 'urn:s:1', type: sensor, name: { type: 'Property', value: name } }
    await remote.take(sentItemsOf([entity], 0), stamp)
    const row = database.prepare('SELECT doc FROM entry').pluck().get() as string
    return (JSON.parse(row) as typeof entity).name.value
  }
  expect(await notify('first', 1000)).toBe('first')
  expect(await notify('older', 999)).toBe('first')
  monotonic += limits.indexReorderMs.value
  expect(await notify('newer', 500)).toBe('newer')
  expect(await notify('older', 499)).toBe('newer')
  await remote.close()
})
