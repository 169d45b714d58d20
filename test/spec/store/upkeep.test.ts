/**
 * Upkeep and replay on the real write path: the log is folded, trimmed and replayed, whatever fails in
 * between, and no reader can notice when.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { ages, historyOf, type OpenBroker, observe, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'
import { setLimit } from '#test/kit/ceilings.ts'

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000
const hours = 3_600_000

const open = brokerOfFile({ synchronous: 'NORMAL' })
beforeEach(async () => {
  await open.broker.create(room('start'), 'http')
})

function room(name: string): Entity {
  return {
    id,
    type: 'Room',
    t: { type: 'Property', value: 0, observedAt: msToDateTime(at(0)) },
    name: { type: 'Property', value: name },
  }
}

const rename = (value: string): Promise<unknown> =>
  open.broker.update(
    id,
    { name: { type: 'Property', value } },
    {
      appendMissing: true,
      by: 'http',
    },
  )
const seen = (s: number) => observe(open, id, 't', at(s), s)
const seconds = (broker: Pick<OpenBroker, 'broker'> = open): number[] =>
  historyOf(broker, id, 't').map(([time]) => (time - at(0)) / 1000)
const names = ({ broker }: Pick<OpenBroker, 'broker'> = open): unknown[] =>
  broker
    .history(id, { timeproperty: 'modifiedAt', limit: 10_000 })!
    .attributes.get('name')!
    .map(({ instance }) => instance.value)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const rows = (table: string): number =>
  open.main.database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()!

describe('the log', () => {
  it('is trimmed by size, piece by piece', async () => {
    setLimit('logBytesMax', 1000)
    let s = 0
    for (let piece = 0; piece < 12; piece++) {
      while (s < piece * 20) await seen(++s)
      await open.upkeep()
    }
    const bytes = open.main.database.prepare('SELECT sum(length(body)) FROM log').pluck().get()
    expect(bytes).toBeGreaterThan(500)
    expect(bytes).toBeLessThan(1500)
    expect(open.main.status().logBytes).toBe(bytes)
    expect(seconds()).toEqual(upTo(221))
  })

  it('is trimmed by age, except its last row, which holds the last used number', async () => {
    for (const s of [1, 2]) await seen(s)
    const { number } = open.main.door.status()
    for (let i = 0; i < 3; i++) await open.upkeep()
    expect(rows('log')).toBe(number)
    await open.upkeep(7 * hours)
    expect(open.main.records.logAfter(0, 10).map(({ n }) => n)).toEqual([number])
    await open.restart()
    expect(open.main.door.status().number).toBe(number)
    await seen(3)
    expect(open.main.door.status().number).toBe(number + 1)
    await open.restart()
    expect(seconds()).toEqual([0, 1, 2, 3])
    expect(open.broker.retrieve(id)!.entity()['t']).toMatchObject({ value: 3 })
  })

  it('is also trimmed of rows from before a restart', async () => {
    for (let s = 1; s <= 20; s++) await seen(s)
    setLimit('logBytesMax', 200)
    for (let i = 0; i < 4; i++) {
      await open.restart()
      await open.upkeep()
    }
    expect(rows('log')).toBe(1)
    expect(seconds()).toEqual(upTo(21))
  })

  it('keeps rows that a tail or a document still needs', async () => {
    setLimit('logBytesMax', 1)
    setLimit('foldedPerGroup', 0)
    setLimit('writebacksPerGroup', 0)
    await rename('x')
    for (let s = 1; s <= 5; s++) await seen(s)
    for (let i = 0; i < 3; i++) await open.upkeep(7 * hours)
    await open.restart()
    expect(seconds()).toEqual(upTo(6))
    expect(names()).toEqual(['start', 'x'])
    expect(open.broker.retrieve(id)!.entity()['t']).toMatchObject({ value: 5 })
  })

  it('is replayed only from where it is needed', async () => {
    for (let s = 1; s <= 5; s++) await seen(s)
    for (let i = 0; i < 3; i++) await open.upkeep()
    await seen(6)
    await open.restart()
    expect(open.logged.find(({ event }) => event === 'store.replayed')).toMatchObject({
      rows: 1,
      observations: 1,
    })
  })
})

describe('folding', () => {
  it('does not change any answer, whenever it happens', async () => {
    for (let s = 1; s <= 8; s++) {
      await Promise.all([seen(s), rename(`n${s}`)])
      if (s % 3 === 0) await open.upkeep()
      if (s % 4 === 0) await open.restart()
      expect(seconds()).toEqual(upTo(s + 1))
      expect(names()).toEqual([
        'start',
        ...upTo(s + 1)
          .slice(1)
          .map((n) => `n${n}`),
      ])
    }
    expect(rows('chunk')).toBe(1)
    expect(rows('entity_history')).toBe(1)
  })

  it('runs in groups with works that observe, rename and delete the folded data', async () => {
    for (let s = 1; s <= 3; s++) await Promise.all([seen(s), rename(`n${s}`)])
    open.clock.pass(ages)
    await Promise.all([seen(4), rename('n4'), seen(5)])
    await open.restart()
    expect(seconds()).toEqual(upTo(6))
    open.clock.pass(ages)
    await Promise.all([seen(6), open.broker.remove(id, 'http')])
    await open.upkeep()
    await open.restart()
    expect(seconds()).toEqual(upTo(7))
  })

  it('of many small tails takes several groups, because each costs more than its few observations', async () => {
    for (const device of ['a', 'b', 'c', 'd', 'e']) {
      await open.broker.create({ ...room('x'), id: `urn:x:${device}` }, 'http')
      await observe(open, `urn:x:${device}`, 't', at(1), 1)
    }
    setLimit('foldedPerGroup', 100)
    open.clock.pass(ages)
    const folded = (): number => rows('chunk')
    await open.main.door.commit(() => undefined)
    expect(folded()).toBe(2)
    open.clock.pass(1001)
    await open.main.door.commit(() => undefined)
    expect(folded()).toBe(4)
  })

  it('that fails halfway is repeated later, and nothing is lost or duplicated', async () => {
    for (let s = 1; s <= 3; s++) await seen(s)
    process.env['SELVEDGE_FAILPOINTS'] = 'writer:mid-fold=throw(1)'
    await open.restart({ ownWriter: true })
    delete process.env['SELVEDGE_FAILPOINTS']
    open.clock.pass(ages)
    expect(await seen(4)).toBe('new')
    expect(open.logged.map(({ event }) => event)).toContain('store.commit-failed')
    expect([rows('chunk'), open.main.status().tail]).toEqual([0, 4])
    await open.upkeep()
    expect([rows('chunk'), open.main.status().tail]).toEqual([1, 0])
    expect(seconds()).toEqual(upTo(5))
    await open.restart()
    expect(seconds()).toEqual(upTo(5))
  })
})

describe('changes of an entity', () => {
  const folded = (): number =>
    open.main.database.prepare<[], number>('SELECT sum(count) FROM entity_history').pluck().get() ?? 0

  it.each([
    ['groupBytesMax', 1500],
    ['foldedPerGroup', 4],
  ] as const)('that are too many for one group are folded group by group (%s)', async (limit, most) => {
    const told = Array.from({ length: 12 }, (_, i) => `${i} ${'long '.repeat(40)}`)
    for (const name of told) await rename(name)
    setLimit(limit, most)
    setLimit('entityRecordsUnfoldedMax', 0)
    const sizes = [folded()]
    while (sizes.at(-1)! < 13 && sizes.length < 20) {
      await open.main.door.commit((stage) => stage.write('meta.put', 'a', 1))
      sizes.push(folded())
    }
    expect(sizes.length).toBeGreaterThan(3)
    expect(sizes.at(-1)).toBe(13)
    expect(names()).toEqual(['start', ...told])
    await open.restart()
    expect(names()).toEqual(['start', ...told])
  })
})

describe('what is on disk and not published yet', () => {
  /**
   * Blocks this thread, which would publish, until the writer thread has written a first row to a table. On a
   * busy machine the group is sent some turns later, so the thread is blocked a second in each.
   */
  async function onDisk(table: string): Promise<void> {
    for (let turn = 0; turn < 20 && rows(table) === 0; turn++) {
      await new Promise(setImmediate)
      for (const until = performance.now() + 1000; rows(table) === 0 && performance.now() < until; );
    }
    expect(rows(table)).toBe(1)
  }

  it('is returned once while changes are folded', async () => {
    await rename('x')
    open.clock.pass(ages)
    setLimit('entityRecordsUnfoldedMax', 0)
    const group = open.main.door.commit(() => undefined)
    await onDisk('entity_history')
    expect(names()).toEqual(['start', 'x'])
    await group
    expect(names()).toEqual(['start', 'x'])
  })

  it('is returned once while the entity is deleted', async () => {
    await seen(1)
    open.broker.retrieve(id)
    const removal = open.broker.remove(id, 'http')
    await onDisk('tombstone')
    expect([seconds(), names()]).toEqual([[0, 1], ['start']])
    await removal
    expect(seconds()).toEqual([0, 1])
  })
})

