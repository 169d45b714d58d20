/**
 * Distributed provision between real gateways: the parts of a write per mode, and the response that reports
 * their outcomes.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const batchOps = ['createBatch', 'upsertBatch', 'updateBatch', 'deleteBatch', 'mergeBatch']
const of = (value: unknown) => ({ type: 'Property', value })

describe('GS CIM 009, 4.3.6: distributed provision', () => {
  let here: HttpGateway
  let there: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    there = await startHttpGateway({ alias: 'there' })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  let registered: string[] = []
  afterEach(async () => {
    for (const path of registered) await here.ask('DELETE', path)
    registered = []
    for (const gateway of [here, there]) {
      const all = (await gateway.get(`${entities}?local=true&limit=1000`)).json() as { id: string }[]
      for (const { id } of all) await gateway.ask('DELETE', `${entities}/${id}`)
    }
  })
  const register = async (members: object): Promise<void> => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      operations: ['redirectionOps', ...batchOps],
      endpoint: there.url,
      ...members,
    }
    const made = await here.send('POST', registrations, body)
    expect([made.status, made.text]).toEqual([201, ''])
    registered.push(made.headers['location']!)
  }
  const exclusive = (id: string, members: object = {}) =>
    register({
      mode: 'exclusive',
      information: [{ entities: [{ id, type: 'Pump' }], propertyNames: ['flow'] }],
      ...members,
    })
  const held = async (gateway: HttpGateway, id: string): Promise<object | undefined> => {
    const reply = await gateway.get(`${entities}/${id}?local=true&options=keyValues`)
    return reply.status === 200 ? reply.json() : undefined
  }
  const pump = (id: string, members: object = {}) => ({ id, type: 'Pump', ...members })
  const status = async (method: string, path: string, body?: unknown) =>
    (body === undefined ? await here.ask(method, path) : await here.send(method, path, body)).status

  test('exclusive: its attributes are written only at the source, the others locally', async () => {
    await exclusive('urn:p:1')
    const body = pump('urn:p:1', { flow: of(1), name: of('n') })
    expect(await status('POST', entities, body)).toBe(201)
    expect(await held(here, 'urn:p:1')).toEqual(pump('urn:p:1', { name: 'n' }))
    expect(await held(there, 'urn:p:1')).toEqual(pump('urn:p:1', { flow: 1 }))
    expect(await status('PATCH', `${entities}/urn:p:1/attrs`, { flow: of(2), name: of('m') })).toBe(204)
    expect(await status('PATCH', `${entities}/urn:p:1/attrs/flow`, of(3))).toBe(204)
    expect(await held(there, 'urn:p:1')).toEqual(pump('urn:p:1', { flow: 3 }))
    expect(await held(here, 'urn:p:1')).toEqual(pump('urn:p:1', { name: 'm' }))
    expect(await status('DELETE', `${entities}/urn:p:1/attrs/flow`)).toBe(204)
    expect(await held(there, 'urn:p:1')).toEqual(pump('urn:p:1'))
  })

  test('redirect: everything is written at the source, and its errors are returned', async () => {
    await register({ mode: 'redirect' })
    expect(await status('POST', entities, pump('urn:p:2', { flow: of(1) }))).toBe(201)
    expect(await held(here, 'urn:p:2')).toBeUndefined()
    expect(await held(there, 'urn:p:2')).toEqual(pump('urn:p:2', { flow: 1 }))
    expect(await status('POST', entities, pump('urn:p:2'))).toBe(409)
    const none = `${entities}/urn:p:none`
    for (const [method, at, body] of [
      ['PATCH', `${none}?type=Pump`, { flow: of(1) }],
      ['PATCH', `${none}/attrs?type=Pump`, { flow: of(1) }],
      ['PATCH', `${none}/attrs/flow?type=Pump`, of(1)],
      ['DELETE', `${none}?type=Pump`, undefined],
    ] as const)
      expect([method, at, await status(method, at, body)]).toEqual([method, at, 404])
    expect(await status('DELETE', `${entities}/urn:p:2?type=Pump`)).toBe(204)
    expect(await held(there, 'urn:p:2')).toBeUndefined()
  })

  test('inclusive: both brokers write, and a 207 names the one that failed', async () => {
    await register({})
    expect(await status('POST', `${entities}?local=true`, pump('urn:p:3', { flow: of(1) }))).toBe(201)
    const reply = await here.send('POST', entities, pump('urn:p:3', { flow: of(2) }))
    expect([reply.status, reply.json()]).toMatchObject([
      207,
      { success: ['urn:p:3'], errors: [{ entityId: 'urn:p:3', error: { status: 409 } }] },
    ])
    expect(await held(there, 'urn:p:3')).toEqual(pump('urn:p:3', { flow: 2 }))
    expect(await status('PATCH', `${entities}/urn:p:3`, { flow: of(4) })).toBe(204)
    expect([await held(here, 'urn:p:3'), await held(there, 'urn:p:3')]).toMatchObject([
      { flow: 4 },
      { flow: 4 },
    ])
    await there.ask('DELETE', `${entities}/urn:p:3`)
    const partly = await here.ask('DELETE', `${entities}/urn:p:3`)
    expect([partly.status, partly.json()]).toMatchObject([
      207,
      { success: ['urn:p:3'], errors: [{ entityId: 'urn:p:3', error: { status: 404 } }] },
    ])
    expect(await held(here, 'urn:p:3')).toBeUndefined()
    expect(await status('DELETE', `${entities}/urn:p:3`)).toBe(404)
    expect(await status('PATCH', `${entities}/urn:p:3`, { flow: of(5) })).toBe(404)
  })

  test('a deletion of which every part fails is an error, not 207', async () => {
    await register({ endpoint: 'http://127.0.0.1:9' })
    await register({ endpoint: 'http://127.0.0.1:9', operations: ['deleteEntity', 'createEntity'] })
    const reply = await here.ask('DELETE', `${entities}/urn:p:4`)
    expect([reply.status, reply.json()]).toMatchObject([502, { status: 502 }])
  })

  test('every response names the tenant, also if a source produced it', async () => {
    const tenant = { 'NGSILD-Tenant': 'acme' }
    const information = (type: string) => [{ entities: [{ type }] }]
    for (const [type, mode] of [
      ['Pump', 'inclusive'],
      ['Valve', 'redirect'],
    ] as const) {
      const body = {
        type: 'ContextSourceRegistration',
        information: information(type),
        mode,
        operations: ['redirectionOps', ...batchOps],
        endpoint: 'http://127.0.0.1:9',
      }
      expect((await here.send('POST', registrations, body, tenant)).status).toBe(201)
    }
    const valve = { id: 'urn:v:acme', type: 'Valve', angle: of(1) }
    const one = `${entities}/urn:v:acme`
    const all = await Promise.all([
      here.send('POST', entities, pump('urn:p:acme', { flow: of(1) }), tenant),
      here.send('POST', entities, valve, tenant),
      here.send('PATCH', `${one}/attrs?type=Valve`, { angle: of(2) }, tenant),
      here.send('POST', `${operations}/create`, [pump('urn:p:two'), valve], tenant),
      here.ask('DELETE', `${one}?type=Valve`, { headers: tenant }),
      here.ask('DELETE', `${entities}?type=Valve`, { headers: tenant }),
      here.get(`${one}?type=Valve`, tenant),
      here.get(`${entities}?type=Valve`, tenant),
      here.get('/ngsi-ld/v1/attributes/angle', tenant),
    ])
    expect(all.map((reply) => [reply.status, reply.headers['ngsild-tenant']])).toEqual(
      [207, 502, 502, 207, 502, 207, 404, 200, 404].map((code) => [code, 'acme']),
    )
  })

  test('errors of the sources of a source are forwarded, with the result of the source itself', async () => {
    await register({ mode: 'redirect' })
    const further = await there.send('POST', registrations, {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      operations: ['redirectionOps'],
      endpoint: 'http://127.0.0.1:9',
    })
    try {
      const reply = await here.send('POST', entities, pump('urn:p:chain', { flow: of(1) }))
      expect([reply.status, reply.json()]).toMatchObject([
        207,
        { success: ['urn:p:chain'], errors: [{ entityId: 'urn:p:chain', error: { status: 502 } }] },
      ])
      expect((reply.json() as { errors: { error: { detail: string } }[] }).errors[0]!.error.detail).toContain(
        further.headers['location']!.split('/').at(-1)!,
      )
    } finally {
      await there.ask('DELETE', further.headers['location']!)
    }
  })

  test('an operation that the responsible source does not offer is a conflict, or part of a 207', async () => {
    await exclusive('urn:p:4', { operations: ['retrieveOps'] })
    expect(await status('POST', entities, pump('urn:p:4', { flow: of(1) }))).toBe(409)
    const reply = await here.send('POST', entities, pump('urn:p:4', { flow: of(1), name: of('n') }))
    expect(reply.status).toBe(207)
    expect((reply.json() as { errors: object[] }).errors).toMatchObject([
      { entityId: 'urn:p:4', registrationId: expect.any(String), error: { status: 409 } },
    ])
    expect(await held(here, 'urn:p:4')).toEqual(pump('urn:p:4', { name: 'n' }))
    expect(await held(there, 'urn:p:4')).toBeUndefined()
  })

  test('an unreachable responsible source causes 502, and its attributes are named in a 207', async () => {
    await exclusive('urn:p:5', { endpoint: 'http://127.0.0.1:9' })
    expect(await status('POST', entities, pump('urn:p:5', { flow: of(1) }))).toBe(502)
    expect(await status('POST', `${entities}?local=true`, pump('urn:p:5'))).toBe(201)
    const reply = await here.send('POST', `${entities}/urn:p:5/attrs`, { flow: of(1), name: of('n') })
    expect(reply.status).toBe(207)
    const { notUpdated } = reply.json() as { notUpdated: { attributeName: string }[] }
    expect(notUpdated.map(({ attributeName }) => attributeName)).toEqual([
      'https://uri.etsi.org/ngsi-ld/default-context/flow',
    ])
    expect(await held(here, 'urn:p:5')).toEqual(pump('urn:p:5', { name: 'n' }))
  })

  test('writes with local=true or of other types involve no source', async () => {
    await register({ mode: 'redirect' })
    expect(await status('POST', `${entities}?local=true`, pump('urn:p:6'))).toBe(201)
    expect(await held(here, 'urn:p:6')).toEqual(pump('urn:p:6'))
    expect(await status('POST', entities, { id: 'urn:v:1', type: 'Valve' })).toBe(201)
    expect(await held(there, 'urn:v:1')).toBeUndefined()
  })

  test('batches are split by item, each source receives one request, and outcomes are reported by item', async () => {
    await exclusive('urn:p:7')
    await register({ information: [{ entities: [{ type: 'Valve' }] }], mode: 'redirect' })
    const items = [
      pump('urn:p:7', { flow: of(1), name: of('n') }),
      { id: 'urn:v:7', type: 'Valve', angle: of(2) },
      { id: 'urn:l:7', type: 'Lamp' },
    ]
    const created = await here.send('POST', `${operations}/create`, items)
    expect(created.status).toBe(201)
    expect((created.json() as string[]).toSorted()).toEqual(['urn:l:7', 'urn:p:7', 'urn:v:7'])
    expect(await held(here, 'urn:p:7')).toEqual(pump('urn:p:7', { name: 'n' }))
    expect(await held(there, 'urn:p:7')).toEqual(pump('urn:p:7', { flow: 1 }))
    expect(await held(here, 'urn:v:7')).toBeUndefined()
    expect(await held(there, 'urn:v:7')).toMatchObject({ angle: 2 })
    const again = await here.send('POST', `${operations}/create`, [items[1], { id: 'urn:l:8', type: 'Lamp' }])
    expect([again.status, again.json()]).toMatchObject([
      207,
      { success: ['urn:l:8'], errors: [{ entityId: 'urn:v:7', registrationId: expect.any(String) }] },
    ])
    const upserted = await here.send('POST', `${operations}/upsert`, [
      items[1],
      { id: 'urn:l:9', type: 'Lamp' },
    ])
    expect([upserted.status, upserted.json()]).toEqual([201, ['urn:l:9']])
  })

  test('a purge is sent to every source that claims matching entities and offers purge', async () => {
    await register({})
    for (const gateway of [here, there]) {
      for (const [id, type] of [
        ['urn:p:8', 'Pump'],
        ['urn:v:8', 'Valve'],
      ])
        await gateway.send('POST', `${entities}?local=true`, { id, type })
    }
    expect(await status('DELETE', `${entities}?type=Pump`)).toBe(204)
    expect([await held(here, 'urn:p:8'), await held(there, 'urn:p:8')]).toEqual([undefined, undefined])
    expect(await status('DELETE', `${entities}?type=Valve`)).toBe(204)
    expect([await held(here, 'urn:v:8'), await held(there, 'urn:v:8')]).toEqual([
      undefined,
      { id: 'urn:v:8', type: 'Valve' },
    ])
  })

  test('a purge selects the same entities at a source as here, also with question marks and slashes in the query', async () => {
    await register({ management: { localOnly: true } })
    const made = pump('urn:p/colour', { flow: of(1) })
    await there.send('POST', `${entities}?local=true`, made)
    await there.send('POST', `${entities}?local=true`, pump('urn:p:colour', { flow: of(1) }))
    expect(await status('DELETE', `${entities}/?type=Pump&idPattern=urn:p/?colou?r&drop=flow`)).toBe(204)
    expect(await held(there, 'urn:p/colour')).toEqual(pump('urn:p/colour'))
    expect(await held(there, 'urn:p:colour')).toMatchObject({ flow: 1 })
  })

  test('a purge that fails at a source reports the local result and that of each source', async () => {
    const gone = { endpoint: 'http://127.0.0.1:9', information: [{ entities: [{ type: 'Pump' }] }] }
    const hold = async (gateway: HttpGateway, ...ids: readonly string[]): Promise<void> => {
      for (const id of ids) await gateway.send('POST', `${entities}?local=true`, pump(id, { flow: of(1) }))
    }
    const purge = async (query: string): Promise<unknown> => {
      const reply = await here.ask('DELETE', `${entities}?type=Pump${query}`)
      expect([reply.status, reply.headers['content-type']]).toEqual([207, 'application/json'])
      return reply.json()
    }
    const failed = { error: { status: 502 }, registrationId: expect.any(String) }
    await register(gone)
    await hold(here, 'urn:p:9', 'urn:p:10')
    expect(await purge('&drop=flow')).toMatchObject({ success: ['urn:p:9', 'urn:p:10'], errors: [failed] })
    expect(await held(here, 'urn:p:9')).toEqual(pump('urn:p:9'))
    expect(await purge('')).toMatchObject({ success: ['urn:p:9', 'urn:p:10'], errors: [failed] })
    expect(await held(here, 'urn:p:9')).toBeUndefined()
    expect(await purge('')).toMatchObject({ success: [], errors: [failed] })

    const further = await there.send('POST', registrations, {
      type: 'ContextSourceRegistration',
      operations: ['purgeEntity'],
      ...gone,
    })
    try {
      await register({})
      await hold(here, 'urn:p:11', 'urn:p:12')
      await hold(there, 'urn:p:12', 'urn:p:13')
      const both = (await purge('')) as { success: string[]; errors: object[] }
      expect(both.success.toSorted()).toEqual(['urn:p:11', 'urn:p:12', 'urn:p:13'])
      expect(both.errors).toMatchObject([failed, failed])
    } finally {
      await there.ask('DELETE', further.headers['location']!)
    }
  })

  test('large batches are split and sent in slices', async () => {
    await register({ mode: 'redirect' })
    const text = 'x'.repeat(100_000)
    const batch = Array.from({ length: 90 }, (_, n) => ({
      id: `urn:large:${n}`,
      type: n % 2 === 0 ? 'Pump' : 'Valve',
      text: of(text),
    }))
    const made = await here.send('POST', `${operations}/create`, [...batch, batch[0], batch[1]])
    expect(made.status).toBe(207)
    const { success, errors } = made.json() as { success: string[]; errors: { entityId: string }[] }
    expect(errors.map(({ entityId }) => entityId).sort()).toEqual(['urn:large:0', 'urn:large:1'])
    expect(success).toHaveLength(90)
    const count = async (gateway: HttpGateway, type: string) =>
      (await gateway.get(`${entities}?type=${type}&local=true&count=true&limit=0`)).headers[
        'ngsild-results-count'
      ]
    expect([await count(here, 'Pump'), await count(here, 'Valve')]).toEqual(['0', '45'])
    expect([await count(there, 'Pump'), await count(there, 'Valve')]).toEqual(['45', '0'])
    expect(await status('POST', `${operations}/upsert`, batch)).toBe(204)
    const local = await here.send('POST', `${operations}/create?local=true`, batch)
    expect((local.json() as { errors: object[] }).errors).toHaveLength(45)
  })

  test('a repeated item of a batch is executed once by each broker, and is an error the second time', async () => {
    await register({ mode: 'inclusive' })
    const id = 'urn:p:twice'
    const asked = async (operation: string, items: readonly unknown[]): Promise<unknown> => {
      const answer = await here.send('POST', `${operations}/${operation}`, items)
      if (answer.status !== 207) return answer.status
      const body = answer.json() as { success: string[]; errors: { error: { status: number } }[] }
      return [body.success, body.errors.map(({ error }) => error.status)]
    }
    const twice = [pump(id, { flow: of(1) }), pump(id, { flow: of(2) })]
    expect(await asked('create', twice)).toEqual([[id], [409, 409]])
    expect([await held(here, id), await held(there, id)]).toEqual([
      pump(id, { flow: 1 }),
      pump(id, { flow: 1 }),
    ])
    expect(await asked('upsert', twice)).toBe(204)
    expect([await held(here, id), await held(there, id)]).toEqual([
      pump(id, { flow: 2 }),
      pump(id, { flow: 2 }),
    ])
    expect(await asked('delete', [id, id])).toEqual([[id], [404, 404]])
    await there.send('POST', entities, pump(id))
    expect(await asked('delete', [id])).toBe(204)
  })

  test('local must be true or false in every request', async () => {
    const asked: readonly [string, string, unknown?][] = [
      ['GET', `${entities}?type=Pump`],
      ['POST', `${operations}/delete?`, ['urn:p:1']],
      ['POST', `${operations}/upsert?`, [pump('urn:p:1')]],
      ['DELETE', '/ngsi-ld/v1/temporal/entities/urn:p:1?'],
      ['GET', '/ngsi-ld/v1/types?'],
    ]
    for (const [method, path, body] of asked)
      expect([path, await status(method, `${path}&local=maybe`, body)]).toEqual([path, 400])
  })
})
