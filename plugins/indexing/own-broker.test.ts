/**
 * After a kill the index says how far it is behind the log, until it includes what was there when it began.
 */
import { afterAll, expect, it } from 'vitest'
import { systemClock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import { createLog } from '#base/log.ts'
import type { BrokerPort, Follower } from '#contract'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createBrokers, ownBroker } from './brokers.ts'
import { createCatalogue } from './catalogue.ts'
import { createOwnBroker } from './own-broker.ts'
import { createSeen } from './seen.ts'
import { tables } from './tables.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

it('is behind until it includes the log as it was, and when the log runs away', async () => {
  const brokers = createBrokers(database, Date.now)
  brokers.add('http://127.0.0.1:1', 'own')
  brokers.set(ownBroker, { state: 'following', position: 4 })
  let follower: Follower | undefined
  let last = 10
  const changes = {
    position: () => last,
    entities: () => [],
    entity: () => undefined,
    follow: (_from: number, given: Follower) => {
      follower = given
      return { close: () => undefined }
    },
  }
  const own = createOwnBroker({
    ...{
      changes,
      brokers,
      catalogue: createCatalogue(database, systemClock.monotonic),
      seen: createSeen(),
      clock: systemClock,
    },
    mdr: { address: 'http://127.0.0.1:1' } as BrokerPort,
    log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
    signal: new AbortController().signal,
  })
  await own.start()
  expect([own.position(), own.behind()]).toEqual([4, 6])
  const nothing = { changed: [], deleted: [], observed: [], at: 0 }
  await follower!.take({ ...nothing, through: 9 })
  expect(own.behind()).toBe(1)
  await follower!.take({ ...nothing, through: 10 })
  expect(own.behind()).toBe(0)
  last += limits.indexBehindMax.value
  expect(own.behind()).toBe(0)
  last++
  expect(own.behind()).toBe(limits.indexBehindMax.value + 1)
})
