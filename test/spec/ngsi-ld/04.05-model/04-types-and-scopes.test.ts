/** Several types and several scopes of one entity [NGSI-LD 4.16, 4.18]: adding and removing them. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'

async function created(members: object): Promise<string> {
  const id = freshId('Room')
  const made = await gateway.send('POST', path, { id, ...members })
  expect([made.status, made.text]).toEqual([201, ''])
  return id
}
const of = async (id: string): Promise<{ type?: unknown; scope?: unknown }> => {
  const { type, scope } = (await gateway.get(`${path}/${id}`)).json() as Record<string, unknown>
  return scope === undefined ? { type } : { type, scope }
}

describe('types of an entity', () => {
  const more = { type: 'Lab', a: property(2) }
  it.each([
    ['PATCH', '', more],
    ['PATCH', '/attrs', more],
    ['POST', '/attrs', more],
  ] as const)('shall be added by %s%s, and never removed', async (method, rest, body) => {
    const id = await created({ type: 'Room', a: property(1) })
    expect((await gateway.send(method, `${path}/${id}${rest}`, body)).status).toBe(204)
    expect(await of(id)).toEqual({ type: ['Room', 'Lab'] })
    await gateway.send(method, `${path}/${id}${rest}`, { type: ['Room'], a: property(3) })
    expect(await of(id)).toEqual({ type: ['Room', 'Lab'] })
  })

  it.each(['update', 'merge', 'upsert?options=update'])(
    'shall be added by a batch to %s',
    async (operation) => {
      const id = await created({ type: ['Room', 'Lab'] })
      const answer = await gateway.send('POST', `${operations}/${operation}`, [
        { id, type: 'Hall', a: property(1) },
      ])
      expect(answer.status).toBe(204)
      expect(await of(id)).toEqual({ type: ['Room', 'Lab', 'Hall'] })
    },
  )

  it('shall change if the entity is replaced, or deleted and re-created', async () => {
    const id = await created({ type: ['Room', 'Lab'] })
    await gateway.send('POST', `${operations}/upsert`, [{ id, type: 'Hall' }])
    expect(await of(id)).toEqual({ type: 'Hall' })
    await gateway.ask('DELETE', `${path}/${id}`)
    await gateway.send('POST', path, { id, type: 'Room' })
    expect(await of(id)).toEqual({ type: 'Room' })
  })

  it('shall each find it, once', async () => {
    const id = await created({ type: ['Den', 'Loft'] })
    const found = async (type: string) =>
      ((await gateway.get(`${path}?type=${encodeURIComponent(type)}`)).json() as { id: string }[]).map(
        (one) => one.id,
      )
    for (const type of ['Den', 'Loft', 'Den,Loft', 'Den;Loft'])
      expect([type, await found(type)]).toEqual([type, [id]])
    expect(await found('Den;Barn')).toEqual([])
    const info = (await gateway.get('/ngsi-ld/v1/types/Loft')).json()
    expect(info).toMatchObject({ typeName: 'Loft', entityCount: 1 })
  })
})

describe('scopes of an entity', () => {
  it.each([
    ['/Madrid', '/Madrid'],
    ['Madrid', '/Madrid'],
    // More than the grammar allows.
    ['/hall-b/2', '/hall-b/2'],
    ['/Madrid/Gärten/Parque_2', '/Madrid/Gärten/Parque_2'],
    [
      ['/a', 'b/c'],
      ['/a', '/b/c'],
    ],
  ])('%j shall be stored as %j', async (scope, kept) => {
    expect(await of(await created({ type: 'Room', scope }))).toEqual({ type: 'Room', scope: kept })
  })

  it.each(
    ['', '/', '/a/', '//a', '/a b', '/a/#', 'urn:ngsi-ld:null', [], ['/a', 7], { value: '/a' }].map(
      (scope) => [scope],
    ),
  )('%j shall be 400', async (scope) => {
    const made = await gateway.send('POST', path, { id: freshId('Room'), type: 'Room', scope })
    expect([scope, made.status]).toEqual([scope, 400])
  })

  it('shall be replaced by merge and update, extended by append without overwriting, and removed', async () => {
    const id = await created({ type: 'Room', scope: '/a' })
    await gateway.send('PATCH', `${path}/${id}`, { scope: ['/a', '/b'] })
    expect(await of(id)).toMatchObject({ scope: ['/a', '/b'] })
    await gateway.send('PATCH', `${path}/${id}/attrs`, { scope: '/c' })
    expect(await of(id)).toMatchObject({ scope: '/c' })
    await gateway.send('POST', `${path}/${id}/attrs?options=noOverwrite`, { scope: ['/c', '/d'] })
    expect(await of(id)).toMatchObject({ scope: ['/c', '/d'] })
    await gateway.send('POST', `${path}/${id}/attrs`, { scope: '/e' })
    expect(await of(id)).toMatchObject({ scope: '/e' })
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/scope`)).status).toBe(204)
    expect(await of(id)).toEqual({ type: 'Room' })
    await gateway.send('POST', `${path}/${id}/attrs`, { scope: '/f' })
    await gateway.send('PATCH', `${path}/${id}`, { scope: 'urn:ngsi-ld:null' })
    expect(await of(id)).toEqual({ type: 'Room' })
    // An update requires an existing scope.
    const answer = await gateway.send('PATCH', `${path}/${id}/attrs`, { scope: '/g', a: property(1) })
    expect([answer.status, answer.json()]).toMatchObject([
      207,
      { notUpdated: [{ attributeName: expect.stringContaining('scope') as string }] },
    ])
  })
})
