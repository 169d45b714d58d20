/** Creating, changing and reading subscriptions; each rejection names the member. */
import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import {
  defaultTriggers,
  isActive,
  notificationOf,
  renderSubscription,
  type Subscription,
  statusOf,
} from './subscription.ts'
import { parseSubscription, patchSubscription } from './subscription-parse.ts'

const context = {
  expand: (term: string): string => (term.startsWith('s:') ? `https://s.org/${term.slice(2)}` : term),
  compact: (name: string): string => name.replace('https://s.org/', 's:'),
  reference: ['https://s.org/context.jsonld'],
}
const nowMs = Date.UTC(2025, 0, 1)
const options = { context, nowMs, newId: () => 'urn:ngsi-ld:Subscription:new' }
const parse = (json: unknown): Subscription => parseSubscription(json, options)
const patch = (before: Subscription, json: unknown): Subscription => patchSubscription(before, json, options)
const render = (subscription: Subscription, more = {}): unknown =>
  renderSubscription(subscription, { context, nowMs, ...more })

const endpoint = { uri: 'http://localhost:1111/notify' }
const small = { type: 'Subscription', entities: [{ type: 's:Building' }], notification: { endpoint } }
const full = {
  id: 'urn:ngsi-ld:Subscription:1',
  type: 'Subscription',
  subscriptionName: 'warm rooms',
  description: 'what it is for',
  entities: [
    { id: 'urn:e:1', type: 's:Room' },
    { idPattern: '^urn:e', type: '(A;B),C' },
  ],
  watchedAttributes: ['s:temperature', 'name'],
  notificationTrigger: ['entityCreated', 'attributeUpdated'],
  throttling: 5,
  q: 's:temperature>20;name~="^a"',
  scopeQ: '/a/+;/b/#',
  expandValues: ['s:kind'],
  jsonKeys: ['name'],
  lang: 'en,de;q=0.5',
  datasetId: ['@none', 'urn:x:d'],
  jsonldContext: 'https://s.org/other.jsonld',
  geoQ: { georel: 'near;maxDistance==2000', geometry: 'Point', coordinates: [8, 40], geoproperty: 's:place' },
  localOnly: false,
  isActive: true,
  expiresAt: '2030-08-01T22:07:00Z',
  notification: {
    attributes: ['s:temperature'],
    format: 'keyValues',
    sysAttrs: true,
    showChanges: false,
    endpoint: {
      uri: 'https://x.org/notify?a=b',
      accept: 'application/ld+json',
      timeout: 1000,
      cooldown: 500,
      receiverInfo: [{ key: 'X-Plant', value: 'Value' }],
      notifierInfo: [{ key: 'k', value: 'v' }],
    },
  },
}

const nothing = 'urn:ngsi-ld:null'

