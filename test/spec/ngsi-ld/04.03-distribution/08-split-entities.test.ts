/**
 * Entities whose parts are held by several brokers (splitEntities, since 1.9): who evaluates conditions, and
 * what a response contains.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const at = (value: unknown) => ({ type: 'Property', value })
/** Sources that satisfy the conditions only together, and further ones. */
const joint = `${encodeURIComponent('flow==1;heat==2')}`

describe('GS CIM 009, 5.7.2: entities split over several brokers', () => {
  let here: HttpGateway
  let one: HttpGateway
  let other: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    one = await startHttpGateway({ alias: 'one' })
    other = await startHttpGateway({ alias: 'other' })
    const hold = (gateway: HttpGateway, id: string, attributes: object) =>
      gateway.send('POST', entities, { id, type: 'Pump', ...attributes })
    await hold(one, 'urn:p:1', { flow: at(1) })
    await hold(other, 'urn:p:1', { heat: at(2), scope: '/plant' })
    await hold(other, 'urn:p:2', { flow: at(1), heat: at(3) })
    await hold(here, 'urn:p:3', { flow: at(1) })
    await hold(other, 'urn:p:3', { heat: at(2) })
    for (const { url } of [one, other])
      await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
        type: 'ContextSourceRegistration',
        information: [{ entities: [{ type: 'Pump' }] }],
        operations: ['federationOps'],
        endpoint: url,
      })
  })
  afterAll(async () => {
    for (const gateway of [here, one, other]) await gateway.close()
  })
  const found = async (query: string): Promise<Record<string, string[]>> => {
    const reply = await here.get(`${entities}?type=Pump&options=keyValues&${query}`)
    expect(reply.status).toBe(200)
    return Object.fromEntries(
      (reply.json() as { id: string }[]).map(({ id, ...rest }) => [
        id,
        Object.keys(rest)
          .filter((name) => name === 'flow' || name === 'heat')
          .sort((a, b) => a.localeCompare(b)),
      ]),
    )
  }

  test('an entity found at one source is completed from the others', async () => {
    const whole = ['flow', 'heat']
    expect(await found('q=flow==1')).toEqual({ 'urn:p:1': whole, 'urn:p:2': whole, 'urn:p:3': whole })
    expect(await found('scopeQ=/plant')).toEqual({ 'urn:p:1': whole })
  })

  test('splitEntities=true: conditions are evaluated on whole entities', async () => {
    expect(await found(`q=${joint}&splitEntities=true`)).toEqual({
      'urn:p:1': ['flow', 'heat'],
      'urn:p:3': ['flow', 'heat'],
    })
    expect(await found(`q=flow==1&scopeQ=/plant&splitEntities=true`)).toEqual({ 'urn:p:1': ['flow', 'heat'] })
  })

  test('splitEntities=false: each source holds its entities whole, and none is queried again', async () => {
    expect(await found('q=flow==1&splitEntities=false')).toEqual({
      'urn:p:1': ['flow'],
      'urn:p:2': ['flow', 'heat'],
      'urn:p:3': ['flow'],
    })
  })

  test('conditions of q on linked entities are evaluated here', async () => {
    const link = { type: 'Relationship', object: 'urn:p:3' }
    await one.send('POST', entities, { id: 'urn:p:4', type: 'Pump', feeds: link })
    const q = encodeURIComponent('feeds{flow}==1')
    expect(await found(`q=${q}&join=inline`)).toEqual({ 'urn:p:4': [] })
    await one.ask('DELETE', `${entities}/urn:p:4`)
  })

  test('the setting applies to requests without the parameter', async () => {
    const strict = await startHttpGateway({ alias: 'strict', splits: true })
    for (const { url } of [one, other])
      await strict.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
        type: 'ContextSourceRegistration',
        information: [{ entities: [{ type: 'Pump' }] }],
        endpoint: url,
      })
    const ids = async (more: string): Promise<unknown> =>
      ((await strict.get(`${entities}?type=Pump&q=${joint}${more}`)).json() as { id: string }[]).map(
        ({ id }) => id,
      )
    expect([await ids(''), await ids('&splitEntities=false')]).toEqual([['urn:p:1'], []])
    await strict.close()
  })

  test('a query body has the same effect', async () => {
    const body = { type: 'Query', entities: [{ type: 'Pump' }], q: 'flow==1;heat==2', splitEntities: true }
    const path = '/ngsi-ld/v1/entityOperations/query'
    const ids = (await here.send('POST', path, body)).json() as { id: string }[]
    expect(ids.map(({ id }) => id).sort((a, b) => a.localeCompare(b))).toEqual(['urn:p:1', 'urn:p:3'])
    for (const wrong of ['true', 1])
      expect((await here.send('POST', path, { ...body, splitEntities: wrong })).status).toBe(400)
  })

  test('conditions on histories are evaluated in the same way', async () => {
    const histories = '/ngsi-ld/v1/temporal/entities'
    const level = (value: number) => [{ ...at(value), observedAt: '2025-01-01T00:00:00Z' }]
    await one.send('POST', histories, { id: 'urn:t:1', type: 'Tank', level: level(1) })
    await other.send('POST', histories, { id: 'urn:t:1', type: 'Tank', depth: level(2) })
    for (const { url } of [one, other])
      await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
        type: 'ContextSourceRegistration',
        information: [{ entities: [{ type: 'Tank' }] }],
        operations: ['retrieveTemporal', 'queryTemporal'],
        endpoint: url,
      })
    const ask = async (splits: string): Promise<string[]> => {
      const window = 'timerel=after&timeAt=2024-01-01T00:00:00Z'
      const reply = await here.get(`${histories}?type=Tank&q=level==1&${window}${splits}`)
      const [{ level, depth }] = reply.json() as [{ level?: object; depth?: object }]
      return Object.keys(JSON.parse(JSON.stringify({ depth, level })) as object)
    }
    for (const splits of ['', '&splitEntities=true']) expect(await ask(splits)).toEqual(['depth', 'level'])
    expect(await ask('&splitEntities=false')).toEqual(['level'])
  })

  test('is refused if it is neither true nor false, with and without sources, and on other operations', async () => {
    for (const gateway of [here, one]) {
      for (const path of [entities, '/ngsi-ld/v1/temporal/entities'])
        expect((await gateway.get(`${path}?type=Pump&splitEntities=maybe`)).status).toBe(400)
      expect((await gateway.get(`${entities}?type=Pump&splitEntities=true`)).status).toBe(200)
      expect((await gateway.get('/ngsi-ld/v1/types?splitEntities=true')).status).toBe(400)
    }
  })
})
