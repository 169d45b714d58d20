/**
 * Unreachable endpoints: nothing is lost, nothing waits for new traffic, memory stays bounded, and deleting
 * or redirecting a subscription takes effect at once.
 */
import { queryObjects } from 'node:v8'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { type Outbox, openOutbox } from '#test/kit/outbox.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { expectEachOnceInOrder, notified } from './judge.ts'

describe('notifications to an endpoint that is down', () => {
  let database: TemporaryDatabase
  let outbox: Outbox
  let receiver: Receiver

  const pending = (count: number, first = 0) =>
    Array.from({ length: count }, (_, i) => ({
      endpoint: receiver.url(),
      entity: `urn:e:${(first + i) % 7}`,
      value: first + i,
    }))
  const isDown = () => vi.waitFor(() => expect(outbox.dispatcher.stats()[0]?.state).toBe('down'))

  beforeEach(async () => {
    database = temporaryDatabase()
    receiver = await createReceiver()
    outbox = await openOutbox(database.file)
  })
  afterEach(async () => {
    await outbox.close()
    await receiver.down()
    database.remove()
  })

  it('take no functions, maps or sets for each of their endpoints', async () => {
    await receiver.down()
    const count = () =>
      [Function, Map, Set].map((kind) => queryObjects(kind, { format: 'count' }) as unknown as number)
    await outbox.enqueue(pending(1))
    await isDown()
    const before = count()
    const endpoints = 300
    await outbox.enqueue(
      Array.from({ length: endpoints }, (_, i) => ({
        endpoint: receiver.url(`/${i}`),
        entity: 'urn:e',
        value: i,
      })),
    )
    const isAllDown = () =>
      outbox.dispatcher.stats().filter(({ state, held }) => state === 'down' && held === 0).length > endpoints
    await vi.waitFor(() => expect(isAllDown()).toBe(true))
    const added = count().map((now, kind) => now - before[kind]!)
    expect(Math.max(...added)).toBeLessThan(endpoints / 2)
  })
  it('all arrive in order, within two seconds of its recovery, without new traffic', async () => {
    await receiver.down()
    for (let group = 0; group < 10; group++) await outbox.enqueue(pending(70, group * 70))
    await isDown()
    const [status] = outbox.dispatcher.stats()
    expect(status).toMatchObject({
      waiting: 700,
      inFlight: 0,
      lastError: expect.stringContaining('ECONNREFUSED'),
    })
    expect(status!.held).toBeLessThanOrEqual(limits.deliveriesInFlightMax.value)
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(receiver.received).toHaveLength(0)
    expect(outbox.metrics.expose()).toContain('selvedge_deliveries_waiting 700')

    await receiver.up()
    const passed = calmTime()
    await vi.waitFor(() => expect(receiver.received).not.toHaveLength(0))
    expect(passed()).toBeLessThan(2000)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(700))
    expectEachOnceInOrder(receiver.taken(), 700)
    expect(outbox.logged.filter((line) => line.includes('delivery.endpoint-down'))).toHaveLength(1)
    expect(outbox.logged.filter((line) => line.includes('delivery.endpoint-up'))).toHaveLength(1)
    expect(outbox.outcomes.filter(({ outcome }) => !outcome.ok).length).toBeLessThanOrEqual(
      limits.deliveriesInFlightMax.value,
    )
  })

  it('survive repeated outages', async () => {
    for (let round = 0; round < 3; round++) {
      await outbox.enqueue(pending(200, round * 400))
      await receiver.down()
      await outbox.enqueue(pending(200, round * 400 + 200))
      await receiver.up()
    }
    await vi.waitFor(() => expect(outbox.dispatcher.stats()).toEqual([]))
    expect(new Set(receiver.received.map((one) => notified(one).d)).size).toBe(1200)
  })

  it('wait in the table, with no more than the window in memory', async () => {
    await receiver.down()
    for (let group = 0; group < 20; group++) await outbox.enqueue(pending(500, group * 500))
    await isDown()
    let mostHeld = 0
    receiver.answer(() => {
      mostHeld = Math.max(mostHeld, outbox.dispatcher.stats()[0]?.held ?? 0)
      return 200
    })
    await receiver.up()
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(10_000), { interval: 100 })
    expectEachOnceInOrder(receiver.taken(), 10_000)
    expect(mostHeld).toBeGreaterThan(limits.deliveriesInFlightMax.value)
    expect(mostHeld).toBeLessThanOrEqual(limits.deliveriesWindow.value)
  })

  it('are dropped beyond the ceiling, oldest first, and counted by subscription', async () => {
    await outbox.close()
    outbox = await openOutbox(database.file, { deliveriesPerEndpointMax: 100 })
    await receiver.down()
    await outbox.enqueue(pending(60).map((one) => ({ ...one, sub: 5 })))
    await isDown()
    for (let group = 0; group < 10; group++) await outbox.enqueue(pending(20, 60 + group * 20))
    expect(outbox.dispatcher.stats()[0]).toMatchObject({ waiting: 100 })
    expect([...outbox.dropped]).toEqual([
      [5, 60],
      [1, 100],
    ])
    expect(outbox.metrics.expose()).toContain('selvedge_deliveries_dropped_total 160')
    await receiver.up()
    await vi.waitFor(() => expect(outbox.dispatcher.stats()).toEqual([]))
    expect(
      receiver
        .taken()
        .map((one) => notified(one).value)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 100 }, (_, i) => 160 + i))
    await vi.waitFor(() => expect(outbox.rows()).toBe(0))
  })

  it('are deleted with their subscription, and probing stops', async () => {
    await receiver.down()
    await outbox.enqueue(pending(50))
    await isDown()
    await outbox.door.commit((stage) => {
      stage.write('delivery.forget', receiver.url(), 1)
      stage.published(() => outbox.dispatcher.reread(receiver.url()))
    })
    await vi.waitFor(() => expect(outbox.dispatcher.stats()).toEqual([]))
    await receiver.up()
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(receiver.connections()).toBe(0)
  })

  it('follow their subscription to a new endpoint, in order', async () => {
    const other = await createReceiver()
    await receiver.down()
    await outbox.enqueue(pending(300))
    await outbox.enqueue(pending(10).map((one) => ({ ...one, sub: 2 })))
    await isDown()
    await outbox.door.commit((stage) => {
      stage.write('delivery.redirect', other.url(), receiver.url(), 1)
      stage.published(() => {
        outbox.dispatcher.reread(receiver.url())
        outbox.dispatcher.reread(other.url())
      })
    })
    await vi.waitFor(() => expect(other.taken()).toHaveLength(300))
    expectEachOnceInOrder(other.taken(), 300)
    await vi.waitFor(() =>
      expect(outbox.dispatcher.stats()).toMatchObject([{ endpoint: receiver.url(), waiting: 10 }]),
    )
    await other.down()
  })
})