describe('a subscription', () => {
  it('stores canonical names and is plain JSON', () => {
    const subscription = parse(full)
    expect(JSON.parse(JSON.stringify(subscription))).toEqual(subscription)
    expect(subscription).toMatchObject({
      id: 'urn:ngsi-ld:Subscription:1',
      name: 'warm rooms',
      watchedAttributes: ['https://s.org/temperature', 'name'],
      expiresAt: Date.UTC(2030, 7, 1, 22, 7),
      geoQ: { property: 'https://s.org/place' },
      context: context.reference,
    })
  })

  it('is rendered as it was written', () => {
    expect(render(parse(full))).toEqual({
      ...full,
      entities: [full.entities[0], { idPattern: '^urn:e', type: 'A;B,C' }],
      status: 'active',
    })
    expect(render(parse(small))).toEqual({
      ...small,
      id: 'urn:ngsi-ld:Subscription:new',
      notificationTrigger: ['attributeCreated', 'attributeUpdated'],
      status: 'active',
    })
  })

  it('accepts spellings of older clients, and those that JSON-LD allows', () => {
    expect(parse({ ...small, name: 'old', expires: '2030-01-01T00:00:00Z' })).toMatchObject({
      name: 'old',
      expiresAt: Date.UTC(2030, 0, 1),
    })
    expect(
      parse({
        '@id': 'urn:x:1',
        '@type': 'Subscription',
        '@context': 'x',
        entities: { '@type': 'A' },
        watchedAttributes: 'b',
        notification: { endpoint },
      }),
    ).toMatchObject({
      id: 'urn:x:1',
      entities: [{ types: { kind: 'type', name: 'A' } }],
      watchedAttributes: ['b'],
    })
  })

  it('ignores members that only the gateway sets', () => {
    const subscription = parse({
      ...small,
      status: 'expired',
      createdAt: 'x',
      notification: { endpoint, timesSent: 42, lastFailure: 'x', status: 'failed' },
    })
    expect(render(subscription)).toEqual(render(parse(small)))
  })

  it('requires entities or attributes, unless it is local', () => {
    const { entities, ...without } = small
    expect(() => parse(without)).toThrow(/entities or watchedAttributes/)
    expect(parse({ ...without, watchedAttributes: ['a'] }).entities).toBeUndefined()
    expect(parse({ ...without, localOnly: true }).localOnly).toBe(true)
    expect(entities).toHaveLength(1)
  })

  it.each<[object, RegExp]>([
    [{ type: 'Other' }, /^type: /],
    [{ type: undefined }, /^type: /],
    [{ id: 'invalidId' }, /^id: /],
    [{ id: '' }, /^id: /],
    [{ entities: [] }, /^entities: /],
    [{ entities: [{}] }, /^entities\[0\]\.type: /],
    [{ watchedAttributes: [] }, /^watchedAttributes: /],
    [{ watchedAttributes: [7] }, /^watchedAttributes: /],
    [{ watchedAttributes: ['a b'] }, /^watchedAttributes: /],
    [{ notificationTrigger: ['entityChanged'] }, /^notificationTrigger: /],
    [{ notificationTrigger: [] }, /^notificationTrigger: /],
    [
      { timeInterval: 10, watchedAttributes: ['a'] },
      /^timeInterval: cannot be combined with watchedAttributes/,
    ],
    [{ timeInterval: 10, throttling: 5 }, /^timeInterval: cannot be combined with throttling/],
    [{ timeInterval: -1 }, /^timeInterval: /],
    [{ throttling: -30 }, /^throttling: /],
    [{ lang: ' ' }, /^lang: /],
    [{ scopeQ: 'a' }, /^scopeQ: /],
    [{ notification: { endpoint, pick: ['a{b}'] } }, /^notification\.pick: must not reach further/],
    [
      { notification: { endpoint, join: 'flat', pick: ['a{b{c}}'] } },
      /^notification\.pick: must not reach further/,
    ],
    [{ notification: { endpoint, join: 'flat', joinLevel: 0 } }, /^notification\.joinLevel: /],
    [{ datasetId: [] }, /^datasetId: /],
    [{ datasetId: ['x'] }, /^datasetId: /],
    [{ jsonldContext: 'urn:x' }, /^jsonldContext: /],
    [{ notification: { endpoint, pick: ['id'], omit: ['id'] } }, /^notification\.omit: /],
    [{ notification: { endpoint, pick: ['id'], attributes: ['t'] } }, /^notification\.pick: /],
    [{ notification: { endpoint, omit: ['id'], attributes: ['t'] } }, /^notification\.omit: /],
    [{ notification: { endpoint, showChanges: true, format: 'simplified' } }, /showChanges: /],
    [{ notification: { endpoint, joinLevel: 1 } }, /^notification\.joinLevel: /],
    [{ notification: { endpoint: { uri: 'mqtt://x.org' } } }, /must have a topic/],
    [{ notification: { endpoint: { uri: 'mqtt://x.org/a/+' } } }, /wildcard/],
    [
      {
        notification: {
          endpoint: { uri: 'mqtt://x.org/a', notifierInfo: [{ key: 'MQTT-QoS', value: '3' }] },
        },
      },
      /notifierInfo: MQTT-QoS/,
    ],
    [{ q: 'speed>' }, /^q: /],
    [{ q: 7 }, /^q: /],
    [{ geoQ: { georel: 'near' } }, /^geometry: /],
    [{ geoQ: {} }, /^geoQ: /],
    [{ geoQ: 'x' }, /^geoQ: /],
    [{ isActive: 'yes' }, /^isActive: /],
    [{ expiresAt: '2000-01-01T00:00:00Z' }, /^expiresAt: must be in the future/],
    [{ expiresAt: 'tomorrow' }, /^expiresAt: /],
    [{ expiresAt: null }, /^expiresAt: /],
    ...['description', 'subscriptionName', 'q', 'lang', 'csf', 'temporalQ'].map((name): [object, RegExp] => [
      { [name]: nothing },
      new RegExp(`^${name}: urn:ngsi-ld:null is not allowed here`),
    ]),
    [{ watchedAttributes: ['id'] }, /^watchedAttributes: id is not an attribute/],
    [{ notification: { endpoint, attributes: ['id', 'type'] } }, /^notification\.attributes: id is no/],
    [{ subscriptionName: '' }, /^subscriptionName: /],
    [{ unknownMember: 1 }, /^unknownMember: is not a member/],
    [{ constructor: 1 }, /^constructor: is not a member/],
    [{ notification: undefined }, /^notification: /],
    [{ notification: 7 }, /^notification: /],
    [{ notification: {} }, /^notification\.endpoint: /],
    [{ notification: { endpoint, formt: 1 } }, /^notification\.formt: /],
    [{ notification: { endpoint, format: 'xml' } }, /^notification\.format: /],
    [{ notification: { endpoint, attributes: [] } }, /^notification\.attributes: /],
    [{ notification: { endpoint, sysAttrs: 1 } }, /^notification\.sysAttrs: /],
    [{ notification: { endpoint: {} } }, /^notification\.endpoint\.uri: /],
    [{ notification: { endpoint: { uri: 'ftp://x.org' } } }, /^notification\.endpoint\.uri: /],
    [{ notification: { endpoint: { uri: 'http://' } } }, /^notification\.endpoint\.uri: /],
    [{ notification: { endpoint: { ...endpoint, port: 1 } } }, /^notification\.endpoint\.port: /],
    [
      { notification: { endpoint: { ...endpoint, accept: 'text/html' } } },
      /^notification\.endpoint\.accept: /,
    ],
    [{ notification: { endpoint: { ...endpoint, timeout: 0 } } }, /^notification\.endpoint\.timeout: /],
    [{ notification: { endpoint: { ...endpoint, receiverInfo: 'x' } } }, /receiverInfo: /],
    [{ notification: { endpoint: { ...endpoint, receiverInfo: ['x'] } } }, /receiverInfo: /],
    [
      { notification: { endpoint: { ...endpoint, receiverInfo: [{ key: 'a b', value: 'x' }] } } },
      /receiverInfo\.key: /,
    ],
    [
      { notification: { endpoint: { ...endpoint, receiverInfo: [{ key: 'Content-Length', value: '1' }] } } },
      /receiverInfo\.key: /,
    ],
    [
      { notification: { endpoint: { ...endpoint, receiverInfo: [{ key: 'X', value: 'a\r\nY: b' }] } } },
      /receiverInfo\.value: /,
    ],
  ])('rejects %j', (change, reason) => {
    const json = Object.fromEntries(
      Object.entries({ ...small, ...change }).filter(([, value]) => value !== undefined),
    )
    expect(() => parse(json)).toThrow(reason)
    try {
      parse(json)
    } catch (error) {
      expect(isGatewayError(error, 'ngsi-ld.bad-request-data')).toBe(true)
    }
  })

  it('stores its source filter, and whether sources hold parts of entities', () => {
    const said = { csf: 'region=="north"', splitEntities: true }
    expect(render(parse({ ...small, ...said }))).toMatchObject(said)
    expect(render(patch(parse({ ...small, ...said }), { csf: nothing, splitEntities: nothing }))).toEqual(
      render(parse(small)),
    )
    for (const wrong of [{ csf: 7 }, { csf: 'a==' }, { splitEntities: 'yes' }, { temporalQ: {} }])
      expect(() => parse({ ...small, ...wrong })).toThrow(/^(csf|q|splitEntities|temporalQ): /)
  })

  it.each([[undefined], [null], [[]], ['text'], [7]])('rejects %j', (json) => {
    expect(() => parse(json)).toThrow(/JSON object/)
  })
})

