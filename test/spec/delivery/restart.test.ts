/**
 * Deliveries after a stop or a crash: an orderly stop settles all successful ones. After SIGKILL, the next
 * start sends exactly the unsettled ones again, in order and without new traffic.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { calmTime } from '#test/kit/calm-time.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { createNotifiedOrder } from '#test/kit/notified-order.ts'
import { type Outbox, openOutbox } from '#test/kit/outbox.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { expectEachOnceInOrder, expectInOrder, notified } from './judge.ts'

describe('a dispatcher that stops', () => {
  let database: TemporaryDatabase
  let receiver: Receiver
  let outbox: Outbox | undefined

  const program = new URL('./sender-process.ts', import.meta.url).pathname
  /** Runs a sending process with a failpoint armed, and returns how it ended. */
  async function sends(count: number, failpoint: string, ofBatch = 0): Promise<number | string | null> {
    const args = [program, database.file, receiver.url(), String(count), String(ofBatch)]
    const child = spawn(process.execPath, args, {
      env: { ...process.env, SELVEDGE_FAILPOINTS: failpoint },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
    return signal ?? code
  }
  const pending = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      endpoint: receiver.url(),
      entity: `urn:e:${i % 7}`,
      value: i,
    }))

  beforeEach(async () => {
    database = temporaryDatabase()
    receiver = await createReceiver()
  })
  afterEach(async () => {
    await outbox?.close()
    outbox = undefined
    await receiver.down()
    database.remove()
  })

  it.each([
    ['delivery:after-send', 400],
    ['delivery:before-settle', 400],
    ['writer:after-commit', 400],
  ])('by SIGKILL at %s sends exactly the unsettled deliveries again', async (failpoint, count) => {
    expect(await sends(count, `${failpoint}=kill`)).toBe('SIGKILL')
    const before = receiver.received.length
    outbox = await openOutbox(database.file)
    const unsettled = outbox.database.prepare<[], { d: number }>('SELECT d FROM delivery ORDER BY d').all()
    expect(unsettled).toHaveLength(count)
    await vi.waitFor(() => expect(receiver.received.length - before).toBe(count))
    const after = receiver.received.slice(before)
    expectEachOnceInOrder(after, count)
    await vi.waitFor(() => expect(outbox?.rows()).toBe(0))
  })

  it('by SIGKILL at the second settlement sends again only what the first did not settle', async () => {
    expect(await sends(600, 'delivery:before-settle=kill(2)')).toBe('SIGKILL')
    const before = receiver.received.length
    outbox = await openOutbox(database.file)
    const unsettled = outbox.database.prepare<[], { d: number }>('SELECT d FROM delivery ORDER BY d').all()
    expect(unsettled.length).toBeLessThan(600)
    await vi.waitFor(() => expect(outbox?.dispatcher.stats()).toEqual([]))
    const again = receiver.received.slice(before).map((one) => notified(one).d)
    expect(again.sort((a, b) => a - b)).toEqual(unsettled.map(({ d }) => d))
  })

  it('by SIGKILL may repeat entities of batches in other requests, in order per entity', async () => {
    let ends = 0
    const order = createNotifiedOrder<number>({ isBack: (last, value) => value < last, ends: () => ends })
    const seen: { readonly entities: string; readonly values: readonly number[] }[] = []
    const wrong: string[] = []
    receiver.answer((one) => {
      const { entity, value, entities = [entity], values = [value] } = notified(one)
      seen.push({ entities: entities.join(), values })
      for (const [i, each] of entities.entries())
        if (order.take(each, values[i]!) !== undefined) wrong.push(`${each}: ${values[i]}`)
      return 204
    })
    expect(await sends(600, 'delivery:before-settle=kill(2)', 10)).toBe('SIGKILL')
    const before = seen.splice(0)
    ends++
    // Up to three instead of four, because different entities share a request than before.
    outbox = await openOutbox(database.file, { sharing: 3 })
    await vi.waitFor(() => expect(outbox?.dispatcher.stats()).toEqual([]))
    expect(wrong).toEqual([])
    const valuesOf = (some: typeof seen): number[] => some.flatMap(({ values }) => values)
    const again = valuesOf(before).filter((value) => valuesOf(seen).includes(value))
    expect(again.length).toBeGreaterThan(0)
    expect(Math.max(...before.map(({ values }) => values.length))).toBe(4)
    const last = new Set([...valuesOf(before), ...valuesOf(seen)])
    expect(Array.from({ length: last.size }, (_, i) => i).filter((value) => !last.has(value))).toEqual([])
  })

  it('settles a second later after the disk rejected the settlement', async () => {
    expect(await sends(300, 'delivery:before-settle=throw(1)')).toBe(0)
    expectEachOnceInOrder(receiver.received, 300)
  })

  it('in order has settled all successful deliveries, and the next start repeats none', async () => {
    outbox = await openOutbox(database.file)
    await outbox.enqueue(pending(100))
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(100))
    await outbox.close()
    outbox = await openOutbox(database.file)
    expect(outbox.rows()).toBe(0)
    expect(receiver.received).toHaveLength(100)
    expect(outbox.reads.last()).toBe(0)
  })

  it('in the middle of a backlog keeps the rest for the next start', async () => {
    outbox = await openOutbox(database.file)
    await outbox.enqueue(pending(2000))
    await vi.waitFor(() => expect(receiver.taken().length).toBeGreaterThan(20), { interval: 5 })
    await outbox.close()
    const first = receiver.taken().length
    expect(first).toBeLessThan(2000)
    outbox = await openOutbox(database.file)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(2000))
    expectEachOnceInOrder(receiver.taken(), 2000)
  })

  it('in order waits neither for a hanging endpoint nor for one that is down', async () => {
    const down = await createReceiver()
    await down.down()
    receiver.answer(() => 'hang')
    outbox = await openOutbox(database.file)
    await outbox.enqueue([...pending(50), { endpoint: down.url(), entity: 'urn:e' }])
    await vi.waitFor(() => expect(receiver.received).toHaveLength(7))
    const passed = calmTime()
    await outbox.close()
    // A request without a response times out after 10 s.
    expect(passed()).toBeLessThan(8000)
    outbox = await openOutbox(database.file)
    expect(outbox.rows()).toBe(51)
    receiver.answer(() => 200)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(50))
    expectInOrder(receiver.received)
    expect(receiver.received.map((one) => notified(one).value)).toContain(49)
  })
})
