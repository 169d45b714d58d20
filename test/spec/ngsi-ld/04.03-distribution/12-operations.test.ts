/**
 * Names of operations [NGSI-LD 4.20]: a source receives only operations that it offers; groups stand for
 * their members.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const base = '/ngsi-ld/v1'
const entity = { id: 'urn:p:1', type: 'Pump', flow: { type: 'Property', value: 1 } }
const fragment = { flow: entity.flow }
const history = {
  id: 'urn:p:1',
  type: 'Pump',
  flow: [{ ...entity.flow, observedAt: '2025-01-01T00:00:00Z' }],
}
const one = `${base}/entities/urn:p:1`
const past = `${base}/temporal/entities/urn:p:1`
const instance = `${past}/attrs/flow/urn:ngsi-ld:instance:1`
const times = 'timerel=after&timeAt=2020-01-01T00:00:00Z'

/** The client request that triggers each operation at a source. */
const leading: readonly (readonly [operation: string, method: string, path: string, body?: object])[] = [
  ['createEntity', 'POST', `${base}/entities`, entity],
  ['updateEntity', 'PATCH', `${one}/attrs`, fragment],
  ['appendAttrs', 'POST', `${one}/attrs`, fragment],
  ['updateAttrs', 'PATCH', `${one}/attrs/flow`, entity.flow],
  ['deleteAttrs', 'DELETE', `${one}/attrs/flow`],
  ['deleteEntity', 'DELETE', one],
  ['mergeEntity', 'PATCH', one, fragment],
  ['replaceEntity', 'PUT', one, entity],
  ['replaceAttrs', 'PUT', `${one}/attrs/flow`, entity.flow],
  ['purgeEntity', 'DELETE', `${base}/entities?type=Pump`],
  ['createBatch', 'POST', `${base}/entityOperations/create`, [entity]],
  ['upsertBatch', 'POST', `${base}/entityOperations/upsert`, [entity]],
  ['updateBatch', 'POST', `${base}/entityOperations/update`, [entity]],
  ['mergeBatch', 'POST', `${base}/entityOperations/merge`, [entity]],
  ['deleteBatch', 'POST', `${base}/entityOperations/delete`, ['urn:p:1']],
  ['upsertTemporal', 'POST', `${base}/temporal/entities`, history],
  ['appendAttrsTemporal', 'POST', `${past}/attrs`, { flow: history.flow }],
  ['deleteAttrsTemporal', 'DELETE', `${past}/attrs/flow`],
  ['updateAttrInstanceTemporal', 'PATCH', instance, { flow: history.flow }],
  ['deleteAttrInstanceTemporal', 'DELETE', instance],
  ['deleteTemporal', 'DELETE', past],
  ['retrieveEntity', 'GET', one],
  ['queryEntity', 'GET', `${base}/entities?type=Pump`],
  ['queryBatch', 'POST', `${base}/entityOperations/query`, { type: 'Query', entities: [{ type: 'Pump' }] }],
  ['retrieveTemporal', 'GET', `${past}?${times}`],
  ['queryTemporal', 'GET', `${base}/temporal/entities?type=Pump&${times}`],
  ['retrieveEntityTypes', 'GET', `${base}/types`],
  ['retrieveEntityTypeDetails', 'GET', `${base}/types?details=true`],
  ['retrieveEntityTypeInfo', 'GET', `${base}/types/Pump`],
  ['retrieveAttrTypes', 'GET', `${base}/attributes`],
  ['retrieveAttrTypeDetails', 'GET', `${base}/attributes?details=true`],
  ['retrieveAttrTypeInfo', 'GET', `${base}/attributes/flow`],
]
const requests = leading.map(([operation, method, path, body]) => [operation, method, path, body] as const)
const pathOf = (path: string): string => decodeURIComponent(path.split('?')[0]!)

describe('GS CIM 009, 4.20: an operation', () => {
  let here: HttpGateway
  let source: Receiver
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    source = await createReceiver()
    source.answer(() => 404)
  })
  afterAll(async () => {
    await here.close()
    await source.down()
  })
  const registered: string[] = []
  afterEach(async () => {
    for (const path of registered.splice(0)) await here.ask('DELETE', path)
    source.forget()
  })
  const offering = async (...operations: readonly string[]) => {
    const made = await here.send('POST', `${base}/csourceRegistrations`, {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      operations,
      endpoint: source.url(''),
    })
    expect([operations, made.status]).toEqual([operations, 201])
    registered.push(made.headers['location']!)
  }
  const asked = async (method: string, path: string, body?: object): Promise<string[]> => {
    await (body === undefined ? here.ask(method, path) : here.send(method, path, body))
    return source.received.map((one) => pathOf(one.path))
  }

  test.each(requests)(
    '%s: a source that offers it alone is asked by it',
    async (operation, method, path, body) => {
      await offering(operation)
      expect(await asked(method, path, body)).toEqual([pathOf(path)])
    },
  )

  test.each(requests)(
    '%s: a source that offers another one is not asked',
    async (operation, method, path, body) => {
      await offering(operation === 'querySubscription' ? 'deleteSubscription' : 'querySubscription')
      expect(await asked(method, path, body)).toEqual([])
    },
  )

  test.each([
    ['retrieveOps', ['retrieveEntity', 'queryEntity']],
    ['updateOps', ['updateEntity', 'updateAttrs', 'replaceEntity', 'replaceAttrs']],
    ['associationOps', ['queryEntity', 'retrieveEntityTypes', 'retrieveAttrTypeInfo']],
    ['federationOps', ['retrieveEntity', 'retrieveEntityTypeInfo', 'retrieveAttrTypes']],
    [
      'redirectionOps',
      ['createEntity', 'appendAttrs', 'deleteAttrs', 'purgeEntity', 'retrieveEntityTypeDetails'],
    ],
  ])('%s stands for operations such as %j', async (group, operations) => {
    await offering(group)
    for (const name of operations) {
      const [, method, path, body] = requests.find(([operation]) => operation === name)!
      source.forget()
      expect([name, new Set(await asked(method, path, body))]).toEqual([name, new Set([pathOf(path)])])
    }
  })

  test('outside the standard is 400; a source that names none offers federationOps', async () => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: source.url(''),
    }
    const odd = await here.send('POST', `${base}/csourceRegistrations`, { ...body, operations: ['flyAway'] })
    expect(odd.status).toBe(400)
    const made = await here.send('POST', `${base}/csourceRegistrations`, body)
    registered.push(made.headers['location']!)
    expect(await asked('PATCH', one, fragment)).toEqual([])
    expect(await asked('GET', one)).toEqual([one])
  })
})
