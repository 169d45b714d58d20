/**
 * Times stamped by a clock that was not set, on the real write path: they wait in log and memory and are
 * corrected in several commits, in history, documents and indexes. Other times stay unchanged, and restarts
 * and failures are handled.
 */
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { createBoard, floor } from '#test/kit/board.ts'
import { historyOf, immortalWriter, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'

const id = 'urn:x:1'
const day = 86_400_000

const writer = immortalWriter()
afterAll(() => writer.end())

let temporary: ReturnType<typeof temporaryFolder>
let site: ReturnType<typeof createBoard>
let clock: ReturnType<typeof site.start>
let open: OpenBroker
const restart = async (): Promise<void> => {
  await open.close()
  clock = site.start()
  open = await openBroker(temporary.folder, { clock, writer })
}
const set = (): void => {
  site.machine.wrongBy = 0
  site.machine.setAt = 1
  clock.check()
}
beforeEach(async () => {
  temporary = temporaryFolder()
  site = createBoard()
  clock = site.start()
  open = await openBroker(temporary.folder, { clock, writer })
})
afterEach(async () => {
  restoreLimits()
  await open.close()
  temporary.remove()
})

const truth: number[] = []
beforeEach(() => {
  truth.length = 0
})
/** The true time, independent of the machine. */
const trueNow = (): number => systemClock.now() + site.machine.passed
const create = (time = clock.now(), value = 0): Promise<unknown> =>
  open.main.door.commit((stage) => {
    const entity = { id, type: 'T', a: { type: 'Property', value, observedAt: msToDateTime(time) } }
    const stretch = clock.trust!.stretch()
    const isOurs = time < floor + day
    const target = stretch === undefined || !isOurs ? stage : stage.unset(stretch, new Set([time]))
    open.main.documents.create(target, entity as Entity, 'provisioning')
  })
/** Observes as the intake does, with the time of reception. */
const observe = async (value: number, time = clock.now()): Promise<void> => {
  truth.push(trueNow())
  await open.main.door.commit((stage) => {
    const stretch = clock.trust!.stretch()
    const target = stretch === undefined ? stage : stage.unset(stretch, new Set([time]))
    const draft = open.main.documents.find(target, id)!
    const stream = open.main.streams.open(target, draft, 'a', '')
    open.main.observer.observeStream(target, stream, time, value, false)
  })
  clock.pass(1000)
}
const observeAt = (time: number, value: number): Promise<unknown> =>
  open.main.door.commit((stage) => {
    const draft = open.main.documents.find(stage, id)!
    const stream = open.main.streams.open(stage, draft, 'a', '')
    open.main.observer.observeStream(stage, stream, time, value, false)
  })
const settle = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await open.main.door.commit(() => undefined)
}
const currentOf = () =>
  (open.broker.retrieve(id)!.entity() as unknown as { a: { observedAt: string; value: number } }).a
const stored = () => historyOf(open, id, 'a')
/** The observations in the log, in order. */
const logged = () => open.inside.following.after(0, 100)!.flatMap(({ what }) => ('id' in what ? [] : what))
/** Equal within the difference between the two ways to read the monotonic clock. */
const near = (times: readonly number[], wanted: readonly number[]): void => {
  expect(times).toHaveLength(wanted.length)
  for (const [i, time] of times.entries()) expect(Math.abs(time - wanted[i]!)).toBeLessThan(100)
}
const unsettled = (): number =>
  (open.main.database.prepare('SELECT count(*) AS c FROM log WHERE kind > 4').get() as { c: number }).c

/** Stores a value by a trusted clock that runs an hour ahead, and returns its time. */
const runAhead = async (): Promise<number> => {
  site.machine.wrongBy = 3_600_000
  site.machine.setAt = 1
  clock.check()
  await create()
  await observe(1)
  return Date.parse(currentOf().observedAt)
}

/** Creates the entity after a trusted clock has jumped for an unknown reason. */
const createInDoubt = async (): Promise<void> => {
  set()
  site.machine.wrongBy = 3_600_000
  clock.check()
  await open.main.door.commit((stage) => {
    const time = clock.now()
    const target = stage.unset(clock.trust!.stretch()!, new Set([time]))
    const a = { type: 'Property', value: 1, observedAt: msToDateTime(time) }
    open.main.documents.create(target, { id, type: 'T', a } as unknown as Entity, 'provisioning')
    open.main.streams.open(target, open.main.documents.find(target, id)!, 'a', '')
  })
  clock.pass(1000)
}

