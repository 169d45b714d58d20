/** Writes as works at the door: their size in the queue, and how batches share the door (GS CIM 009, 5.6). */
import { describe, expect, it } from 'vitest'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'
import { setLimit } from '#test/kit/ceilings.ts'

const open = brokerOfFile({ synchronous: 'NORMAL' })

const entity = (id: number | string, value: unknown = 1): Entity =>
  ({ id: `urn:x:${id}`, type: 'T', a: { type: 'Property', value } }) as Entity
const many = (count: number): Entity[] => Array.from({ length: count }, (_, i) => entity(i))
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'ok',
    (error: unknown) => (isGatewayError(error) ? error.code : String(error)),
  )
const value = (id: number | string): unknown => open.broker.retrieve(`urn:x:${id}`)?.entity()['a']

describe('a write', () => {
  it('counts in the queue with the memory that it holds', async () => {
    setLimit('queueBytesMax', 100_000)
    const large = (id: string) => codeOf(open.broker.create(entity(id, 'x'.repeat(40_000)), 'http'))
    expect(await Promise.all([large('a'), large('b')])).toEqual(['ok', 'store.busy'])
  })

  it('that is too large is refused alone, and the others are not decided again', async () => {
    setLimit('entityBytesMax', 1000)
    const answers = [1, 2, 3].map((n) =>
      codeOf(open.broker.create(entity(n, n === 2 ? 'x'.repeat(2000) : n), 'http')),
    )
    expect(await Promise.all(answers)).toEqual(['ok', 'http.body-too-large', 'ok'])
    expect([value(1), value(2), value(3)].map((one) => one !== undefined)).toEqual([true, false, true])
  })

  it('of unchanged content causes no commit and no notification', async () => {
    await open.broker.create(entity(1), 'http')
    const commits = open.metrics.counter('selvedge_commits_total')
    const before = commits.value
    const { id: _id, ...fragment } = entity(1)
    await open.broker.update('urn:x:1', fragment, { appendMissing: true, by: 'http' })
    expect(commits.value).toBe(before)
  })
})

describe('an observation', () => {
  it('directly after an erasure of its history, in the same group, is in the history', async () => {
    await open.broker.create(entity(1), 'http')
    const seen = (n: number) => observe(open, 'urn:x:1', 'a', 1_700_000_000_000 + n, n)
    await seen(0)
    await Promise.all([
      seen(1),
      open.broker.temporal.removeAttribute('urn:x:1', 'a', { deleteAll: true, by: 'http' }),
      seen(2),
    ])
    const { attributes } = open.broker.history('urn:x:1', { timeproperty: 'observedAt', limit: 10 })!
    expect(attributes.get('a')!.map(({ instance }) => instance.value)).toEqual([2])
  })
})