describe('a fragment', () => {
  const before = parse(full)

  it('replaces whole members and removes those that are NGSI-LD Null', () => {
    const after = patch(before, {
      type: 'Subscription',
      throttling: nothing,
      subscriptionName: nothing,
      expires: nothing,
      q: 's:x==1',
      notification: { endpoint },
    })
    const { throttling, name, expiresAt, ...rest } = before
    expect([throttling, name, expiresAt]).not.toContain(undefined)
    expect(after).toEqual({ ...rest, q: parse({ ...small, q: 's:x==1' }).q, notification: { endpoint } })
  })

  it('removes each optional member by NGSI-LD Null', () => {
    const optional = Object.keys(full).filter(
      (name) => !['id', 'type', '@context', 'notification'].includes(name),
    )
    let after = patch(before, { watchedAttributes: full.watchedAttributes })
    for (const name of optional) {
      if (name === 'entities' || name === 'watchedAttributes') continue
      after = patch(after, { [name]: nothing })
      if (name === 'notificationTrigger') expect(after.notificationTrigger).toEqual(defaultTriggers)
      else expect(render(after)).not.toHaveProperty(name)
    }
    after = patch(after, { watchedAttributes: nothing })
    expect(Object.keys(render(after) as object)).not.toContain('watchedAttributes')
    expect(() => patch(after, { entities: nothing })).toThrow(/^entities: /)
    const there = { ...endpoint, accept: nothing, timeout: nothing }
    const bare = patch(after, { notification: { format: nothing, attributes: nothing, endpoint: there } })
    expect(bare.notification).toEqual({ endpoint: { uri: endpoint.uri } })
  })

  it('may not remove a required member', () => {
    expect(() => patch(before, { notification: nothing })).toThrow(/^notification: /)
    expect(() => patch(before, { notification: { format: 'keyValues' } })).toThrow(
      /^notification\.endpoint: /,
    )
    expect(() => patch(before, { notification: { endpoint: nothing } })).toThrow(/^notification\.endpoint: /)
    expect(() => patch(before, { entities: nothing, watchedAttributes: nothing })).toThrow(/^entities: /)
    expect(() => patch(before, { type: nothing })).toThrow(/^type: /)
    expect(() => patch(before, { id: 'urn:other:1' })).toThrow(/^id: /)
    expect(() => patch(before, { expandValues: ['a'] })).toThrow(/^expandValues: /)
    expect(() => patch(before, { unheard: nothing })).toThrow(/^unheard: /)
    expect(() => patch(before, { expiresAt: '2020-01-01T00:00:00Z' })).toThrow(/future/)
    expect(patch(before, { id: before.id, timeInterval: nothing, csf: nothing })).toEqual(before)
  })

  it('rejects JSON null wherever NGSI-LD Null removes', () => {
    expect(() => patch(before, { description: null })).toThrow(/^description: null is not a value/)
    for (const notification of [{ endpoint, format: null }, { endpoint: { ...endpoint, accept: null } }])
      expect(() => patch(before, { notification })).toThrow(/null is not a value/)
  })

  it('reactivates a paused subscription, and an expired one only with a new expiry', () => {
    const paused = patch(before, { isActive: false })
    expect(statusOf(paused, nowMs)).toBe('paused')
    expect(statusOf(patch(paused, { isActive: true }), nowMs)).toBe('active')
    const later = Date.UTC(2031, 0, 1)
    expect(statusOf(before, later)).toBe('expired')
    expect(statusOf(patchSubscription(before, { isActive: true }, { ...options, nowMs: later }), later)).toBe(
      'expired',
    )
    const renewed = patchSubscription(
      before,
      { expiresAt: '2032-01-01T00:00:00Z' },
      { ...options, nowMs: later },
    )
    expect(isActive(renewed, later)).toBe(true)
    const stopped = patchSubscription(
      patch(before, { isActive: false }),
      { expiresAt: '2032-01-01T00:00:00Z' },
      { ...options, nowMs: later },
    )
    expect(isActive(stopped, later)).toBe(true)
  })

  it('stores its options for linked entities', () => {
    const notification = { endpoint, join: 'inline', joinLevel: 2, pick: ['name', 's:in{s:name,s:of{id}}'] }
    expect(render(parse({ ...small, notification }))).toMatchObject({ notification })
  })

  it('may not combine an interval with watched attributes', () => {
    const { throttling: _, watchedAttributes: __, ...rest } = full
    const periodic = parse({ ...rest, timeInterval: 10 })
    expect(render(periodic)).toMatchObject({ timeInterval: 10 })
    expect(() => patch(periodic, { throttling: 5 })).toThrow(/^timeInterval: /)
    expect(() => patch(before, { timeInterval: 5 })).toThrow(/^timeInterval: /)
  })
})

