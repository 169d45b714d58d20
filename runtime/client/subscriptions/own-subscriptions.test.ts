/**
 * A component's subscriptions at its own broker, while the broker answers and while it does not. No
 * subscription is created twice or without the component knowing it.
 */
import { expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerPort } from '#contract'
import { createOwnSubscriptions, type SubscriptionIds } from './own-subscriptions.ts'

const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
const watches = ['a', 'b', 'c', 'd', 'e', 'f'].map((purpose) => ({
  purpose,
  type: `urn:type:${purpose}`,
  attributes: [],
  description: purpose,
}))

/** The subscriptions of a fake broker, and the answers that it was configured to give. */
function begin() {
  const there = new Map<string, string>()
  let ids: SubscriptionIds = {}
  const configured: { get?: number; afterPost?: () => void } = {}
  const exchange: BrokerPort['exchange'] = async ({ method, path, body }) => {
    const id = path.split('/').at(-1)!
    const answer = (status: number, text = '') => ({ status, text, headers: {} })
    if (method === 'POST') {
      there.set((JSON.parse(String(body)) as { id: string }).id, String(body))
      configured.afterPost?.()
      return answer(201)
    }
    if (configured.get !== undefined) return answer(configured.get)
    const found = there.get(id)
    return found === undefined ? answer(404) : answer(200, found)
  }
  const broker = { address: 'http://127.0.0.1:1', exchange } as BrokerPort
  const signal = new AbortController().signal
  const subscriptions = createOwnSubscriptions({
    broker,
    plugin: 'indexing',
    watches,
    idPrefix: 'indexing:',
    callback: (purpose) => `http://127.0.0.1:1/${purpose}`,
    ids: () => ids,
    saveIds(given) {
      ids = given
    },
    log,
    signal,
  })
  return { there, configured, known: () => Object.values(ids), subscriptions }
}

it('counts only a 404 as a missing subscription', async () => {
  const { there, configured, known, subscriptions } = begin()
  await subscriptions.check()
  const made = known()
  expect([...there.keys()].toSorted((a, b) => a.localeCompare(b))).toEqual(
    made.toSorted((a, b) => a.localeCompare(b)),
  )
  expect(made).toHaveLength(6)
  for (const status of [503, 504, 500]) {
    configured.get = status
    await subscriptions.check()
    expect([there.size, known(), subscriptions.failures().length]).toEqual([6, made, 6])
  }
  delete configured.get
  there.delete(made[0]!)
  await subscriptions.check()
  expect([there.size, known().slice(1), subscriptions.failures()]).toEqual([6, made.slice(1), []])
})

it('stores each id as soon as its subscription is created', async () => {
  const { there, configured, known, subscriptions } = begin()
  configured.afterPost = () => expect(known()).toHaveLength(there.size)
  await subscriptions.check()
  expect([there.size, subscriptions.failures()]).toEqual([6, []])
})
