/**
 * Endpoints that respond with errors: temporary errors are retried indefinitely, rejected deliveries become
 * dead letters after a few attempts, and neither delays other deliveries.
 */
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { type Outbox, openOutbox } from '#test/kit/outbox.ts'
import { createReceiver, type Received, type Receiver } from '#test/kit/receiver.ts'
import { expectEachOnceInOrder, expectInOrder, notified } from './judge.ts'

describe('notifications to an endpoint that responds with errors', () => {
  let database: TemporaryDatabase
  let outbox: Outbox
  let receiver: Receiver

  const pending = (count: number, entity = (i: number) => `urn:e:${i % 7}`) =>
    Array.from({ length: count }, (_, i) => ({ endpoint: receiver.url(), entity: entity(i), value: i }))
  const isOf = (entity: string) => (received: Received) => notified(received).entity === entity
  const open = async (options?: Parameters<typeof openOutbox>[1]) => {
    await outbox.close()
    outbox = await openOutbox(database.file, options)
  }

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

  it('all arrive in order after a period of 500, within two seconds of its recovery', async () => {
    receiver.answer(() => 500)
    await outbox.enqueue(pending(300))
    await new Promise((resolve) => setTimeout(resolve, 4000))
    // The first ones together, then one after each pause.
    expect(receiver.received.length).toBeGreaterThan(4)
    expect(receiver.received.length).toBeLessThan(limits.deliveriesInFlightMax.value + 12)
    expect(outbox.dispatcher.stats()[0]).toMatchObject({
      state: 'backing-off',
      waiting: 300,
      lastError: 'answered 500',
    })
    receiver.answer(() => 200)
    const passed = calmTime()
    await vi.waitFor(() => expect(receiver.taken()).not.toHaveLength(0))
    expect(passed()).toBeLessThan(2000)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(300))
    expectEachOnceInOrder(receiver.taken(), 300)
    expect(outbox.reads.deadLetters(10)).toEqual([])
  })

  it('wait as long as Retry-After asks', async () => {
    let refused: (() => number) | undefined
    receiver.answer(() => {
      if (refused !== undefined) return 200
      refused = calmTime()
      return { status: 429, headers: { 'retry-after': '2' } }
    })
    await outbox.enqueue(pending(3, () => 'urn:e'))
    await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(1), { interval: 10 })
    expect(refused?.()).toBeLessThan(2500)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(3))
    const [first, second] = receiver.received
    expect(second!.at - first!.at).toBeGreaterThan(1950)
  })

  it('are retried after 404, and never become dead letters', async () => {
    receiver.answer(() => 404)
    await outbox.enqueue(pending(1))
    await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(6))
    receiver.answer(() => 200)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(1))
    expect(outbox.reads.deadLetters(10)).toEqual([])
  })

  it('become dead letters after five responses of 400, with the reason, and later ones of the entity are sent', async () => {
    setLimit('deliveryTimeoutMs', 100_000)
    onTestFinished(restoreLimits)
    const isPoison = (received: Received) => isOf('urn:e:3')(received) && notified(received).value === 3
    receiver.answer(async (received) => {
      if (!isPoison(received)) return 200
      // The deliveries of other entities do not wait for it.
      const others = (): Received[] => receiver.taken().filter((one) => !isOf('urn:e:3')(one))
      if (receiver.received.filter(isPoison).length === 4)
        await vi.waitFor(() => expect(others()).toHaveLength(60))
      return 400
    })
    await outbox.enqueue(pending(70))
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(69))
    expect(receiver.received.filter(isPoison)).toHaveLength(5)
    expectInOrder(receiver.received)
    await vi.waitFor(() => expect(outbox.rows()).toBe(0))
    const dead = outbox.reads.deadLetters(10)
    expect(dead).toMatchObject([
      { sub: 1, entity: 'urn:e:3', reason: 'answered 400', endpoint: receiver.url() },
    ])
    expect(JSON.parse(dead[0]!.body)).toMatchObject({ value: 3 })
    expect(outbox.metrics.expose()).toContain('selvedge_deliveries_dead_total 1')
    expect(outbox.logged.join()).toContain('delivery.dead')
  })

  it('of one failing entity delay no others, and arrive in order once they succeed', async () => {
    let isHealed = false
    receiver.answer((received) => (isOf('urn:bad')(received) && !isHealed ? 500 : 200))
    await outbox.enqueue(pending(700, () => 'urn:bad'))
    await outbox.enqueue(pending(700))
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(700))
    // The receiver has the last request before the sender has its response.
    await vi.waitFor(() => expect(outbox.dispatcher.stats()[0]).toMatchObject({ waiting: 700, held: 1 }))
    isHealed = true
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(1400))
    expectEachOnceInOrder(receiver.taken(), 1400)
  })

  it('without a response time out, and the others continue', async () => {
    await open({ render: (request) => ({ ...request, timeoutMs: 1500 }) })
    let hangs = 0
    receiver.answer((received) => (isOf('urn:e:2')(received) && hangs++ < 2 ? 'hang' : 200))
    await outbox.enqueue(pending(70))
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(70))
    expectEachOnceInOrder(receiver.taken(), 70)
    expect(outbox.outcomes.map(({ outcome }) => outcome.error)).toContain('no answer within 1500 ms')
    const isHeldUp = receiver.received.map(isOf('urn:e:2'))
    const secondTry = isHeldUp.indexOf(true, isHeldUp.indexOf(true) + 1)
    expect(isHeldUp.lastIndexOf(false)).toBeLessThan(secondTry)
  })

  it('are sent again after a closed connection, unless the status was received', async () => {
    let answers = 0
    receiver.answer(() => (['reset', 'cut', 204] as const)[answers++] ?? 204)
    await outbox.enqueue(pending(3, () => 'urn:e'))
    await vi.waitFor(() => expect(outbox.dispatcher.stats()).toEqual([]))
    expect(receiver.received.map((one) => notified(one).value)).toEqual([0, 0, 1, 2])
  })

  it('observe the cooldown of the subscription', async () => {
    await open({ render: (request) => ({ ...request, cooldownMs: 1500 }) })
    let answers = 0
    receiver.answer(() => (answers++ === 0 ? 503 : 200))
    await outbox.enqueue(pending(2, () => 'urn:e'))
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(2))
    expect(receiver.received[1]!.at - receiver.received[0]!.at).toBeGreaterThan(1450)
  })

  it('that cannot be sent or rendered become dead letters at once; those of a deleted subscription are dropped', async () => {
    await open({
      render(request, { entity }) {
        if (entity === 'urn:large') return { ...request, body: 'x'.repeat(3 * 1024 * 1024) }
        if (entity === 'urn:header') return { ...request, headers: { 'X-Tenant': 'a\nb' } }
        if (entity === 'urn:gone') return undefined
        if (entity === 'urn:broken') throw new RangeError('no such stream')
        return request
      },
    })
    const entities = ['urn:large', 'urn:header', 'urn:gone', 'urn:broken', 'urn:fine']
    await outbox.enqueue(pending(5, (i) => entities[i]!))
    await vi.waitFor(() => expect(outbox.rows()).toBe(0))
    expect(receiver.taken().map((one) => notified(one).entity)).toEqual(['urn:fine'])
    const reasons = outbox.reads.deadLetters(10).map(({ entity, reason }) => `${entity} ${reason}`)
    expect(reasons.sort()).toEqual([
      'urn:broken could not be rendered: no such stream',
      expect.stringContaining('urn:header Invalid character in header content'),
      'urn:large more than 2097152 bytes',
    ])
  })

  it('store the statistics of their subscription', async () => {
    await outbox.door.commit((stage) => stage.write('subscription.insert', 1, 'urn:s', '{}', '{}'))
    await outbox.enqueue(pending(5))
    const read = outbox.database.prepare<[], { stats: string }>('SELECT stats FROM subscription WHERE i = 1')
    await vi.waitFor(() => expect(JSON.parse(read.get()!.stats)).toEqual({ sent: 5 }))
  })
})