describe('the files of a moment', () => {
  it('are a complete broker of that moment: nothing requires an orderly end', async () => {
    const image = temporaryFolder()
    try {
      for (let s = 1; s <= 12; s++) {
        if (s % 4 === 0) open.clock.pass(ages)
        await Promise.all([seen(s), rename(`n${s}`)])
        cpSync(open.folder, join(image.folder, `${s}`), { recursive: true })
      }
      for (let s = 1; s <= 12; s++) {
        const then = await openBroker(join(image.folder, `${s}`), { clock: open.clock })
        try {
          expect(seconds(then)).toEqual(upTo(s + 1))
          expect(names(then)).toEqual([
            'start',
            ...upTo(s + 1)
              .slice(1)
              .map((n) => `n${n}`),
          ])
          expect(then.broker.retrieve(id)!.entity()).toMatchObject({
            t: { value: s },
            name: { value: `n${s}` },
          })
          expect(then.main.database.pragma('integrity_check', { simple: true })).toBe('ok')
        } finally {
          await then.close()
        }
      }
    } finally {
      image.remove()
    }
  })
})

describe('commit times', () => {
  it('never decrease, whatever the clock does, including across a restart', async () => {
    const modified = (): number => open.broker.retrieve(id)!.times().modified
    await rename('a')
    const first = modified()
    open.clock.jump(-24 * hours)
    await rename('b')
    expect(modified()).toBeGreaterThanOrEqual(first)
    open.clock.jump(48 * hours)
    await rename('c')
    const last = modified()
    expect(last).toBeGreaterThan(first + 12 * hours)
    open.clock.jump(-48 * hours)
    await open.restart()
    await seen(1)
    const history = open.broker.history(id, { timeproperty: 'observedAt', limit: 10 })!
    expect(history.attributes.get('t')!.at(-1)!.modifiedAt).toBeGreaterThanOrEqual(last)
  })
})
