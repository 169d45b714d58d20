/**
 * Matching of subscriptions with changes (GS CIM 009, 5.8 and 5.2.12) in the commit of the change itself: on
 * exact values before and after, in the order of the door, and undone with its group. Deliveries are read
 * from disk.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import { unusedStatistics } from '#broker/subscriptions/subscription-statistics.ts'
import type { Fragment } from '#ngsi-ld/entity/entity.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import {
  defaultTriggers,
  type NotificationTrigger,
  type Subscription,
} from '#ngsi-ld/subscription/subscription.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000
const full = new GatewayError('store.full', 'the disk is full')

const open = brokerOfFile({ synchronous: 'NORMAL' })

function subscription(members: Partial<Subscription> = {}): Subscription {
  return {
    id: 'urn:x:s',
    notificationTrigger: defaultTriggers,
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
    context: [],
    ...members,
  }
}
const subscribe = (members: Partial<Subscription> = {}): Promise<void> =>
  open.broker.subscriptions.create(subscription(members))
const type = (name: string) => ({ entities: [{ types: { kind: 'type', name } as const }] })
const q = (text: string) => ({ q: parseQuery(text, (term) => term) })
const property = (value: unknown, s?: number) => ({
  type: 'Property',
  value,
  ...(s === undefined ? {} : { observedAt: msToDateTime(at(s)) }),
})
const create = (attributes: object = { t: property(0, 0), name: property('a') }): Promise<void> =>
  open.broker.create({ id, type: 'Room', ...attributes }, 'http')
const patch = (attributes: object): Promise<unknown> =>
  open.broker.update(id, attributes as Fragment, { appendMissing: true, by: 'http' })
const remove = (): Promise<void> => open.broker.remove(id, 'http')
const drop = (name: string): Promise<void> =>
  open.broker.deleteAttribute(id, name, { deleteAll: true, by: 'http' })
const seen = (s: number, value: unknown = s) => observe(open, id, 't', at(s), value as never)

const deliveries = (): Delivery[] =>
  open.main.database.prepare<[], Delivery>('SELECT * FROM delivery ORDER BY d').all()
const deliveryCount = (): number => deliveries().length
const values = (): unknown[] => deliveries().map(({ value }) => value && JSON.parse(value))

describe('a trigger', () => {
  const happenings: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['create', () => create()],
    ['observe', () => seen(1)],
    ['update', () => patch({ name: property('b') })],
    ['update as it was', () => patch({ name: property('b') })],
    ['add', () => patch({ more: property(1) })],
    ['drop', () => drop('more')],
    ['late', () => seen(0.5, 7)],
    ['again', () => seen(1)],
    ['remove', () => remove()],
  ]
  const expected: Record<NotificationTrigger, readonly string[]> = {
    entityCreated: ['create'],
    entityUpdated: ['observe', 'update', 'add', 'drop'],
    entityDeleted: ['remove'],
    attributeCreated: ['create', 'add'],
    attributeUpdated: ['observe', 'update'],
    attributeDeleted: ['drop', 'remove'],
  }

  it.each(Object.entries(expected))('%s fires for %j', async (trigger, when) => {
    await subscribe({ notificationTrigger: [trigger as NotificationTrigger] })
    const fired: string[] = []
    for (const [name, happen] of happenings) {
      const before = deliveryCount()
      await happen()
      if (deliveryCount() > before) fired.push(name)
    }
    expect(fired).toEqual(when)
  })

  it('is evaluated for watched attributes only', async () => {
    await subscribe({ watchedAttributes: ['t'] })
    await create()
    await patch({ name: property('b') })
    expect(deliveryCount()).toBe(1)
    await seen(1)
    expect(deliveryCount()).toBe(2)
    await drop('name')
    await patch({ t: property(5, 5), name: property('c') })
    expect(deliveryCount()).toBe(3)
  })
})

describe('a selector', () => {
  it.each([
    ['a type', type('Room'), 1],
    ['another type', type('Car'), 0],
    ['an id', { entities: [{ ids: [id] }] }, 1],
    ['another id', { entities: [{ ids: ['urn:x:car'] }] }, 0],
    ['an id of another type', { entities: [{ ids: [id], types: type('Car').entities[0]!.types }] }, 0],
    ['one of several', { entities: [...type('Car').entities, ...type('Room').entities] }, 1],
    ['nothing in particular', {}, 1],
  ] as const)('of %s decides', async (_, members, count) => {
    await subscribe(members)
    await create()
    await seen(1)
    expect(deliveryCount()).toBe(2 * count)
  })

  it('matches a type that an earlier work of the same group added', async () => {
    await create()
    await seen(1)
    await subscribe(type('Car'))
    await Promise.all([patch({ type: 'Car' }), seen(2)])
    expect(values()).toEqual([2])
  })
})

describe('q', () => {
  beforeEach(() => create())

  it('is evaluated on the entity after the change, also within a group', async () => {
    await subscribe(q('t>5'))
    await Promise.all([seen(1, 9), seen(2, 1), seen(3, 7), patch({ name: property('b') }), seen(4, 2)])
    expect(values()).toEqual([9, 7, null])
  })

  it('may refer to other attributes, whose values are in no document yet', async () => {
    await patch({ u: property(0, 0) })
    await subscribe({ ...q('u==3'), watchedAttributes: ['t'] })
    await seen(1)
    await observe(open, id, 'u', at(1), 3)
    await seen(2)
    expect(values()).toEqual([2])
  })

  it('may refer to system times', async () => {
    await subscribe(q('modifiedAt>="2020-01-01T00:00:00Z"'))
    await seen(1)
    await patch({ name: property('b') })
    expect(deliveryCount()).toBe(2)
  })
})

describe('a group', () => {
  it('that is undone stages no delivery, and its changes are matched again', async () => {
    await create()
    await subscribe({ throttling: 60 })
    open.refuseNextGroup(full)
    await expect(seen(1)).rejects.toThrow('full')
    expect([deliveryCount(), open.announced.length]).toEqual([0, 0])
    await seen(1)
    expect([deliveryCount(), open.announced.length]).toEqual([1, 1])
  })

  it('announces its deliveries after it is on disk, in order', async () => {
    await create()
    await subscribe()
    await Promise.all([seen(1), seen(2), patch({ name: property('b') })])
    expect(open.announced.map(({ d }) => d)).toEqual(deliveries().map(({ d }) => d))
    await open.restart()
    await seen(3)
    const numbers = deliveries().map(({ d }) => d)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers).size).toBe(4)
  })

  it('notifies of changes after the subscription, and of none before it', async () => {
    await create()
    await Promise.all([seen(1), subscribe(), seen(2), open.broker.subscriptions.delete('urn:x:s'), seen(3)])
    // Deleted again together with its subscription.
    expect(deliveryCount()).toBe(0)
    expect(open.announced.map(({ value }) => value)).toEqual(['2'])
  })
})

describe('throttling', () => {
  it('notifies one match per period, and counts the others', async () => {
    await create()
    await subscribe({ throttling: 60 })
    for (const s of [1, 2, 3]) await seen(s)
    open.clock.pass(61_000)
    await seen(4)
    expect(values()).toEqual([1, 4])
    expect(open.broker.subscriptions.get('urn:x:s')!.stats).toMatchObject({ timesThrottled: 2 })
  })

  it('does not depend on the wall clock', async () => {
    await create()
    await subscribe({ throttling: 60 })
    await seen(1)
    open.clock.jump(-3_600_000)
    open.clock.pass(61_000)
    await seen(2)
    expect(values()).toEqual([1, 2])
  })
})

describe('a subscription', () => {
  const list = () =>
    open.broker.subscriptions.list({ limit: 10, offset: 0 }).views.map((one) => one.subscription.id)

  it('that was refused is neither stored nor matched', async () => {
    open.refuseNextGroup(full)
    await expect(subscribe()).rejects.toThrow('full')
    await create()
    expect([list(), deliveryCount()]).toEqual([[], 0])
    await subscribe()
    expect(list()).toEqual(['urn:x:s'])
  })

  it('is visible to readers once it is on disk, not before', async () => {
    const created = subscribe()
    let isListed = false
    await open.main.door.commit((stage) => {
      stage.write('meta.put', 'x', 1)
      isListed = list().length > 0
    })
    await created
    expect([isListed, list().length]).toEqual([false, 1])
  })

  it('whose change or deletion was refused continues unchanged', async () => {
    await create()
    await subscribe({ ...type('Room'), throttling: 60 })
    await seen(1)
    open.refuseNextGroup(full)
    const patched = open.broker.subscriptions.patch('urn:x:s', (before) => ({ ...before, isActive: false }))
    await expect(patched).rejects.toThrow('full')
    open.refuseNextGroup(full)
    await expect(open.broker.subscriptions.delete('urn:x:s')).rejects.toThrow('full')
    expect(open.broker.subscriptions.get('urn:x:s')!.subscription.isActive).toBeUndefined()
    await seen(2)
    open.clock.pass(61_000)
    await seen(3)
    expect(values()).toEqual([1, 3])
  })

  it('survives a restart unchanged, also if paused, expired or updated', async () => {
    await create()
    await subscribe()
    await subscribe({ id: 'urn:x:paused', isActive: false })
    await subscribe({ id: 'urn:x:expired', expiresAt: open.clock.now() + 1000 })
    await open.broker.subscriptions.patch('urn:x:s', (before) => ({ ...before, watchedAttributes: ['t'] }))
    const { modifiedAt } = open.broker.subscriptions.get('urn:x:s')!.stats
    open.clock.pass(2000)
    await open.restart()
    expect(list()).toEqual(['urn:x:s', 'urn:x:paused', 'urn:x:expired'])
    expect(open.broker.subscriptions.get('urn:x:s')!.stats.modifiedAt).toBe(modifiedAt)
    await patch({ name: property('b') })
    await seen(1)
    expect(values()).toEqual([1])
  })

  it('moves its pending deliveries to a new endpoint, and deletes them with itself', async () => {
    await create()
    await subscribe()
    await seen(1)
    const uri = 'http://127.0.0.1:10/'
    await open.broker.subscriptions.patch('urn:x:s', (before) => ({
      ...before,
      notification: { endpoint: { uri } },
    }))
    expect(deliveries().map(({ endpoint }) => endpoint)).toEqual([uri])
    await open.broker.subscriptions.delete('urn:x:s')
    expect(deliveryCount()).toBe(0)
  })

  it('with an invalid q on disk does not keep the gateway from starting, and matches nothing', async () => {
    await create()
    await subscribe(q('t>5'))
    await subscribe({ id: 'urn:x:good' })
    const [row] = open.main.records.subscriptions()
    const doc = JSON.stringify({ ...(JSON.parse(row!.doc) as object), q: { kind: 'term', path: null } })
    await open.main.door.commit((stage) => stage.write('subscription.update', doc, row!.i))
    await open.restart()
    expect(open.logged.map(({ event }) => event)).toContain('gateway.fault')
    expect(list()).toEqual(['urn:x:s', 'urn:x:good'])
    await seen(1, 9)
    expect(deliveries().map(({ sub }) => sub)).toEqual([2])
    await open.broker.subscriptions.delete('urn:x:s')
    await open.restart()
    expect(list()).toEqual(['urn:x:good'])
  })

  it('with invalid JSON on disk does not keep the gateway from starting', async () => {
    await subscribe()
    await open.main.door.commit((stage) => stage.write('subscription.update', '{', 1))
    await open.restart()
    expect(list()).toEqual([])
    expect(open.logged.map(({ event }) => event)).toContain('gateway.fault')
    await subscribe({ id: 'urn:x:other' })
    await create()
    expect(deliveryCount()).toBe(1)
  })
})

it('scopes and linked entities work as filters, linked ones with their state in the same group', async () => {
  await open.broker.create(
    { id: 'urn:x:site', type: 'Site', open: { type: 'Property', value: false } },
    'http',
  )
  await open.broker.create(
    { id, type: 'Room', scope: ['/a/b'], in: { type: 'Relationship', object: 'urn:x:site' } },
    'http',
  )
  await subscribe({ ...type('Room'), scopeQ: parseScopeQuery('/a/#'), ...q('in{open}==true') })
  await subscribe({ id: 'urn:x:s2', ...type('Room'), scopeQ: parseScopeQuery('/b/#') })
  await patch({ t: property(1) })
  expect(deliveryCount()).toBe(0)
  const opened = { open: property(true) } as Fragment
  await Promise.all([
    open.broker.update('urn:x:site', opened, { appendMissing: true, by: 'http' }),
    patch({ t: property(2) }),
  ])
  expect(deliveryCount()).toBe(1)
})

it('of ten thousand subscriptions, only those found by id, type and attribute are evaluated', async () => {
  const { matcher } = open.inside
  const any = (name: string) => ({ kind: 'type', name }) as const
  const kinds: readonly ((n: number) => Partial<Subscription>)[] = [
    (n) => ({ entities: [{ types: any('Room'), ids: [`urn:x:other:${n}`] }] }),
    (n) => type(`Type${n}`),
    (n) => ({ ...type('Room'), watchedAttributes: [`a${n}`] }),
    (n) => ({ watchedAttributes: [`a${n}`] }),
    (n) => ({ entities: [{ types: { kind: 'or', parts: [any(`Type${n}`), any(`Kind${n}`)] } }] }),
    (n) => ({
      entities: [{ types: { kind: 'and', parts: [any('Room'), any(`Kind${n}`)] } }],
      watchedAttributes: [`a${n}`],
    }),
  ]
  for (let n = 0; n < 9_999; n++) {
    const made = subscription({ id: `urn:x:s${n}`, ...kinds[n % kinds.length]!(n) })
    matcher.register(n + 1, made, unusedStatistics(0))
  }
  await subscribe({ ...type('Room'), watchedAttributes: ['t'] })
  await create()
  const before = matcher.evaluated()
  for (let i = 1; i <= 100; i++) await patch({ t: property(i), name: property(`n${i}`) })
  await drop('name')
  expect(deliveryCount()).toBe(101)
  expect(matcher.evaluated() - before).toBeLessThanOrEqual(101)
})

describe('patterns of subscriptions', () => {
  it('have a bounded cost per change; patterns beyond it do not match and are counted', async () => {
    const uncompared = () => open.metrics.counter('selvedge_subscriptions_uncompared_total').value
    await subscribe({ id: 'urn:x:short', ...type('Room'), ...q('name~="(a|aa)+$"') })
    await create({ name: property('a'.repeat(1000)) })
    expect([deliveryCount(), uncompared()]).toEqual([1, 0])
    for (let i = 0; i < 20; i++)
      await subscribe({ id: `urn:x:${i}`, ...type('Room'), ...q(`name!~="(a|aa){${i + 1}}b$"`) })
    await patch({ name: property('a'.repeat(50_000)) })
    expect(uncompared()).toBeGreaterThan(0)
    expect(deliveryCount() - 1 + uncompared()).toBe(21)
  })
})