describe('a batch', () => {
  it('shares the door: a single write is answered long before the batch ends', async () => {
    const order: string[] = []
    const batch = open.broker.batchCreate(many(3000), 'http').then((result) => {
      order.push('batch')
      return result
    })
    await new Promise((resolve) => setImmediate(resolve))
    await open.broker.create(entity('single'), 'http')
    order.push('single')
    expect((await batch).created).toHaveLength(3000)
    expect(order).toEqual(['single', 'batch'])
    expect(open.main.status().entities).toBe(3001)
  })

  it('needs little space in the queue, however many batches arrive at once', async () => {
    setLimit('queueWorksMax', 600)
    const batches = [0, 1, 2, 3].map((n) =>
      open.broker.batchCreate(
        Array.from({ length: 400 }, (_, i) => entity(`${n}-${i}`)),
        'http',
      ),
    )
    for (const { errors } of await Promise.all(batches)) expect(errors).toEqual([])
  })

  it('is refused as a whole if no item can be queued, else item by item', async () => {
    setLimit('queueWorksMax', 0)
    expect(await codeOf(open.broker.batchCreate(many(3), 'http'))).toBe('store.busy')
    setLimit('queueWorksMax', 2)
    const { success, errors } = await open.broker.batchCreate(many(3), 'http')
    expect(success).toHaveLength(2)
    expect(errors.map(({ error }) => (error as GatewayError).code)).toEqual(['store.busy'])
    setLimit('queueWorksMax', 1000)
    open.refuseNextGroup(new GatewayError('store.full', 'full'))
    expect(await codeOf(open.broker.batchDelete(['urn:x:0'], 'http'))).toBe('store.full')
  })

  it('with an id twice: create takes the first, upsert the last, delete the first', async () => {
    const twice = [entity(1, 'first'), entity(1, 'last')]
    const create = await open.broker.batchCreate(twice, 'http')
    expect([create.success, create.errors.length]).toEqual([['urn:x:1'], 1])
    expect(value(1)).toMatchObject({ value: 'first' })
    await open.broker.batchUpsert(twice, { update: false, by: 'http' })
    expect(value(1)).toMatchObject({ value: 'last' })
    const history = open.broker.history('urn:x:1', { timeproperty: 'modifiedAt', limit: 10 })!
    expect(history.attributes.get('a')!.map(({ instance }) => instance.value)).toEqual(['first', 'last'])
    const deleted = await open.broker.batchDelete(['urn:x:1', 'urn:x:1'], 'http')
    expect([deleted.success, deleted.errors.length]).toEqual([['urn:x:1'], 1])
  })

  it('continues after a refused item', async () => {
    await open.broker.create(entity(300), 'http')
    const { success, errors } = await open.broker.batchCreate(many(600), 'http')
    expect([success.length, errors.map(({ entityId }) => entityId)]).toEqual([599, ['urn:x:300']])
  })

  it('has one commit time across all its groups, also after a restart', async () => {
    const timesOf = (): number[] => [
      ...new Set(
        many(600).flatMap(({ id }) => {
          const { modified, attributes } = open.broker.retrieve(id)!.times()
          return [modified, attributes['a']![1]]
        }),
      ),
    ]
    await open.broker.batchCreate(many(600), 'http')
    const created = timesOf()
    expect(created).toHaveLength(1)
    const observed = many(600).map(({ id }, n) => {
      const observedAt = '2026-01-01T00:00:00Z'
      return { id, type: 'T', a: { type: 'Property', value: n, observedAt } } as Entity
    })
    await open.broker.batchUpdate(observed, { noOverwrite: false, by: 'http' })
    const newer = observed.map((one, n): Entity => {
      return { ...one, a: { ...(one['a'] as AttributeInstance), value: n + 1 } }
    })
    await open.broker.batchUpdate(newer, { noOverwrite: false, by: 'http' })
    const updated = timesOf()
    expect(updated).toHaveLength(1)
    expect(updated[0]).toBeGreaterThan(created[0]!)
    await open.restart()
    expect(timesOf()).toEqual(updated)
  })

  it('has no commit time that followers of the changes have already passed', async () => {
    setLimit('batchOneTimeMs', 100)
    const { following } = open.inside
    await open.broker.batchCreate(many(2), 'http')
    let isOver = false
    const observed = (value: number) => ({
      type: 'Property',
      value,
      observedAt: new Date(value).toISOString(),
    })
    const between = async (): Promise<void> => {
      for (let n = 1; !isOver; n++) {
        const a = observed(n) as unknown as AttributeInstance
        // The batch takes longer than it may have one time.
        open.clock.pass(60)
        await open.broker.append('urn:x:0', { a }, { noOverwrite: false, by: 'http' })
      }
    }
    const others = between()
    const states = many(1500).map(({ id }) => ({ id, type: 'T', a: observed(1) }) as unknown as Entity)
    await open.broker.batchUpsert(states, { update: true, by: 'http' })
    const newer = states.map((one) => ({ ...one, a: observed(2) }) as unknown as Entity)
    await open.broker.batchUpsert(newer, { update: true, by: 'http' })
    isOver = true
    await others

    const rows = following.after(0, 100_000)!
    const changeTimes = rows.map(({ at, what }) => ('id' in what ? what.at : at))
    const earliestAfter = rows.slice(0, -1).map((_, i) => Math.min(...changeTimes.slice(i + 1)))
    expect(earliestAfter).not.toEqual(rows.slice(1).map(({ at }) => at))
    expect(rows.slice(0, -1).map((row) => following.since(row))).toEqual(earliestAfter)
    setLimit('batchSearchRowsMax', 1)
    const tooLate = rows.slice(0, -1).filter((row, i) => following.since(row) > earliestAfter[i]!)
    expect(tooLate).toEqual([])
    expect(following.position().at).toBeGreaterThanOrEqual(Math.max(...rows.map(({ at }) => at)))
    // After commits with one time each, no earlier time is searched.
    await open.broker.append(
      'urn:x:0',
      { b: { type: 'Property', value: 1 } },
      { noOverwrite: false, by: 'http' },
    )
    expect(following.since(following.position())).toBe(following.position().at)
  })

  it('is found as a whole by a search for writes in a span of time', async () => {
    let isOver = false
    const others = (async () => {
      for (let n = 0; !isOver; n++) {
        open.clock.pass(20)
        await open.broker.create(entity(`other:${n}`), 'http')
      }
    })()
    await open.broker.batchCreate(many(600), 'http')
    isOver = true
    await others
    setLimit('entityRecordsUnfoldedMax', 0)
    const folded = open.main.database.prepare<[], number>('SELECT count(*) FROM entity_history').pluck()
    while (folded.get()! < 600) await open.upkeep()
    const { following } = open.inside
    const { modified } = open.broker.retrieve('urn:x:0')!.times()
    const changedWithin = (from: number, to: number): readonly string[] =>
      following.changes({ from, to }).flatMap((read) => {
        const past = read()
        return past === undefined || past.instances.length === 0 ? [] : [past.id]
      })
    expect(changedWithin(0, modified + 1)).toEqual(expect.arrayContaining(many(600).map(({ id }) => id)))
    expect(changedWithin(modified + 1, Number.POSITIVE_INFINITY)).not.toContain('urn:x:599')
  })

  it('never decreases commit times, also after a restart', async () => {
    const observedAt = '2026-01-01T00:00:00Z'
    await open.broker.create({ ...entity(1), a: { type: 'Property', value: 1, observedAt } }, 'http')
    const second = Date.parse(observedAt) + 1000
    await observe(open, 'urn:x:1', 'a', second, 2)
    const { at } = open.inside.following.position()
    const [stream] = open.main.database.prepare<[], number>('SELECT s FROM stream').pluck().all()
    await open.main.door.commit((stage) => {
      stage.dated(at - 1000).observation(stream!, second + 1000, 3, false)
    })
    await open.restart()
    expect(open.inside.following.position().at).toBe(at)
  })

  it('does not decrease the time of an entity that changed in between', async () => {
    await open.broker.batchCreate(many(600), 'http')
    const later = many(600).map(({ id }) => entity(id.slice('urn:x:'.length), 2))
    const batch = open.broker.batchUpsert(later, { update: false, by: 'http' })
    const name = { b: { type: 'Property', value: 1 } }
    await open.broker.append('urn:x:599', name, { noOverwrite: false, by: 'http' })
    const between = open.broker.retrieve('urn:x:599')!.times().modified
    await batch
    expect(open.broker.retrieve('urn:x:599')!.times().modified).toBeGreaterThanOrEqual(between)
    expect(value(599)).toHaveProperty('value', 2)
  })
})