describe('other functions of a subscription', () => {
  it('builds the body of a notification', () => {
    const data = '[{"id":"urn:e:1"}]'
    expect(
      JSON.parse(notificationOf(parse(full), { id: 'urn:n:1', notifiedAtMs: nowMs, data })) as unknown,
    ).toEqual({
      id: 'urn:n:1',
      type: 'Notification',
      subscriptionId: 'urn:ngsi-ld:Subscription:1',
      notifiedAt: '2025-01-01T00:00:00Z',
      data: [{ id: 'urn:e:1' }],
    })
  })

  it('shows the results of its notifications', () => {
    const times = { createdAt: nowMs, modifiedAt: nowMs + 1000 }
    const statistics = {
      timesSent: 3,
      timesFailed: 1,
      lastNotification: nowMs,
      lastSuccess: nowMs - 1000,
      lastFailure: nowMs,
      ...times,
    }
    expect(render(parse(small), { statistics })).toMatchObject({
      notification: {
        status: 'failed',
        timesSent: 3,
        timesFailed: 1,
        lastNotification: '2025-01-01T00:00:00Z',
        lastSuccess: '2024-12-31T23:59:59Z',
        lastFailure: '2025-01-01T00:00:00Z',
      },
    })
    expect(render(parse(small), { statistics })).not.toHaveProperty('createdAt')
    expect(
      render(parse(small), { statistics: { ...statistics, lastSuccess: nowMs }, sysAttrs: true }),
    ).toMatchObject({
      createdAt: '2025-01-01T00:00:00Z',
      modifiedAt: '2025-01-01T00:00:01Z',
      notification: { status: 'ok' },
    })
    expect(render(parse(small), { statistics: { timesSent: 0, timesFailed: 0 } })).toMatchObject({
      notification: { endpoint },
    })
  })
})
