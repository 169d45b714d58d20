/** Clients: their identity, the names of what they use, and their counts. */
import { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { clientOf } from './client-identity.ts'
import { clientTables, createClientStatements } from './client-statements.ts'
import { createClients } from './clients.ts'
import { resourceOf } from './used-resource.ts'

const tokenOf = (claims: object): string =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`

describe('the identity of a client', () => {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: '::ffff:10.0.0.7' })
  const named = { 'selvedge-client': 'app-1' }

  it.each([
    [{ authorization: `Bearer ${tokenOf({ sub: 'alice' })}`, ...named }, 'alice', 'token'],
    [{ 'x-auth-token': tokenOf({ sub: 'bob' }), ...named }, 'bob', 'token'],
    [{ authorization: `Bearer ${tokenOf({ name: 'alice' })}`, ...named }, 'app-1', 'header'],
    [{ authorization: 'Bearer opaque', ...named }, 'app-1', 'header'],
    [{ authorization: 'Bearer a.%%%.b' }, '10.0.0.7', 'address'],
    [{}, '10.0.0.7', 'address'],
  ])('of %j is %s, by its %s', (headers, id, by) =>
    expect(clientOf(new Headers(headers as Record<string, string>), socket)).toEqual({ id, by }),
  )

  it('is the digest of a long name', () => {
    const ids = ['a', 'b'].map(
      (end) => clientOf(new Headers({ 'selvedge-client': 'x'.repeat(300) + end }), socket).id,
    )
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(id).toMatch(/^sha256:[0-9a-f]{64}$/)
  })
})

describe('the name of a used resource', () => {
  it.each([
    ['/ngsi-ld/v1/entities?q=a%3D%3D1&type=Sensor%2CDevice', null, 'entities?type=Sensor,Device'],
    ['/ngsi-ld/v1/entities/urn%3Ax%3A1/', null, 'entities/urn:x:1'],
    ['/ngsi-ld/v1/subscriptions', '/ngsi-ld/v1/subscriptions/urn:x:2', 'subscriptions/urn:x:2'],
    ['/ngsi-ld/v1/entities/%E0', null, 'entities/%E0'],
  ])('%s with Location %s is %s', (target, location, expected) =>
    expect(resourceOf(target, location)).toBe(expected),
  )
})

describe('the counts of clients', () => {
  afterEach(restoreLimits)
  const copied: string[] = []
  let at = 1000
  const open = (database: ReturnType<typeof createPluginDatabase>) =>
    createClients({
      statements: createClientStatements(database),
      rest: database.rest,
      copies: {
        put: (tenant, id) => copied.push(`put ${tenant}/${id}`),
        remove: (tenant, id) => copied.push(`remove ${tenant}/${id}`),
      },
      now: () => at++,
    })
  const request = (id: string, resource = 'entities', status = 200) =>
    ({ tenant: '', client: { id, by: 'header' }, method: 'GET', resource, status }) as const

  it('survive a restart', async () => {
    const database = createPluginDatabase([clientTables])
    const clients = open(database)
    clients.note(request('a'))
    clients.note(request('a', 'entities/urn:x:1', 404))
    clients.note({ ...request('b'), tenant: 'city' })
    await clients.save()
    const after = open(database)
    const list = after.list({ tenant: undefined, limit: 10, offset: 0 })
    expect(list).toEqual(clients.list({ tenant: undefined, limit: 10, offset: 0 }))
    expect(list).toMatchObject({
      count: 2,
      clients: [
        { client: 'b', tenant: 'city' },
        {
          client: 'a',
          requests: 2,
          failures: 1,
          uses: [{ resource: 'entities/urn:x:1', count: 1 }, { count: 1 }],
        },
      ],
    })
    expect(after.list({ tenant: 'city', limit: 10, offset: 0 })).toMatchObject({ count: 1 })
    database.close()
  })

  it('are bounded: those not used for the longest time are dropped, on disk and in copies too', async () => {
    setLimit('orchestratorClientsMax', 2)
    setLimit('orchestratorUsesMax', 2)
    const database = createPluginDatabase([clientTables])
    const clients = open(database)
    for (const id of ['a', 'b', 'a']) clients.note(request(id))
    await clients.save()
    copied.length = 0
    for (const resource of ['one', 'two', 'three']) clients.note(request('c', resource))
    await clients.save()
    expect(copied).toEqual(['put /c', 'remove /b'])
    const { clients: left } = open(database).list({ tenant: undefined, limit: 10, offset: 0 })
    expect(left).toMatchObject([
      { client: 'c', requests: 3, uses: [{ resource: 'three' }, { resource: 'two' }] },
      { client: 'a' },
    ])
    database.close()
  })
})
