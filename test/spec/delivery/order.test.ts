/**
 * The order of notifications: strictly sequential per subscription and entity, concurrent otherwise, and
 * independent between endpoints.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { type Outbox, openOutbox } from '#test/kit/outbox.ts'
import { createReceiver, type Received, type Receiver } from '#test/kit/receiver.ts'
import { expectEachOnceInOrder } from './judge.ts'

describe('notifications to a working endpoint', () => {
  let database: TemporaryDatabase
  let outbox: Outbox
  let receiver: Receiver

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

  it('keep the order of commits per subscription and entity under random delays', async () => {
    receiver.answer(async () => {
      await sleep(Math.random() * 15)
      return 200
    })
    for (let group = 0; group < 20; group++) {
      await outbox.enqueue(
        Array.from({ length: 20 }, (_, i) => ({
          sub: 1 + (i % 2),
          endpoint: receiver.url(),
          entity: `urn:e:${Math.floor(i / 2) % 5}`,
          value: group * 20 + i,
        })),
      )
    }
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(400))
    expectEachOnceInOrder(receiver.taken(), 400)
    expect(receiver.mostAtOnce()).toBeGreaterThan(4)
    expect(receiver.mostAtOnce()).toBeLessThanOrEqual(limits.deliveriesInFlightMax.value)
    expect(receiver.connections()).toBeLessThanOrEqual(limits.deliveriesInFlightMax.value)
    await vi.waitFor(() => expect(outbox.rows()).toBe(0))
    expect(outbox.dispatcher.stats()).toEqual([])
  })

  it('do not wait for a slow endpoint', async () => {
    const slow = await createReceiver()
    let release = (): void => undefined
    const isReleased = new Promise<void>((resolve) => {
      release = resolve
    })
    slow.answer(async () => {
      await isReleased
      return 200
    })
    const pending = (endpoint: string) =>
      Array.from({ length: 50 }, (_, i) => ({ endpoint, entity: `urn:e:${i}`, value: i }))
    await outbox.enqueue([...pending(slow.url()), ...pending(receiver.url())])
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(50))
    expect(slow.taken()).toHaveLength(0)
    expect(slow.received).toHaveLength(limits.deliveriesInFlightMax.value)
    release()
    await slow.down()
  })

  it('do not wait for a hanging path of the same host', async () => {
    receiver.answer(({ path }: Received) => (path === '/hangs' ? 'hang' : 200))
    const pending = (endpoint: string) =>
      Array.from({ length: 50 }, (_, i) => ({ endpoint, entity: `urn:e:${i}`, value: i }))
    await outbox.enqueue([...pending(receiver.url('/hangs')), ...pending(receiver.url('/takes'))])
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(50))
  })

  it('have the given headers and a length, and cannot override framing headers', async () => {
    await outbox.close()
    outbox = await openOutbox(database.file, {
      render: (request) => ({
        ...request,
        headers: { ...request.headers, Link: '<a>', 'Content-Length': '1', 'transfer-encoding': 'chunked' },
      }),
    })
    await outbox.enqueue([{ endpoint: receiver.url('/path?x=1'), entity: 'urn:e' }])
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(1))
    const [{ headers, path, body } = receiver.received[0]!] = receiver.taken()
    expect(path).toBe('/path?x=1')
    expect(headers).toMatchObject({ link: '<a>', 'content-type': 'application/json' })
    expect(headers['content-length']).toBe(String(body.length))
    expect(headers['transfer-encoding']).toBeUndefined()
    expect(headers['user-agent']).toMatch(/^selvedge\//)
  })
})
