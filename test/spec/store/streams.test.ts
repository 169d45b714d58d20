/**
 * Observed attributes on the real write path: new, late and known observations, and entity writes to them.
 * Restarts, failing groups and upkeep at the wrong moment change nothing.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { historyOf, observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'
import { setLimit } from '#test/kit/ceilings.ts'

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000
const full = new GatewayError('store.full', 'the disk is full')

const open = brokerOfFile()

interface Made {
  readonly value: unknown
  readonly s?: number
  readonly [member: string]: unknown
}

function property({ s, ...members }: Made): object {
  return { type: 'Property', ...members, ...(s === undefined ? {} : { observedAt: msToDateTime(at(s)) }) }
}

const room = (attributes: Record<string, unknown>): Entity => ({ id, type: 'Room', ...attributes })
const create = (attributes: Record<string, unknown>): Promise<void> =>
  open.broker.create(room(attributes), 'http')
const patch = (attributes: Record<string, unknown>): Promise<unknown> =>
  open.broker.update(id, attributes as unknown as Fragment, { appendMissing: true, by: 'http' })
const remove = (name: string, datasetId?: string): Promise<void> =>
  open.broker.deleteAttribute(id, name, { datasetId, deleteAll: false, by: 'http' })
const current = (name = 't'): unknown => open.broker.retrieve(id)?.entity()[name]
const history = (name = 't') =>
  historyOf(open, id, name).map(([time, value, unit]) => [(time - at(0)) / 1000, value, unit])
const seen = (s: number, value: unknown, name = 't') => observe(open, id, name, at(s), value as never)
const search = (q: string): string[] =>
  open.broker
    .queryAtOnce({ q: parseQuery(q, (term) => term), limit: 10, offset: 0, count: false })
    .entities.map((entity) => entity.id)

describe('an observation of a device', () => {
  beforeEach(() => create({ t: property({ value: 0, s: 0 }) }))

  it('is new when it is newer, and current at once', async () => {
    expect(await seen(1, 1)).toBe('new')
    expect(current()).toEqual(property({ value: 1, s: 1 }))
    expect(search('t==1')).toEqual([id])
    expect(search('t==0')).toEqual([])
  })

  it('is known when its time and value exist already, wherever they are stored', async () => {
    for (const s of [1, 2, 3]) await seen(s, s)
    const verdicts = async () => [await seen(3, 3), await seen(2, 2), await seen(1, 1)]
    const known = ['duplicate', 'duplicate', 'duplicate']
    expect(await verdicts()).toEqual(known)
    await open.restart()
    expect(await verdicts()).toEqual(known)
    await open.upkeep()
    expect(open.main.status().tail).toBe(0)
    expect(await verdicts()).toEqual(known)
    await open.restart()
    expect(await verdicts()).toEqual(known)
    expect(history()).toEqual([0, 1, 2, 3].map((s) => [s, s, undefined]))
  })

  it('that is late is added to history and never replaces the current value', async () => {
    await seen(5, 5)
    expect(await seen(3, 3)).toBe('late')
    for (const again of [open.restart, () => open.upkeep(), open.restart]) {
      expect(current()).toEqual(property({ value: 5, s: 5 }))
      expect(history()).toEqual([0, 3, 5].map((s) => [s, s, undefined]))
      await again()
    }
  })

  it('with another value at the same time is another observation', async () => {
    await seen(1, 1)
    expect(await seen(1, 2)).toBe('new')
    expect(await seen(1, 1)).toBe('duplicate')
    expect(current()).toEqual(property({ value: 2, s: 1 }))
  })

  it('may be a text or an object', async () => {
    await seen(1, 'on')
    await seen(2, { a: [1] })
    expect(await seen(2, { a: [1] })).toBe('duplicate')
    await open.upkeep()
    await seen(3, true)
    await open.restart()
    expect(history()).toEqual([0, 'on', { a: [1] }, true].map((value, s) => [s, value, undefined]))
    expect(current()).toEqual(property({ value: true, s: 3 }))
  })

  it('that was refused is not remembered', async () => {
    await seen(1, 1)
    open.refuseNextGroup(full)
    await expect(seen(2, 2)).rejects.toThrow('full')
    expect(current()).toEqual(property({ value: 1, s: 1 }))
    expect(await seen(2, 2)).toBe('new')
    expect(history()).toHaveLength(3)
  })

  it.each([
    [
      'that was refused',
      async () => {
        open.refuseNextGroup(full)
        await expect(seen(2, 2)).rejects.toThrow('full')
      },
    ],
    ['whose value a document has', () => patch({ t: property({ value: 2, s: 2, unitCode: 'CEL' }) })],
    ['that was late', () => seen(0.5, 2)],
  ] as const)('%s keeps no part of the log from being let go', async (_, happen) => {
    await seen(1, 1)
    await open.upkeep()
    await happen()
    await open.broker.create({ id: 'urn:x:other', type: 'Room' }, 'http')
    // An old one that is folded and then evicted from memory.
    for (let i = 0; i < 3; i++) await open.upkeep()
    expect(open.main.records.meta('replay')).toBe(open.main.door.status().number)
  })
})

describe('a write by a client', () => {
  it('replaces the current value whatever its time, and is in history once', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(5, 5)
    await seen(6, 6)
    await patch({ t: property({ value: 5, s: 5 }) })
    for (const again of [open.restart, () => open.upkeep(), open.restart]) {
      expect(current()).toEqual(property({ value: 5, s: 5 }))
      expect(history()).toEqual([0, 5, 6].map((s) => [s, s, undefined]))
      await again()
    }
  })

  it('writes no document for an observation: only the log grows', async () => {
    await create({ t: property({ value: 0, s: 0, unitCode: 'CEL' }) })
    const doc = () => open.main.database.prepare('SELECT n, doc FROM entity').get()
    const before = doc()
    await patch({ t: property({ value: 1, s: 1, unitCode: 'CEL' }) })
    expect(doc()).toEqual(before)
    expect(current()).toEqual(property({ value: 1, s: 1, unitCode: 'CEL' }))
  })

  it('with another unit does not change earlier observations', async () => {
    await create({ t: property({ value: 0, s: 0, unitCode: 'CEL' }) })
    await seen(1, 1)
    await Promise.all([seen(2, 2), patch({ t: property({ value: 3, s: 3, unitCode: 'FAH' }) }), seen(4, 4)])
    await seen(5, 5)
    const expected = [0, 1, 2, 3, 4, 5].map((s) => [s, s, s < 3 ? 'CEL' : 'FAH'])
    for (const again of [open.restart, () => open.upkeep(), open.restart]) {
      expect(history()).toEqual(expected)
      await again()
    }
  })

  it('without observedAt removes it, and the next observation becomes current', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(5, 5)
    await Promise.all([patch({ t: property({ value: 7 }) }), patch({ name: property({ value: 'x' }) })])
    expect(current()).toEqual(property({ value: 7 }))
    await open.restart()
    expect(current()).toEqual(property({ value: 7 }))
    expect(await seen(1, 1)).toBe('new')
    expect(current()).toEqual(property({ value: 1, s: 1 }))
  })

  it('that was refused leaves the stream unchanged', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(1, 1)
    await open.upkeep()
    await open.restart()
    open.refuseNextGroup(full)
    // This write loads the stream into memory, but is never made.
    await expect(patch({ t: property({ value: 9, s: 9, unitCode: 'CEL' }) })).rejects.toThrow('full')
    expect(await seen(9, 9)).toBe('new')
    expect(history()).toEqual([0, 1, 9].map((s) => [s, s, undefined]))
  })

  it('of another kind ends the stream: the next observation belongs to the new attribute', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(1, 1)
    const relationship = { type: 'Relationship', object: 'urn:x:other' }
    await open.broker.batchUpsert([room({ t: relationship })], { update: false, by: 'http' })
    expect(current()).toEqual(relationship)
    await open.upkeep()
    await open.restart()
    expect(current()).toEqual(relationship)
    await expect(seen(2, 2)).rejects.toThrow('cannot be observed')
    expect(history()).toEqual([0, 1].map((s) => [s, s, undefined]))
  })
})

describe('write-back', () => {
  beforeEach(() => create({ t: property({ value: 0, s: 0 }), name: property({ value: 'a' }) }))
  const minute = 61_000
  const stored = () =>
    JSON.parse(open.main.database.prepare('SELECT doc FROM entity').pluck().get() as string) as Entity

  it('periodically writes current values into documents and indexes', async () => {
    await seen(1, 1)
    expect(stored()['t']).toEqual(property({ value: 0, s: 0 }))
    await open.upkeep(minute)
    expect(stored()['t']).toEqual(property({ value: 1, s: 1 }))
    expect(search('t==1')).toEqual([id])
    expect(search('t==0')).toEqual([])
    expect(open.metrics.counter('selvedge_writebacks_total').value).toBe(1)
    await open.upkeep(minute)
    expect(open.metrics.counter('selvedge_writebacks_total').value).toBe(1)
  })

  it('never overwrites writes of the same group', async () => {
    await seen(1, 1)
    open.clock.pass(minute)
    await patch({ name: property({ value: 'b' }) })
    await open.upkeep(minute)
    await open.restart()
    expect(open.broker.retrieve(id)!.entity()).toEqual(
      room({ t: property({ value: 1, s: 1 }), name: property({ value: 'b' }) }),
    )
    expect([search('name=="a"'), search('name=="b"')]).toEqual([[], [id]])
  })

  it('leaves nothing of an entity that the same group deletes', async () => {
    await seen(1, 1)
    open.clock.pass(minute)
    await open.broker.remove(id, 'http')
    await open.upkeep(minute)
    for (const table of ['entity', 'entity_type', 'scalar', 'has_attribute']) {
      expect(open.main.database.prepare(`SELECT count(*) FROM ${table}`).pluck().get()).toBe(0)
    }
  })

  it('of a document that became too large for a client still succeeds', async () => {
    setLimit('entityBytesMax', 2000)
    await expect(patch({ t: property({ value: 'x'.repeat(3000), s: 1 }) })).rejects.toThrow('exceed')
    await seen(1, 'x'.repeat(3000))
    await open.upkeep(minute)
    expect(stored()['t']).toMatchObject({ value: 'x'.repeat(3000) })
    expect(open.logged.filter(({ event }) => event === 'gateway.fault')).toEqual([])
  })
})

describe('an attribute', () => {
  it('deleted and created again in one group starts a new stream, and its history stays', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(1, 1)
    await Promise.all([seen(2, 2), remove('t'), patch({ t: property({ value: 3, s: 3 }) }), seen(4, 4)])
    for (const again of [open.restart, () => open.upkeep(), open.restart]) {
      expect(current()).toEqual(property({ value: 4, s: 4 }))
      expect(history()).toEqual([0, 1, 2, 3, 4].map((s) => [s, s, undefined]))
      await again()
    }
  })

  it('deleted together with its entity counts once', async () => {
    await create({ t: property({ value: 0, s: 0 }), u: property({ value: 0, s: 0 }) })
    await Promise.all([seen(1, 1), seen(1, 1, 'u')])
    await Promise.all([remove('t'), open.broker.remove(id, 'http')])
    expect(open.main.status()).toMatchObject({ liveStreams: 0, tail: 0 })
    await create({ u: property({ value: 5, s: 5 }) })
    expect(await seen(1, 1, 'u')).toBe('late')
    expect(history()).toEqual([0, 1].map((s) => [s, s, undefined]))
  })

  it('may have several instances, distinguished by datasetId, each with its own history', async () => {
    const a = 'urn:x:set:a'
    await create({ t: [property({ value: 0, s: 0 }), { ...property({ value: 10, s: 0 }), datasetId: a }] })
    await Promise.all([observe(open, id, 't', at(1), 1), observe(open, id, 't', at(2), 12, { dataset: a })])
    expect(current()).toEqual([
      property({ value: 1, s: 1 }),
      { ...property({ value: 12, s: 2 }), datasetId: a },
    ])
    await remove('t')
    await open.upkeep()
    await open.restart()
    expect(current()).toEqual({ ...property({ value: 12, s: 2 }), datasetId: a })
    expect(await observe(open, id, 't', at(2), 12, { dataset: a })).toBe('duplicate')
    expect(history().map(([s, value]) => [s, value])).toEqual([
      [0, 0],
      [0, 10],
      [1, 1],
      [2, 12],
    ])
  })

  it('may be rendered from the time of another', async () => {
    await create({ t: property({ value: 0, s: 0 }), when: property({ value: msToDateTime(at(0)) }) })
    await observe(open, id, 't', at(1), 1, { mirror: 'when' })
    const soon = `when=="${msToDateTime(at(1))}"`
    for (const again of [open.restart, () => open.upkeep(61_000), open.restart]) {
      expect(current('when')).toEqual(property({ value: msToDateTime(at(1)) }))
      expect(search(soon)).toEqual([id])
      const { attributes } = open.broker.retrieve(id)!.times()
      expect(attributes['when']![1]).toBe(attributes['t']![1])
      await again()
    }
    await remove('when')
    await seen(2, 2)
    await open.upkeep(61_000)
    expect(Object.keys(open.broker.retrieve(id)!.times().attributes)).toEqual(['t'])
  })
})

describe('an entity', () => {
  it.each([
    ['in one group', true],
    ['one after the other', false],
  ] as const)('deleted and made again, %s, is another one with the history of both', async (_, together) => {
    await create({ t: property({ value: 0, s: 0 }) })
    await seen(1, 1)
    const steps = [
      () => seen(2, 2),
      () => open.broker.remove(id, 'http'),
      () => create({ t: property({ value: 3, s: 3 }) }),
      () => seen(4, 4),
    ]
    if (together) await Promise.all(steps.map((one) => one()))
    else for (const one of steps) await one()
    for (const again of [open.restart, () => open.upkeep(), open.restart]) {
      expect(open.broker.retrieve(id)?.entity()).toEqual(room({ t: property({ value: 4, s: 4 }) }))
      expect(history()).toEqual([0, 1, 2, 3, 4].map((s) => [s, s, undefined]))
      expect(open.main.status().entities).toBe(1)
      await again()
    }
  })
})

describe('a history that is read in parts', () => {
  it('includes late instances between folded ones', async () => {
    await create({ t: property({ value: 0, s: 0 }) })
    for (const s of [1, 2, 3, 5, 6, 7, 9]) await seen(s, s)
    open.clock.pass(31 * 60_000)
    await open.upkeep()
    for (const s of [4, 10, 8]) await seen(s, s)
    for (const limit of [3, 5, 7, 9]) {
      const part = open.broker.history(id, { timeproperty: 'observedAt', limit })
      const times = part?.attributes.get('t')?.map(({ observedAt }) => (observedAt! - at(0)) / 1000)
      expect([times, part?.cut.size]).toEqual([Array.from({ length: limit }, (_, s) => s), 1])
    }
  })

  it('reports further parts, even if the first part holds only known instances', async () => {
    const scopes = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => ({
        type: 'Property',
        value: [`/${from + i}`],
        observedAt: msToDateTime(at(from + i)),
      }))
    const past = (from: number, to: number) => ({
      attributes: new Map(),
      scope: `/${to - 1}`,
      scopeAt: at(to - 1),
      scopes: scopes(from, to),
    })
    await open.broker.temporal.put({ id, types: 'Room', ...past(0, 101) }, 'http')
    open.clock.pass(1000)
    await open.broker.temporal.append(id, past(101, 2101), 'http')
    const part = open.broker.history(id, { timeproperty: 'modifiedAt', limit: 100 })
    // All values of the first time, and the first of the second time, so that the next part makes progress.
    expect(part?.attributes.get('scope')?.map(({ instance }) => instance)).toEqual(scopes(0, 102))
    expect(part?.cut).toEqual(new Set(['scope']))
  })
})

describe('memory', () => {
  it('evicts idle streams, and restores their state when they are used again', async () => {
    await create({ t: property({ value: 0, s: 0 }), u: property({ value: 0, s: 0 }) })
    for (const s of [1, 2]) await Promise.all([seen(s, s), seen(s, s, 'u')])
    setLimit('streamsLiveMax', 0)
    await open.upkeep()
    expect(open.main.status().liveStreams).toBe(0)
    expect([await seen(2, 2), await seen(1, 1), await seen(3, 3)]).toEqual(['duplicate', 'duplicate', 'new'])
    expect(current()).toEqual(property({ value: 3, s: 3 }))
  })

  it('of tails is bounded in bytes, even if each tail is short', async () => {
    setLimit('tailBytesMax', 10_000)
    const names = Array.from({ length: 8 }, (_, i) => `t${i}`)
    await create(Object.fromEntries(names.map((name) => [name, property({ value: 0, s: 0 })])))
    for (let s = 1; s <= 40; s++) {
      await Promise.all(names.map((name) => seen(s, 'x'.repeat(40), name)))
      open.clock.pass(1001)
    }
    // 320 texts of about 110 bytes in memory.
    expect(open.main.status().tail).toBeLessThan(150)
    expect(history('t3')).toHaveLength(41)
  })
})