describe('times by a clock that was not set', () => {
  it('are corrected when it is set: history, document, current value, query results', async () => {
    truth.push(trueNow())
    await create()
    for (const value of [1, 2, 3]) await observe(value)
    expect(unsettled()).toBe(4)
    expect(stored().every(([time]) => time < floor + day)).toBe(true)
    set()
    await settle()
    expect(unsettled()).toBe(0)
    near(
      stored().map(([time]) => time),
      truth,
    )
    await observe(4)
    await open.upkeep()
    await open.upkeep()
    expect(open.main.database.prepare('SELECT count(*) AS c FROM chunk').get()).toEqual({ c: 1 })
    near(
      stored().map(([time]) => time),
      truth,
    )
    await restart()
    near(
      stored().map(([time]) => time),
      truth,
    )
    expect(currentOf().value).toBe(4)
    near([Date.parse(currentOf().observedAt)], [truth.at(-1)!])
  })

  it('wait in the log despite due upkeep, also over a restart', async () => {
    await create()
    for (const value of [1, 2, 3]) await observe(value)
    await open.upkeep(2 * limits.tailAgeMs.value)
    await open.upkeep(2 * limits.tailAgeMs.value)
    await restart()
    await open.upkeep(2 * limits.tailAgeMs.value)
    expect(open.main.database.prepare('SELECT count(*) AS c FROM chunk').get()).toEqual({ c: 0 })
    expect(unsettled()).toBe(4)
    expect(open.inside.following.isHeld()).toBe(true)
    set()
    await settle()
    expect(open.inside.following.isHeld()).toBe(false)
    near(
      stored()
        .map(([time]) => time)
        .slice(1),
      truth,
    )
  })

  it('are corrected without changing times of devices in the same stream and commit', async () => {
    const times = [Date.UTC(2026, 4, 1), Date.UTC(2026, 4, 2)]
    await create(times[0]!)
    await observe(1)
    await observeAt(times[1]!, 2)
    set()
    await settle()
    near(
      stored().map(([time]) => time),
      [...times, ...truth],
    )
    expect(
      stored()
        .map(([time]) => time)
        .slice(0, 2),
    ).toEqual(times)
  })

  it('are corrected to the past if a trusted clock had run ahead', async () => {
    const ahead = await runAhead()
    site.machine.wrongBy = -systemClock.now() + 1000
    site.machine.setAt = undefined
    await restart()
    await observe(2)
    expect(currentOf().value).toBe(2)
    set()
    await settle()
    expect(currentOf()).toMatchObject({ value: 1, observedAt: msToDateTime(ahead) })
    expect(stored().map(([, value]) => value)).toEqual([2, 0, 1])
    expect(logged()).toMatchObject([
      { value: 1, isLate: false },
      { value: 2, isLate: true },
    ])
    await restart()
    expect(currentOf()).toMatchObject({ value: 1, observedAt: msToDateTime(ahead) })
    // Until the true time has caught up, new values are of the past.
    await observe(3)
    expect(currentOf().value).toBe(1)
  })

  it('are followed by a current value if the clock returns a little behind them', async () => {
    set()
    await create()
    await observe(1)
    site.machine.wrongBy = 3_600_000
    clock.check()
    await observe(2)
    site.machine.wrongBy = -1500
    clock.check()
    expect(unsettled()).toBe(1)
    // The time of value 3 is earlier than the uncorrected time of value 2.
    await observe(3)
    await settle()
    expect(unsettled()).toBe(0)
    expect(currentOf().value).toBe(3)
    expect(stored().map(([, value]) => value)).toEqual([2, 0, 1, 3])
    expect(logged()).toMatchObject([
      { value: 1, isLate: false },
      { value: 2, isLate: true },
      { value: 3, isLate: false },
    ])
    await restart()
    expect(currentOf().value).toBe(3)
  })

  it.each([
    ['', async () => clock.check()],
    [', also after a restart', restart],
  ])('are followed by late values until the time of a trusted clock that had run ahead%s', async (_, go) => {
    const ahead = await runAhead()
    site.machine.wrongBy = 0
    clock.check()
    await observe(2)
    // A time sent by a device, between the corrected and the uncorrected time of value 2.
    await observeAt(ahead + 500, 3)
    expect(currentOf().value).toBe(2)
    site.machine.setAt = 2
    await go()
    expect(unsettled()).toBe(1)
    await observe(4)
    await settle()
    expect(logged()).toMatchObject([
      { value: 1, isLate: false },
      { value: 2, isLate: true },
      { value: 3, isLate: true },
      { value: 4, isLate: true },
    ])
    expect(currentOf().value).toBe(3)
    await restart()
    expect(currentOf().value).toBe(3)
    await observe(5)
    expect(logged().at(-1)).toMatchObject({ value: 5, isLate: true })
  })

  it('are followed by a current value also if they are of the first value of a device', async () => {
    await createInDoubt()
    site.machine.wrongBy = -1500
    clock.check()
    await observe(2)
    await settle()
    expect(logged()).toMatchObject([{ value: 2, isLate: false }])
    expect(currentOf().value).toBe(2)
  })

  it('are followed by a current value after a restart, though a client wrote to their entity', async () => {
    await createInDoubt()
    await observe(2)
    await open.broker.append(id, { b: { type: 'Property', value: 1 } }, { noOverwrite: false, by: 'http' })
    await observe(3)
    site.machine.wrongBy = -2500
    // Value 4 waits for several commits.
    setLimit('unsettledRowsPerGroup', 1)
    await restart()
    expect(unsettled()).toBe(3)
    // The time of value 4 is earlier than the uncorrected time of value 2, which is in the document.
    await observe(4)
    expect(currentOf().value).toBe(4)
    expect(logged().map(({ isLate }) => isLate)).toEqual([false, false, false])
  })

  it('stay unchanged if their boot ended before its clock was set', async () => {
    await create()
    await observe(1)
    const before = stored()
    site.machine.boot = 'b2'
    await restart()
    // The clock starts after the last commit; here both boots start at the same time and may return equal
    // times.
    clock.pass(5000)
    await observe(2)
    const last = truth.at(-1)!
    set()
    await settle()
    expect(stored().slice(0, 2)).toEqual(before)
    near([stored()[2]![0]], [last])
    expect(open.logged.find(({ event }) => event === 'clock.settled')).toMatchObject({
      observations: 2,
      corrected: 1,
    })
  })

  it('are corrected again if the correcting commit was lost', async () => {
    await create()
    await observe(1)
    const before = stored()
    set()
    open.refuseNextGroup(new GatewayError('store.full', 'no room'))
    await open.main.door.commit(() => undefined).catch(() => undefined)
    expect(stored()).toEqual(before)
    expect(unsettled()).toBe(2)
    // Upkeep pauses after a failure.
    await open.upkeep(11_000)
    expect(unsettled()).toBe(0)
    near(
      stored()
        .map(([time]) => time)
        .slice(1),
      truth,
    )
  })

  it('are corrected in smaller commits if the disk is nearly full', async () => {
    const rows = Array.from({ length: 40 }, (_, value) => value)
    await create()
    for (const value of rows) await observe(value)
    set()
    const sizes: number[] = []
    open.refuseGroups((group) => {
      const size = group.rows.filter(([statement]) => statement === 'log.rewrite').length
      if (size > 0) sizes.push(size)
      return size > 10 ? new GatewayError('store.full', 'no room') : undefined
    })
    await open.main.door.commit(() => undefined).catch(() => undefined)
    for (let i = 0; i < 10 && unsettled() > 0; i++) await open.upkeep(11_000)
    expect(unsettled()).toBe(0)
    expect(sizes[0]).toBe(41)
    near(
      stored()
        .map(([time]) => time)
        .slice(1),
      truth,
    )
  })

  it('are counted also if their commit failed and they were stored one by one', async () => {
    await create()
    open.refuseNextGroup(new GatewayError('store.failed', 'unknown'))
    await Promise.all([observe(1), observe(2)])
    await observe(3)
    expect(open.inside.following.isHeld()).toBe(true)
    expect(unsettled()).toBe(4)
    setLimit('unsettledRowsPerGroup', 1)
    set()
    clock.pass(11_000)
    await settle()
    expect(unsettled()).toBe(0)
  })

  it('are corrected even if a client wrote around them meanwhile and ended their stream', async () => {
    await create()
    await observe(1)
    await observe(2)
    const b = { type: 'Property', value: 1 }
    await open.broker.append(id, { b }, { noOverwrite: false, by: 'http' })
    await open.broker.partial(id, 'a', { unitCode: 'CEL' }, { by: 'http' })
    await observe(3)
    await open.broker.deleteAttribute(id, 'a', { deleteAll: false, by: 'http' })
    await open.broker.append(id, { a: { type: 'Property', value: 9 } }, { noOverwrite: false, by: 'http' })
    expect(open.main.database.prepare('SELECT sum(count) AS c FROM chunk').get()).toEqual({ c: 3 })
    set()
    await settle()
    const times = stored().map(([time]) => time)
    expect(times.every((time) => time > floor + day)).toBe(true)
    near([...new Set(times)].slice(1), truth)
    await restart()
    expect(stored().map(([time]) => time)).toEqual(times)
    expect(open.broker.retrieve(id)!.entity()).toEqual({
      id,
      type: 'T',
      b,
      a: { type: 'Property', value: 9 },
    })
  })

  it('are distinguished from equal times stamped by a trusted clock', async () => {
    set()
    await create(trueNow() - day)
    for (const value of [1, 2]) await observe(value)
    const before = stored()
    site.machine.wrongBy = 30 * day
    clock.check()
    await observe(3, before[1]![0])
    expect(unsettled()).toBe(1)
    // The clock returns, with a small difference.
    site.machine.wrongBy = -300
    clock.check()
    await settle()
    expect(unsettled()).toBe(0)
    expect(stored().filter(([, value]) => value !== 3)).toEqual(before)
    await restart()
    expect(stored().filter(([, value]) => value !== 3)).toEqual(before)
    expect(currentOf().value).toBe(2)
  })

  it('are corrected only once, although that takes several commits', async () => {
    setLimit('unsettledRowsPerGroup', 1)
    await create()
    const time = clock.now()
    await observe(1, time)
    // Other rows wait with the time that this one will have.
    const about = time + trueNow() - clock.now()
    for (let by = -3; by <= 3; by++) await observe(10 + by, about + by)
    set()
    for (let i = 0; i < 5; i++) await settle()
    expect(unsettled()).toBe(0)
    const found = stored().find(([, value]) => value === 1)!
    near([found[0]], [truth[0]!])
    await restart()
    expect(stored().find(([, value]) => value === 1)).toEqual(found)
  })

  it('stay unchanged if there are too many to wait for, oldest first, and are then folded', async () => {
    setLimit('unsettledRowsMax', 20)
    setLimit('unsettledRowsPerGroup', 4)
    await create()
    for (let value = 1; value <= 40; value++) await observe(value)
    expect(unsettled()).toBeLessThanOrEqual(21)
    setLimit('unsettledRowsMax', 0)
    for (let i = 0; i < 10; i++) await settle()
    expect(unsettled()).toBe(0)
    const before = stored()
    expect(before.map(([, value]) => value)).toEqual(Array.from({ length: 41 }, (_, i) => i))
    await observe(41)
    await open.upkeep()
    expect(open.main.database.prepare('SELECT count(*) > 0 AS c FROM chunk').get()).toEqual({ c: 1 })
    set()
    await settle()
    expect(stored().slice(0, -1)).toEqual(before)
  })

  it('cause no expiry and no removal by age', async () => {
    const expiresAt = msToDateTime(trueNow() + day)
    await open.broker.create(
      { id: 'urn:x:2', type: 'T', expiresAt, a: { type: 'Property', value: 1 } } as Entity,
      'http',
    )
    site.machine.wrongBy = Date.UTC(2038, 0, 19) - trueNow()
    clock.check()
    await open.upkeep(1000)
    set()
    await open.upkeep(1000)
    expect(open.broker.retrieve('urn:x:2')).toBeDefined()
    clock.pass(2 * day)
    clock.check()
    await open.upkeep(1000)
    expect(open.broker.retrieve('urn:x:2')).toBeUndefined()
  })
})
