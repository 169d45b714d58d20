/**
 * Two gateways and one centre: each adds a scope prefix of its own to what it sends, into a tenant of the
 * centre, so that sites can be distinguished. The prefix is no difference in a reconciliation, and is updated
 * when the setting changes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const v1 = '/ngsi-ld/v1'
const tenant = { 'NGSILD-Tenant': 'sites' }
const withinMs = { interval: 100 }
const at = (minute: number): string =>
  new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString().replace('.000', '')

interface Shown {
  readonly id: string
  readonly scope?: string | readonly string[]
}

setLimit('reconcileNoteMs', 300)
afterAll(restoreLimits)

describe('two gateways and one centre', () => {
  let folders: string
  let sites: GatewayInside[]
  let centre: GatewayInside

  const send = async (
    to: GatewayInside,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<void> => {
    const answer = await to.send(method, path, body, headers)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const pairsOf = (scope: string | undefined) => [
    { key: 'selvedge:mode', value: 'uplink' },
    ...(scope === undefined ? [] : [{ key: 'selvedge:scope', value: scope }]),
  ]
  const endpoint = (scope: string | undefined) => ({
    uri: `http://127.0.0.1:${centre.httpPort}${v1}`,
    receiverInfo: [{ key: 'NGSILD-Tenant', value: 'sites' }],
    notifierInfo: pairsOf(scope),
  })
  const feed = (from: GatewayInside, scope: string | undefined): Promise<void> =>
    send(from, 'POST', `${v1}/subscriptions`, {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: { endpoint: endpoint(scope) },
    })
  const move = (from: GatewayInside, scope: string | undefined): Promise<void> =>
    send(from, 'PATCH', `${v1}/subscriptions/urn:up`, { notification: { endpoint: endpoint(scope) } })
  const level = (value: number) => ({ level: { type: 'Property', value, observedAt: at(value) } })
  const tank = (id: string, more: object = {}) => ({
    id: `urn:tank:${id}`,
    type: 'Tank',
    ...level(1),
    ...more,
  })
  const scopesIn = async (query = ''): Promise<Record<string, Shown['scope']>> => {
    const answer = await centre.get(`${v1}/entities?type=Tank&limit=1000${query}`, tenant)
    const all: readonly Shown[] = answer.json()
    return Object.fromEntries(all.map(({ id, scope }) => [id.slice('urn:tank:'.length), scope]))
  }
  const expectScopes = (expected: Record<string, unknown>, query?: string): Promise<void> =>
    vi.waitFor(async () => expect(await scopesIn(query)).toStrictEqual(expected), withinMs)
  const reportOf = async (of: GatewayInside): Promise<Record<string, unknown> | undefined> =>
    ((await of.get('/selvedge/v1/uplinks/urn:up')).json() as { reconcile?: Record<string, unknown> })
      .reconcile
  const done = (of: GatewayInside, what: object): Promise<void> =>
    vi.waitFor(async () => expect(await reportOf(of)).toMatchObject({ phase: 'done', ...what }), withinMs)

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-many-'))
    const all = ['centre', 'one', 'two'].map((name) => startGatewayInside(join(folders, name)))
    ;[centre, ...sites] = (await Promise.all(all)) as [GatewayInside, ...GatewayInside[]]
  })
  afterEach(async () => {
    await Promise.all([centre, ...sites].map((one) => one.close()))
    rmSync(folders, { recursive: true })
  })

  it('report each other where both write the same attribute of an entity', async () => {
    const [one, two] = sites as [GatewayInside, GatewayInside]
    await Promise.all([feed(one, undefined), feed(two, undefined)])
    const name = (value: string) => ({ name: { type: 'Property', value } })
    await send(one, 'POST', `${v1}/entities`, tank('a', name('one')))
    await send(one, 'POST', `${v1}/entities`, { id: 'urn:tank:b', type: 'Tank', ...name('one') })
    await expectScopes({ a: undefined, b: undefined })
    // Another attribute of the same entity is no collision.
    await send(two, 'POST', `${v1}/entities`, { id: 'urn:tank:b', type: 'Tank', ...level(2) })
    await send(two, 'POST', `${v1}/entities`, { id: 'urn:tank:a', type: 'Tank', ...level(2) })
    const levelThere = (value: number): Promise<void> =>
      vi.waitFor(async () => {
        const there: { level: { value: number } } = (
          await centre.get(`${v1}/entities/urn:tank:a`, tenant)
        ).json()
        expect(there.level.value).toBe(value)
      }, withinMs)
    await levelThere(2)
    for (const [value, of] of [3, 4, 5].map((n) => [n, sites[n % 2]!] as const)) {
      await send(of, 'PATCH', `${v1}/entities/urn:tank:a/attrs`, level(value))
      await levelThere(value)
    }
    const told = async (of: GatewayInside): Promise<unknown> =>
      ((await of.get('/selvedge/v1/uplinks/urn:up')).json() as { collisions?: unknown }).collisions
    for (const of of [one, two])
      await vi.waitFor(
        async () => expect(await told(of)).toMatchObject([{ entities: 1, entity: 'urn:tank:a' }]),
        withinMs,
      )
    const [{ origin }] = (await told(one)) as [{ origin: string }]
    const info: { contextSourceAlias: string } = (await two.get(`${v1}/info/sourceIdentity`)).json()
    expect(origin).toBe(info.contextSourceAlias)
    expect((await one.get('/metrics')).text).toContain('selvedge_uplink_collisions{uplink="urn:up"} 1')
    expect((await one.get('/health/ready')).text).toContain('such as urn:tank:a')
    expect((await centre.get('/metrics')).text).toMatch(/^selvedge_two_origins_total [1-9]/m)
    // Unobserved attributes, too.
    await send(two, 'PATCH', `${v1}/entities/urn:tank:b/attrs`, level(3))
    await send(two, 'POST', `${v1}/entities/urn:tank:b/attrs`, name('two'))
    await vi.waitFor(async () => expect(await told(two)).toMatchObject([{ entities: 2 }]), withinMs)
  })

  it('are distinguished by scopes in a tenant', async () => {
    const [one, two] = sites as [GatewayInside, GatewayInside]
    await send(one, 'POST', `${v1}/entities`, tank('a', { scope: '/floor/1' }))
    await send(one, 'POST', `${v1}/entities`, tank('b'))
    await feed(one, '/site-1')
    await feed(two, '/site-2')
    await send(two, 'POST', `${v1}/entities`, tank('c', { scope: ['/floor/1', '/cold'] }))
    await send(two, 'POST', `${v1}/entities`, tank('d'))
    const all = { a: '/site-1/floor/1', b: '/site-1', c: ['/site-2/floor/1', '/site-2/cold'], d: '/site-2' }
    await expectScopes(all)
    expect(Object.keys(await scopesIn('&scopeQ=/site-1/%23'))).toEqual(['a', 'b'])
    expect(Object.keys(await scopesIn('&scopeQ=/%2B/floor/1')).toSorted()).toEqual(['a', 'c'])
    const untouched = await centre.get(`${v1}/entities?type=Tank`)
    expect(untouched.text).toBe('[]')

    // Values leave the scope unchanged; scope changes here are applied there, and a removed scope leaves the
    // prefix.
    await send(one, 'PATCH', `${v1}/entities/urn:tank:a/attrs`, level(2))
    await send(one, 'POST', `${v1}/entities/urn:tank:b/attrs`, { scope: '/roof' })
    await send(two, 'DELETE', `${v1}/entities/urn:tank:c/attrs/scope`)
    await expectScopes({ ...all, b: '/site-1/roof', c: '/site-2' })
    await vi.waitFor(async () => {
      const seen = await centre.get(`${v1}/entities/urn:tank:a`, tenant)
      expect(seen.json()).toMatchObject({ scope: '/site-1/floor/1', level: { value: 2 } })
    }, withinMs)
    expect((await one.get(`${v1}/entities/urn:tank:a`)).json()).toMatchObject({ scope: '/floor/1' })

    // A reconciliation finds no difference.
    for (const each of sites) {
      await send(each, 'POST', '/selvedge/v1/uplinks/urn:up/reconcile')
      await done(each, { reason: 'asked', compared: 2, missing: 0, different: 0, surplus: 0, days: 0 })
    }
  })

  it('change their scopes with the setting, and send nothing else', async () => {
    const [one, two] = sites as [GatewayInside, GatewayInside]
    await feed(one, '/site-1')
    await feed(two, '/site-2')
    for (let i = 0; i < 5; i++) await send(one, 'POST', `${v1}/entities`, tank(`a${i}`))
    await send(one, 'POST', `${v1}/entities`, tank('a5', { scope: '/floor/1' }))
    await send(two, 'POST', `${v1}/entities`, tank('b', { scope: '/x' }))
    const many = (scope: string | undefined, floor: string) =>
      Object.fromEntries([
        ...Array.from({ length: 5 }, (_, i) => [`a${i}`, scope] as const),
        ['a5', floor],
        ['b', '/site-2/x'],
      ])
    await expectScopes(many('/site-1', '/site-1/floor/1'))
    // A write that the centre has, but whose response is still on its way, is sent again with the new scope.
    await vi.waitFor(
      async () =>
        expect((await one.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({
          state: 'live',
          behindSeconds: 0,
        }),
      withinMs,
    )
    await move(one, '/plant/7')
    await expectScopes(many('/plant/7', '/plant/7/floor/1'))
    await done(one, { reason: 'scope', placedBefore: '/site-1', missing: 0, different: 6, days: 0 })
    await move(one, undefined)
    await expectScopes(many(undefined, '/floor/1'))
    await done(one, { reason: 'scope', placedBefore: '/plant/7', different: 6 })
    await send(one, 'POST', '/selvedge/v1/uplinks/urn:up/reconcile')
    await done(one, { reason: 'asked', compared: 6, missing: 0, different: 0 })
  })

  it('keep the histories of deleted entities apart, too', async () => {
    const [one] = sites as [GatewayInside]
    await send(one, 'POST', `${v1}/entities`, tank('a', { scope: '/floor/1' }))
    await send(one, 'PATCH', `${v1}/entities/urn:tank:a/attrs`, level(2))
    await send(one, 'DELETE', `${v1}/entities/urn:tank:a`)
    await feed(one, '/site-1')
    await vi.waitFor(async () => {
      const seen = await centre.get(
        `${v1}/temporal/entities?type=Tank&scopeQ=/site-1/floor/1&options=temporalValues&timerel=after&timeAt=2025-01-01T00:00:00Z`,
        tenant,
      )
      expect(seen.json()).toMatchObject([
        {
          id: 'urn:tank:a',
          level: {
            values: [
              [1, at(1)],
              [2, at(2)],
            ],
          },
        },
      ])
    }, withinMs)
    await expectScopes({})
  })

  it.each([
    [
      'one by one',
      async (to: GatewayInside, ids: readonly string[]) => {
        for (const id of ids) await send(to, 'DELETE', `${v1}/entities/${id}`)
      },
    ],
    [
      'by a batch',
      (to: GatewayInside, ids: readonly string[]) => send(to, 'POST', `${v1}/entityOperations/delete`, ids),
    ],
    ['by a purge', (to: GatewayInside) => send(to, 'DELETE', `${v1}/entities?type=Tank`)],
  ] as const)(
    'delete no attributes of other clients at the centre when they delete %s',
    async (_, remove) => {
      const [one, two] = sites as [GatewayInside, GatewayInside]
      const text = (value: string) => ({ type: 'Property', value })
      const told = (of: GatewayInside, id: string, more: object) =>
        send(of, 'POST', `${v1}/entities`, { id: `urn:tank:${id}`, type: 'Tank', ...more })
      await feed(one, undefined)
      await feed(two, undefined)
      // Two entities all its own, one shared with the other gateway, one with a note written at the centre.
      await told(one, 'a', { ...level(1), name: text('a') })
      await told(one, 'b', { name: text('b') })
      await told(one, 'shared', { ...level(1), name: text('shared') })
      await told(one, 'noted', { name: text('noted') })
      await told(two, 'shared', { pressure: text('of the other') })
      await expectScopes({ a: undefined, b: undefined, noted: undefined, shared: undefined })
      const note = { note: text('of the centre') }
      await vi.waitFor(async () => {
        const seen = await centre.get(`${v1}/entities/urn:tank:shared?options=keyValues`, tenant)
        expect(seen.json()).toMatchObject({ level: 1, pressure: 'of the other' })
      }, withinMs)
      const noted = await centre.send('POST', `${v1}/entities/urn:tank:noted/attrs`, note, tenant)
      expect(noted.status).toBe(204)
      await remove(
        one,
        ['a', 'b', 'shared', 'noted'].map((id) => `urn:tank:${id}`),
      )
      await vi.waitFor(async () => {
        const left = await centre.get(`${v1}/entities?type=Tank&options=keyValues`, tenant)
        expect((left.json() as Shown[]).toSorted((x, y) => x.id.localeCompare(y.id))).toEqual([
          { id: 'urn:tank:noted', type: 'Tank', note: 'of the centre' },
          { id: 'urn:tank:shared', type: 'Tank', pressure: 'of the other' },
        ])
      }, withinMs)
      // A reconciliation does not delete what they are now.
      await send(one, 'POST', '/selvedge/v1/uplinks/urn:up/reconcile')
      await done(one, { reason: 'asked' })
      await expectScopes({ noted: undefined, shared: undefined })
    },
  )

  it.each([
    ['drop', 'drop=name,note'],
    ['keep', 'keep=level'],
  ])('purge only their own attributes (%s) at the centre', async (_, query) => {
    const [one] = sites as [GatewayInside]
    await feed(one, undefined)
    await send(one, 'POST', `${v1}/entities`, tank('a', { name: { type: 'Property', value: 'a' } }))
    await expectScopes({ a: undefined })
    const note = { note: { type: 'Property', value: 'of the centre' } }
    await send(centre, 'POST', `${v1}/entities/urn:tank:a/attrs`, note, tenant)
    await send(one, 'DELETE', `${v1}/entities?type=Tank&${query}`)
    await vi.waitFor(async () => {
      const left = await centre.get(`${v1}/entities/urn:tank:a?options=keyValues`, tenant)
      expect(left.json()).toEqual({ id: 'urn:tank:a', type: 'Tank', level: 1, note: 'of the centre' })
    }, withinMs)
  })

  it('are refused an invalid scope, by its name', async () => {
    const answer = await sites[0]!.send('POST', `${v1}/subscriptions`, {
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: { endpoint: endpoint('/site 1') },
    })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('selvedge:scope')
  })
})
