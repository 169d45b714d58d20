/**
 * The subscriptions of the index at its own broker, while that answers and while it does not: none is made twice, and none is
 * there that the index does not know.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerPort } from '#contract'
import { createBrokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { createPluginDatabase, type TestPluginDatabase } from '#test/kit/plugin-database.ts'
import { createOwnSubscriptions } from './own-subscriptions.ts'

const address = 'http://127.0.0.1:1/indexing'
const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })

let database: TestPluginDatabase
beforeEach(() => {
  database = createPluginDatabase(tables)
})
afterEach(() => database.close())

/** What a broker keeps of them, and what it answers instead where it is told to. */
function begin() {
  const there = new Map<string, string>()
  const brokers = createBrokers(database, Date.now)
  brokers.add('http://127.0.0.1:1', 'own')
  const told: { get?: number; afterPost?: () => void } = {}
  const exchange: BrokerPort['exchange'] = async ({ method, path, body }) => {
    const id = path.split('/').at(-1)!
    const answer = (status: number, text = '') => ({ status, text, headers: {} })
    if (method === 'POST') {
      there.set((JSON.parse(String(body)) as { id: string }).id, String(body))
      told.afterPost?.()
      return answer(201)
    }
    if (told.get !== undefined) return answer(told.get)
    const found = there.get(id)
    return found === undefined ? answer(404) : answer(200, found)
  }
  const mdr = { address: 'http://127.0.0.1:1', exchange } as BrokerPort
  const signal = new AbortController().signal
  const ports = { mdr, brokers, log, signal, addresses: () => [address] }
  const known = () => Object.values(brokers.get(ownBroker)!.facts['subscriptions'] ?? {})
  return { there, told, known, subscriptions: createOwnSubscriptions(ports), ports }
}

it('takes only what is not found for gone', async () => {
  const { there, told, known, subscriptions } = begin()
  await subscriptions.look()
  const made = known()
  expect([...there.keys()].toSorted((a, b) => a.localeCompare(b))).toEqual(
    made.toSorted((a, b) => a.localeCompare(b)),
  )
  expect(made).toHaveLength(6)
  for (const status of [503, 504, 500]) {
    told.get = status
    await subscriptions.look()
    expect([there.size, known(), subscriptions.failures().length]).toEqual([6, made, 6])
  }
  delete told.get
  there.delete(made[0] as string)
  await subscriptions.look()
  expect([there.size, known().slice(1), subscriptions.failures()]).toEqual([6, made.slice(1), []])
})

it('knows each as soon as it is made', async () => {
  const { there, told, known, subscriptions } = begin()
  told.afterPost = () => expect(known()).toHaveLength(there.size)
  await subscriptions.look()
  expect([there.size, subscriptions.failures()]).toEqual([6, []])
})
