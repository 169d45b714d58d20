/**
 * Requests to sources, recorded by a source without data: for the selectors of a body, for the missing parts
 * of matching entities, and for linked entities.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const entities = '/ngsi-ld/v1/entities'

describe('GS CIM 009, 4.3.6 and 4.5.23: a source is queried', () => {
  let here: HttpGateway
  let source: Receiver
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    source = await createReceiver()
    source.answer(() => 404)
    const made = await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }, { type: 'Tank' }] }],
      operations: ['retrieveOps', 'createEntityMapQueryEntity'],
      endpoint: source.url(''),
    })
    expect(made.status).toBe(201)
  })
  afterAll(async () => {
    await here.close()
    await source.down()
  })
  afterEach(async () => {
    restoreLimits()
    source.forget()
    await here.ask('DELETE', `${entities}?local=true`)
  })

  const holdLinked = async (...tanks: readonly string[]): Promise<void> => {
    const links = tanks.map((object, n) => [`to${n}`, { type: 'Relationship', object, objectType: 'Tank' }])
    const body = { id: 'urn:p:1', type: 'Pump', flow: 2, ...Object.fromEntries(links) }
    expect((await here.send('POST', `${entities}?local=true`, body)).status).toBe(201)
  }
  const asked = (): object[] =>
    source.received.map(({ path }) => Object.fromEntries(new URLSearchParams(path.split('?')[1])))
  const query = `${entities}?type=Pump&join=inline`

  test.each([
    { type: 'Pump', id: 'urn:p:2' },
    { '@type': 'Pump', '@id': 'urn:p:2' },
  ])('for the selectors of a body, under either name: %j', async (selector) => {
    const body = { type: 'Query', entities: [selector] }
    const found = await here.send('POST', '/ngsi-ld/v1/entityOperations/query', body)
    expect([found.status, found.json()]).toEqual([200, []])
    expect(asked()).toEqual([{ type: 'Pump', id: 'urn:p:2', options: 'sysAttrs' }])
  })

  test('unless it holds none of the requested datasets (5.12)', async () => {
    const made = await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Meter' }] }],
      operations: ['retrieveOps', 'retrieveTemporal', 'queryTemporal'],
      datasetId: ['urn:d:1', '@none'],
      endpoint: source.url(''),
    })
    expect(made.status).toBe(201)
    const times = 'timerel=after&timeAt=2020-01-01T00:00:00Z'
    const count = async (datasets: readonly string[]): Promise<number[]> => {
      const wanted = datasets.length === 0 ? '' : `&datasetId=${datasets.join(',')}`
      const body = {
        type: 'Query',
        entities: [{ type: 'Meter' }],
        ...(wanted === '' ? {} : { datasetId: datasets }),
      }
      const counts: number[] = []
      const next = (): void => {
        counts.push(source.received.length)
        source.forget()
      }
      source.forget()
      for (const path of [
        `${entities}/urn:m:1?type=Meter${wanted}`,
        `${entities}?type=Meter${wanted}`,
        `/ngsi-ld/v1/temporal/entities/urn:m:1?type=Meter&${times}${wanted}`,
        `/ngsi-ld/v1/temporal/entities?type=Meter&${times}${wanted}`,
      ]) {
        await here.get(path)
        next()
      }
      await here.send('POST', '/ngsi-ld/v1/entityOperations/query', body)
      next()
      return counts
    }
    expect(await count([])).toEqual([1, 1, 1, 1, 1])
    expect(await count(['urn:d:1'])).toEqual([1, 1, 1, 1, 1])
    expect(await count(['urn:d:2', '@none'])).toEqual([1, 1, 1, 1, 1])
    expect(await count(['urn:d:2'])).toEqual([0, 0, 0, 0, 0])
    await here.ask('DELETE', made.headers['location']!)
  })

  test('once more for each missing part and each linked entity, without entity maps', async () => {
    await holdLinked('urn:t:1', 'urn:t:2')
    expect((await here.get(`${query}&q=flow%3E1&entityMap=true`)).status).toBe(201)
    expect(asked()).toEqual([
      { type: 'Pump', q: 'flow>1', options: 'sysAttrs', entityMap: 'true' },
      { type: 'Pump', id: 'urn:p:1', options: 'sysAttrs' },
      { type: 'Tank', id: 'urn:t:1,urn:t:2', options: 'sysAttrs' },
    ])
  })

  test('in a request of its own for an id with a comma, so that it is not read as two ids', async () => {
    await holdLinked('urn:t:1,2', 'urn:t:3')
    expect((await here.get(query)).status).toBe(200)
    expect(source.received.slice(1).map(({ path }) => path.slice(entities.length))).toEqual([
      '?id=urn%3At%3A3&options=sysAttrs&type=Tank',
      '/urn%3At%3A1%2C2?options=sysAttrs',
    ])
  })

  test('for no more linked entities than a response may join', async () => {
    setLimit('joinedEntitiesMax', 2)
    await holdLinked('urn:t:1', 'urn:t:2')
    expect([(await here.get(query)).status, source.received.length]).toEqual([200, 2])
    await here.ask('DELETE', `${entities}?local=true`)
    await holdLinked('urn:t:1', 'urn:t:2', 'urn:t:3')
    expect([(await here.get(query)).status, source.received.length]).toEqual([403, 3])
  })
})
