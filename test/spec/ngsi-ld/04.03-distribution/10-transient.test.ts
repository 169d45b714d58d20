/**
 * Entities and attributes that expire, held by several brokers (GS CIM 009 V1.9.1, 4.5.5.2, 4.5.5.3 and
 * 4.22): how their copies are merged, and that the holder of a part learns its expiry.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const batchOps = ['createBatch', 'upsertBatch', 'updateBatch', 'deleteBatch', 'mergeBatch']
const of = (value: unknown, expiresAt?: string) => ({
  type: 'Property',
  value,
  ...(expiresAt === undefined ? {} : { expiresAt }),
})
const soon = '2098-01-01T00:00:00Z'
const later = '2099-01-01T00:00:00Z'
const over = '2020-01-01T00:00:00Z'

describe('GS CIM 009, 4.22: expiring entities held by several brokers', () => {
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
  const registered: string[] = []
  afterEach(async () => {
    for (const path of registered.splice(0)) await here.ask('DELETE', path)
    for (const gateway of [here, there]) {
      const all = (await gateway.get(`${entities}?local=true&limit=1000`)).json() as { id: string }[]
      for (const { id } of all) await gateway.ask('DELETE', `${entities}/${id}?local=true`)
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
  const exclusive = (id: string, ...names: readonly string[]) =>
    register({
      mode: 'exclusive',
      information: [{ entities: [{ id, type: 'Pump' }], propertyNames: names }],
    })
  const pump = (id: string, members: object = {}) => ({ id, type: 'Pump', ...members })
  const hold = async (gateway: HttpGateway, entity: object): Promise<void> => {
    expect((await gateway.send('POST', `${entities}?local=true`, entity)).status).toBe(201)
  }
  /** With the expiry times, which are system attributes, and without the other system attributes. */
  const shown = (text: string): object =>
    JSON.parse(text, (key, value: unknown) =>
      key === 'createdAt' || key === 'modifiedAt' ? undefined : value,
    ) as object
  const read = async (id: string): Promise<object> =>
    shown((await here.get(`${entities}/${id}?options=sysAttrs`)).text)
  const held = async (gateway: HttpGateway, id: string): Promise<object | undefined> => {
    const reply = await gateway.get(`${entities}/${id}?local=true&options=sysAttrs`)
    return reply.status === 200 ? shown(reply.text) : undefined
  }
  const status = async (method: string, path: string, body?: unknown) =>
    (body === undefined ? await here.ask(method, path) : await here.send(method, path, body)).status

  test('a single source: the entity expires as the source states', async () => {
    await hold(there, pump('urn:p:1', { expiresAt: soon, flow: of(1, soon) }))
    await register({})
    const whole = pump('urn:p:1', { expiresAt: soon, flow: of(1, soon) })
    expect(await read('urn:p:1')).toEqual(whole)
    expect(shown((await here.get(`${entities}?type=Pump&options=sysAttrs`)).text)).toEqual([whole])
  })

  test('different expiry times: the entity has the latest, and each part expires as at its holder', async () => {
    await hold(here, pump('urn:p:2', { expiresAt: soon, name: of('n'), state: of('on', later) }))
    await hold(there, pump('urn:p:2', { expiresAt: later, flow: of(1), level: of(2, soon) }))
    await register({})
    expect(await read('urn:p:2')).toEqual(
      pump('urn:p:2', {
        expiresAt: later,
        name: of('n', soon),
        state: of('on', soon),
        flow: of(1, later),
        level: of(2, soon),
      }),
    )
  })

  test('an entity without expiry at one broker does not expire, but its parts at other brokers do', async () => {
    await hold(here, pump('urn:p:3', { name: of('n') }))
    await hold(there, pump('urn:p:3', { expiresAt: soon, flow: of(1) }))
    await register({})
    expect(await read('urn:p:3')).toEqual(pump('urn:p:3', { name: of('n'), flow: of(1, soon) }))
  })

  test('an expired instance does not count, however new it is', async () => {
    const observedAt = '2025-01-01T00:00:00Z'
    const stale = pump('urn:p:4', { flow: { ...of(2, over), observedAt }, level: of(3) })
    // A broker that removes expired data only later.
    const source = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(request.url!.includes('/entities/') ? stale : [stale]))
    })
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve))
    await hold(here, pump('urn:p:4', { flow: of(1) }))
    await register({ endpoint: `http://127.0.0.1:${(source.address() as AddressInfo).port}` })
    const whole = pump('urn:p:4', { flow: of(1), level: of(3) })
    expect(await read('urn:p:4')).toEqual(whole)
    expect((await here.get(`${entities}?type=Pump`)).json()).toEqual([whole])
    source.close()
  })

  test('a created entity is sent to its source with its expiry, and leaves no stub here', async () => {
    await exclusive('urn:p:5', 'flow')
    const entity = pump('urn:p:5', { expiresAt: soon, flow: of(1, soon) })
    expect(await status('POST', entities, entity)).toBe(201)
    expect(await held(here, 'urn:p:5')).toBeUndefined()
    expect(await held(there, 'urn:p:5')).toEqual(entity)
  })

  test('an entity created in parts expires at both brokers', async () => {
    await exclusive('urn:p:6', 'flow')
    const entity = pump('urn:p:6', { expiresAt: soon, flow: of(1), name: of('n') })
    expect(await status('POST', entities, entity)).toBe(201)
    expect(await held(here, 'urn:p:6')).toEqual(pump('urn:p:6', { expiresAt: soon, name: of('n') }))
    expect(await held(there, 'urn:p:6')).toEqual(pump('urn:p:6', { expiresAt: soon, flow: of(1) }))
    expect(await read('urn:p:6')).toEqual(entity)
  })

  test.each([
    ['create', 201],
    ['upsert', 201],
  ] as const)('a batch to %s does the same', async (operation, expected) => {
    await exclusive('urn:p:7', 'flow')
    const batch = [
      pump('urn:p:7', { expiresAt: soon, flow: of(1) }),
      pump('urn:p:8', { expiresAt: later, flow: of(1, soon) }),
    ]
    expect(await status('POST', `${operations}/${operation}`, batch)).toBe(expected)
    expect(await held(here, 'urn:p:7')).toBeUndefined()
    expect([await held(there, 'urn:p:7'), await held(here, 'urn:p:8')]).toEqual(batch)
  })

  test.each([
    ['PATCH', '', 204],
    ['PATCH', '/attrs', 204],
    ['POST', '/attrs', 204],
  ] as const)('%s%s tells all that hold a part when the entity expires', async (method, path, expected) => {
    await exclusive('urn:p:9', 'flow')
    await status('POST', entities, pump('urn:p:9', { flow: of(1), name: of('n') }))
    expect(await status(method, `${entities}/urn:p:9${path}`, { expiresAt: later })).toBe(expected)
    expect(await read('urn:p:9')).toEqual(pump('urn:p:9', { expiresAt: later, flow: of(1), name: of('n') }))
    const more = { expiresAt: soon, flow: of(2) }
    expect(await status(method, `${entities}/urn:p:9${path}`, more)).toBe(expected)
    expect(await held(there, 'urn:p:9')).toEqual(pump('urn:p:9', more))
  })

  test.each(['merge', 'update'])('so does a batch to %s', async (operation) => {
    await exclusive('urn:p:10', 'flow')
    await status('POST', entities, pump('urn:p:10', { flow: of(1), name: of('n') }))
    const batch = [pump('urn:p:10', { expiresAt: soon, flow: of(2, soon), name: of('m') })]
    expect(await status('POST', `${operations}/${operation}`, batch)).toBe(204)
    expect(await read('urn:p:10')).toEqual(batch[0])
    expect(await held(here, 'urn:p:10')).toEqual(pump('urn:p:10', { expiresAt: soon, name: of('m') }))
  })

  test('an expiry in the past is accepted everywhere and takes effect at once', async () => {
    await register({})
    await status('POST', entities, pump('urn:p:11', { expiresAt: over, flow: of(1) }))
    expect((await here.get(`${entities}/urn:p:11`)).status).toBe(404)
  })
})
