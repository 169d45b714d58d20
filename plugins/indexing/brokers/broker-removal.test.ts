/** Brokers are removed one at a time. A slow removal does not affect a broker registered in the meantime. */
import { afterAll, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer } from '#contract'
import { type BrokerRow, createBrokers } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { sentItemsOf } from '#plugins/indexing/entries/sent-entities.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createRemovals } from './broker-removal.ts'
import { createReach } from './reach.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

const brokers = createBrokers(database, Date.now)
const catalogue = createCatalogue(database, systemClock.monotonic)
/** A notification of a broker with one sensor. */
const sensorOf = (n: number) => ({
  changed: sentItemsOf([{ id: `urn:s:${n}`, type: 'http://www.w3.org/ns/sosa/Sensor' }], 0).entities,
})

/** Processes all removals over such a port. @param failed receives errors of failed removals. */
function begin(open: (address: string) => object, failed: (error: unknown) => void): Promise<void> {
  const { signal } = new AbortController()
  const host = {
    settings: { brokers: [], pagesPerSecond: 1 },
    remote: ({ url }: { url: string }) => open(url),
    addresses: () => ['http://here'],
    signal,
    clock: systemClock,
  }
  const run = createRemovals({
    brokers,
    catalogue,
    clock: systemClock,
    signal,
    reach: createReach(host as never),
    log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
    reportError: () => failed,
  })
  return run()
}

/** A broker whose removal began this many ms ago and that has one of our subscriptions. */
function leaving(address: string, ms: number): BrokerRow {
  const facts = { secret: 'x', subscriptions: { stream: 'urn:x' }, leftAt: Date.now() - ms }
  const row = brokers.add(address, 'registered', facts)
  brokers.set(row.b, { state: 'leaving' })
  return row
}

it('keeps the entities of a broker registered again while another one is being removed', async () => {
  const away = Promise.withResolvers<BrokerAnswer>()
  const requested = Promise.withResolvers<void>()
  const [, second] = ['http://first', 'http://second'].map((address) => leaving(address, 0))
  const processed = begin(
    (address) => ({
      address,
      exchange: () => {
        requested.resolve()
        return away.promise
      },
      close: () => undefined,
    }),
    (error) => {
      throw error
    },
  )
  await requested.promise
  // Registered again, as the registrar does it.
  brokers.remove(second!.b)
  const { b } = brokers.add('http://second', 'registered', { secret: 'y' })
  await catalogue.take(b, sensorOf(1))
  away.resolve({ failure: 'unreachable', reason: 'it is away' })
  await processed
  expect(catalogue.countsOf(b)['sensor']).toBe(1)
})

it('a late removal does not affect a new broker at the same address', async () => {
  const before = brokers.add('http://third', 'registered')
  await catalogue.take(before.b, sensorOf(2))
  const removing = catalogue.removeAll(before.b)
  brokers.remove(before.b)
  const { b } = brokers.add('http://third', 'registered')
  await catalogue.take(b, sensorOf(3))
  await removing
  expect(catalogue.countsOf(b)['sensor']).toBe(1)
})

it('gives up a removal after the time limit also when credentials cannot be read', async () => {
  const [now, old] = [leaving('http://now', 0), leaving('http://old', limits.indexLeavingMs.value)]
  const errors: unknown[] = []
  const unreadable = (): never => {
    throw new TypeError('no such file')
  }
  await begin(unreadable, (error) => errors.push(error))
  expect([brokers.get(now.b)?.state, brokers.get(old.b)]).toEqual(['leaving', undefined])
  expect(errors.map(String)).toContain('TypeError: no such file')
})
