/** The outbox and its lanes: acknowledged notifications are stored, sent in order by each lane, and bounded. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createLanePump, type LaneOutcome } from './lane-pump.ts'
import { createNotificationOutbox } from './notification-outbox.ts'
import { notificationTables, prepareNotifications } from './notification-statements.ts'

const database = createPluginDatabase([notificationTables])
const id = 'urn:subscription'
const logged: string[] = []
const given = { up: 0 }
const log = createLog({ level: 'info', clock: systemClock, write: (line) => logged.push(line) })
const open = (ceiling?: { count: number; bytes: number }, arrived: (id: string) => void = () => undefined) =>
  createNotificationOutbox(
    {
      database,
      table: prepareNotifications(database),
      arrived,
      givenUp: (count) => {
        given.up += count
      },
      log,
    },
    ceiling,
  )
const bodies = (outbox: ReturnType<typeof open>, lane = 'a') =>
  outbox.next(id, outbox.through(id, lane)!, 1000).map(({ body }) => body.toString())
const append = (outbox: ReturnType<typeof open>, ...texts: string[]) =>
  Promise.all(texts.map((text) => outbox.append(id, Buffer.from(text))))
const numbers = (outbox: ReturnType<typeof open>) => outbox.next(id, 0, 1000).map(({ n }) => n)

afterEach(() => {
  restoreLimits()
  open().remove(id)
  given.up = 0
  logged.length = 0
})

describe('the outbox', () => {
  it('has after a restart what no lane has sent, in order', async () => {
    const before = open()
    before.setLanes(id, ['a'])
    await append(before, '1', '2', '3')
    before.advance(id, 'a', numbers(before)[0]!)
    await before.close()
    const after = open()
    after.setLanes(id, ['a'])
    expect(bodies(after)).toEqual(['2', '3'])
    expect([after.waiting(), after.bytes()]).toEqual([2, 2])
  })

  it('keeps a notification until all lanes have sent it', async () => {
    const outbox = open()
    outbox.setLanes(id, ['a', 'b'])
    await append(outbox, '1', '2')
    const [first, second] = numbers(outbox)
    outbox.advance(id, 'a', second!)
    outbox.advance(id, 'b', first!)
    await outbox.close()
    const after = open()
    after.setLanes(id, ['a', 'b'])
    expect([bodies(after, 'a'), bodies(after, 'b')]).toEqual([[], ['2']])
    after.setLanes(id, ['a'])
    await after.close()
    expect(after.waiting()).toBe(0)
  })

  it('stores nothing of a subscription that ended, since no lane would send it', async () => {
    const outbox = open()
    outbox.setLanes(id, ['a'])
    const late = append(outbox, '1')
    outbox.remove(id)
    await late
    expect([outbox.waiting(), outbox.bytes(), open().waiting()]).toEqual([0, 0, 0])
  })

  it('stores one that arrives at the moment another one is stored', async () => {
    const outbox = open()
    outbox.setLanes(id, ['a'])
    await outbox.append(id, Buffer.from('1'))
    await outbox.append(id, Buffer.from('2'))
    expect(bodies(outbox)).toEqual(['1', '2'])
  })

  it('outlives a full disk, when it saves progress and when it gives notifications up', async () => {
    setLimit('orchestratorSaveSteps', 1)
    const outbox = open({ count: 4, bytes: 1000 })
    outbox.setLanes(id, ['a'])
    await append(outbox, '1', '2')
    const full = "BEFORE DELETE ON notifications BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
    database.prepare(`CREATE TEMP TRIGGER full_disk ${full}`).run()
    outbox.advance(id, 'a', numbers(outbox)[0]!)
    await append(outbox, '3', '4', '5')
    expect(logged.join('\n')).toMatch(/saving progress.*full.*giving notifications up.*full/s)
    database.prepare('DROP TRIGGER full_disk').run()
    expect(bodies(outbox)).toEqual(['2', '3', '4', '5'])
  })

  it('begins a lane that joins another one with the next notification', async () => {
    const outbox = open()
    outbox.setLanes(id, ['a'])
    await append(outbox, '1')
    outbox.setLanes(id, ['a', 'b'])
    await append(outbox, '2')
    expect([bodies(outbox, 'a'), bodies(outbox, 'b')]).toEqual([['1', '2'], ['2']])
  })

  it('gives up the oldest beyond its ceiling, counted and logged', async () => {
    const outbox = open({ count: 10, bytes: 1000 })
    outbox.setLanes(id, ['a'])
    await append(outbox, ...Array.from({ length: 10 }, (_, i) => `${i}`))
    expect(logged).toEqual([])
    await append(outbox, '10')
    expect(bodies(outbox)).toEqual(['2', '3', '4', '5', '6', '7', '8', '9', '10'])
    expect([given.up, outbox.lost(), outbox.waiting()]).toEqual([2, 2, 9])
    expect(logged).toEqual([expect.stringContaining('orchestrator.notifications-given-up')])
    await append(outbox, 'x'.repeat(991))
    expect([bodies(outbox).length, outbox.bytes()]).toEqual([0, 0])
  })

  it('does not acknowledge what the disk did not take', async () => {
    const outbox = open()
    outbox.setLanes(id, ['a'])
    const broken = vi.spyOn(database, 'flushed').mockRejectedValue(new Error('EIO'))
    await expect(append(outbox, '1')).rejects.toThrow('EIO')
    broken.mockRestore()
    await append(outbox, '2')
    expect(bodies(outbox)).toEqual(['1', '2'])
  })
})

describe('a lane', () => {
  /** What was sent, and what becomes of it. */
  function site(outcomeOf: (body: string) => LaneOutcome | undefined) {
    const sent: string[] = []
    const pending: ((outcome: LaneOutcome) => void)[] = []
    const outbox = open(undefined, (subscription) => pump.wake({ subscription, name: 'a' }))
    outbox.setLanes(id, ['a'])
    const pump = createLanePump({
      outbox,
      clock: systemClock,
      send(_, { body }, done) {
        sent.push(body.toString())
        const outcome = outcomeOf(body.toString())
        if (outcome === undefined) pending.push(done)
        else setImmediate(done, outcome)
      },
      failed: (error) => {
        throw error
      },
    })
    return { outbox, pump, sent, pending }
  }

  it('sends in order, and again from the first unconfirmed one after a loss', async () => {
    const { outbox, pump, sent, pending } = site((body) => (Number(body) < 3 ? 'confirmed' : undefined))
    await append(outbox, '1', '2')
    pump.start({ subscription: id, name: 'a' })
    await append(outbox, '3', '4')
    await expect.poll(() => sent).toEqual(['1', '2', '3', '4'])
    pump.lost()
    for (const done of pending.splice(0)) done('lost')
    await append(outbox, '5')
    expect(pump.inFlight()).toBe(0)
    pump.start({ subscription: id, name: 'a' })
    await expect.poll(() => sent).toEqual(['1', '2', '3', '4', '3', '4', '5'])
    for (const done of pending) done('confirmed')
    await outbox.close()
    expect(outbox.waiting()).toBe(0)
    pump.close()
  })

  it('whose notifications are not confirmed leaves room for others, and is reported', async () => {
    setLimit('orchestratorInFlightMax', 8)
    const other = 'urn:other'
    const texts = Array.from({ length: 20 }, (_, i) => `${i}`)
    const { outbox, pump, sent } = site((body) => (body.startsWith('x') ? 'confirmed' : undefined))
    outbox.setLanes(other, ['a'])
    await append(outbox, ...texts)
    pump.start({ subscription: id, name: 'a' })
    pump.start({ subscription: other, name: 'a' })
    await expect.poll(() => pump.inFlight()).toBe(6)
    const others = texts.map((text) => `x${text}`)
    await Promise.all(others.map((text) => outbox.append(other, Buffer.from(text))))
    await expect.poll(() => sent.filter((body) => body.startsWith('x'))).toEqual(others)
    expect([pump.late(0), pump.late(3_600_000)]).toEqual([[id], []])
    outbox.remove(other)
    restoreLimits()
    pump.close()
  })

  it('tries the rejected one alone after a pause, then continues in order', async () => {
    let isFull = true
    const { outbox, pump, sent } = site((body) => (isFull && Number(body) > 1 ? 'rejected' : 'confirmed'))
    await append(outbox, '1', '2', '3')
    pump.start({ subscription: id, name: 'a' })
    await expect.poll(() => sent.length).toBeGreaterThanOrEqual(4)
    expect(sent.slice(0, 4)).toEqual(['1', '2', '3', '2'])
    expect(pump.paused()).toEqual([id])
    isFull = false
    await expect.poll(() => sent.at(-1)).toBe('3')
    await expect.poll(() => pump.paused()).toEqual([])
    await outbox.close()
    expect(outbox.waiting()).toBe(0)
    pump.close()
  })
})
