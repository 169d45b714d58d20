/**
 * Brokers that leave are looked after one by one; one of them that is away for long takes nothing from one that came meanwhile.
 */
import { afterAll, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer } from '#contract'
import { itemsOf } from '#plugins/indexing/entries/broker-messages.ts'
import { type BrokerRow, createBrokers } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createLeaving } from './broker-removal.ts'
import { createReach } from './reach.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

const brokers = createBrokers(database, Date.now)
const catalogue = createCatalogue(database, systemClock.monotonic)
/** What a broker tells: one sensor. */
const told = (n: number) => ({
  changed: itemsOf([{ id: `urn:s:${n}`, type: 'http://www.w3.org/ns/sosa/Sensor' }], 0).entities,
})

/** Looks after all that leave, each reached by such a port. @param failed takes what is told of failures. */
function begin(open: (address: string) => object, failed: (error: unknown) => void): Promise<void> {
  const { signal } = new AbortController()
  const host = {
    settings: { brokers: [], pagesPerSecond: 1 },
    remote: ({ url }: { url: string }) => open(url),
    addresses: () => ['http://here'],
    ...{ signal, clock: systemClock },
  }
  const look = createLeaving({
    ...{ brokers, catalogue, clock: systemClock, signal },
    reach: createReach(host as never),
    log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
    tell: () => failed,
  })
  return look()
}

/** A broker that left so long ago, ms, and has a subscription of ours. */
function leaving(address: string, ms: number): BrokerRow {
  const facts = { secret: 'x', subscriptions: { stream: 'urn:x' }, leftAt: Date.now() - ms }
  const row = brokers.add(address, 'registered', facts)
  brokers.set(row.b, { state: 'leaving' })
  return row
}

it('a broker that came back keeps what it told, whoever else leaves meanwhile', async () => {
  const away = Promise.withResolvers<BrokerAnswer>()
  const asked = Promise.withResolvers<void>()
  const [, second] = ['http://first', 'http://second'].map((address) => leaving(address, 0))
  const looked = begin(
    (address) => ({
      address,
      exchange: () => {
        asked.resolve()
        return away.promise
      },
      close: () => undefined,
    }),
    (error) => {
      throw error
    },
  )
  await asked.promise
  // Registered again, as the registrar takes it over.
  brokers.remove(second!.b)
  const { b } = brokers.add('http://second', 'registered', { secret: 'y' })
  await catalogue.take(b, told(1))
  away.resolve({ failure: 'unreachable', reason: 'it is away' })
  await looked
  expect(catalogue.countsOf(b)['sensor']).toBe(1)
})

it('what is still removed of one that is gone touches no other', async () => {
  const before = brokers.add('http://third', 'registered')
  await catalogue.take(before.b, told(2))
  const removing = catalogue.removeAll(before.b)
  brokers.remove(before.b)
  const { b } = brokers.add('http://third', 'registered')
  await catalogue.take(b, told(3))
  await removing
  expect(catalogue.countsOf(b)['sensor']).toBe(1)
})

it('one whose credentials cannot be read is given up in time, too', async () => {
  const [now, old] = [leaving('http://now', 0), leaving('http://old', limits.indexLeavingMs.value)]
  const errors: unknown[] = []
  const unreadable = (): never => {
    throw new TypeError('no such file')
  }
  await begin(unreadable, (error) => errors.push(error))
  expect([brokers.get(now.b)?.state, brokers.get(old.b)]).toEqual(['leaving', undefined])
  expect(errors.map(String)).toContain('TypeError: no such file')
})
