/**
 * After a kill the index reports how far it is behind the log, until it includes the log as of its start. A
 * full read waits for free space on a full disk.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerPort, EntityState, Follower } from '#contract'
import { createBrokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { createSeen } from '#plugins/indexing/entries/seen.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createPluginDatabase, type TestPluginDatabase } from '#test/kit/plugin-database.ts'
import { createOwnBrokerIndex } from './own-broker-index.ts'

let database: TestPluginDatabase
beforeEach(() => {
  database = createPluginDatabase(tables)
})
afterEach(() => {
  database.close()
  restoreLimits()
})

/** An index that was killed at log number 4 of 10, over a broker with these entities. */
function begin(all: readonly EntityState[] = []) {
  const brokers = createBrokers(database, Date.now)
  brokers.add('http://127.0.0.1:1', 'own')
  brokers.set(ownBroker, { state: 'following', position: 4 })
  const log = { last: 10, lines: [] as string[] }
  let follower: Follower | undefined
  const changes = {
    position: () => log.last,
    lastCommitAt: () => 0,
    entities: (behind: number) => all.filter(({ rid }) => rid > behind),
    entity: () => undefined,
    follow: (_from: number, given: Follower) => {
      follower = given
      return { close: () => undefined }
    },
  }
  const own = createOwnBrokerIndex({
    changes,
    brokers,
    catalogue: createCatalogue(database, systemClock.monotonic),
    seen: createSeen(),
    clock: systemClock,
    broker: {
      address: 'http://127.0.0.1:1',
      exchange: async () => ({ failure: 'unreachable', reason: 'it has no number' }),
    } as BrokerPort,
    log: createLog({ level: 'warn', clock: systemClock, write: (line) => log.lines.push(line) }),
    signal: new AbortController().signal,
  })
  return { own, log, follower: () => follower! }
}

it('reports a backlog until it includes the log as of its start, and when the log outpaces it', async () => {
  const { own, log, follower } = begin()
  await own.start()
  expect([own.position(), own.behind()]).toEqual([4, 6])
  const nothing = { changed: [], deleted: [], observed: [], at: 0 }
  await follower().take({ ...nothing, through: 9 })
  expect(own.behind()).toBe(1)
  await follower().take({ ...nothing, through: 10 })
  expect(own.behind()).toBe(0)
  log.last += limits.indexBehindMax.value
  expect(own.behind()).toBe(0)
  log.last++
  expect(own.behind()).toBe(limits.indexBehindMax.value + 1)
})

it('a full read waits while the disk is full', async () => {
  setLimit('indexDiskRetryMs', 10)
  const entity = {
    id: 'urn:ngsi-ld:Sensor:1',
    type: 'http://www.w3.org/ns/sosa/Sensor',
    name: { type: 'Property', value: 'x'.repeat(20_000) },
  } as const
  const state: EntityState = {
    rid: 1,
    id: entity.id,
    types: [entity.type],
    entity: () => entity,
    text: () => JSON.stringify(entity),
    times: () => ({ created: 0, modified: 0, attributes: {} }),
  }
  const { own, log, follower } = begin([state])
  await own.start()
  const pages = database.bytes() / 4096
  database.prepare(`PRAGMA max_page_count = ${pages}`).all()
  const read = follower().readAnew()
  await vi.waitFor(() => expect(log.lines.join()).toContain('indexing.disk'), 10_000)
  expect(own.position()).toBeUndefined()
  database.prepare(`PRAGMA max_page_count = ${pages + 1000}`).all()
  expect([await read, own.position()]).toEqual([10, 10])
  await own.close()
})
