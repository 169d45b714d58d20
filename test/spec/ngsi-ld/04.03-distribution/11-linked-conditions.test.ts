/**
 * Conditions on linked entities (GS CIM 009, 4.9) with local and remote entities and links: the result is the
 * same as if all data were local.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const operations = '/ngsi-ld/v1/entityOperations'
const of = (value: unknown) => ({ type: 'Property', value })
const to = (object: string | readonly string[], objectType?: string) => ({
  type: 'Relationship',
  object,
  ...(objectType === undefined ? {} : { objectType }),
})
const pump = (n: number, members: object) => ({ id: `urn:p:${n}`, type: 'Pump', ...members })
const tank = (n: number, members: object) => ({ id: `urn:t:${n}`, type: 'Tank', ...members })

/** Pumps 1 and 2 are local, 3 is remote, 4 is split; tanks 1 and 5 are local, the others remote. */
const here = [
  pump(1, { feeds: to('urn:t:1', 'Tank'), flow: of(1) }),
  pump(2, { feeds: to(['urn:t:2', 'urn:t:3'], 'Tank'), flow: of(2) }),
  pump(4, { flow: of(4) }),
  pump(5, { feeds: to('urn:t:2') }),
  pump(6, { flow: of(6) }),
  tank(1, { level: of(10), in: to('urn:h:1', 'Hall') }),
  tank(5, { level: of(50) }),
]
const there = [
  pump(3, { feeds: to('urn:t:5', 'Tank'), flow: of(3) }),
  pump(4, { feeds: to('urn:t:4', 'Tank') }),
  tank(2, { level: of(20), in: to('urn:h:1', 'Hall') }),
  tank(3, { level: of(30), in: to('urn:h:2', 'Hall') }),
  tank(4, { level: of(40) }),
  { id: 'urn:h:1', type: 'Hall', name: of('north') },
  { id: 'urn:h:2', type: 'Hall', name: of('south') },
]

describe('GS CIM 009, 4.9: conditions on linked entities over several brokers', () => {
  let broker: HttpGateway
  let source: HttpGateway
  let whole: HttpGateway
  const create = async (gateway: HttpGateway, all: readonly object[]): Promise<void> => {
    const made = await gateway.send('POST', `${operations}/create?local=true`, all)
    expect([made.status, made.text]).toEqual([201, made.text])
  }
  beforeAll(async () => {
    broker = await startHttpGateway({ alias: 'here' })
    source = await startHttpGateway({ alias: 'there' })
    // All data in one place, in the order in which the sources report it.
    whole = await startHttpGateway({ alias: 'whole' })
    await create(broker, here)
    await create(source, there)
    await create(whole, [
      ...here.filter(({ id }) => id !== 'urn:p:4'),
      ...there.filter(({ id }) => id !== 'urn:p:4'),
      pump(4, { flow: of(4), feeds: to('urn:t:4', 'Tank') }),
    ])
    const made = await broker.send('POST', registrations, {
      type: 'ContextSourceRegistration',
      information: [{ entities: ['Pump', 'Tank', 'Hall'].map((type) => ({ type })) }],
      operations: ['retrieveOps'],
      endpoint: source.url,
    })
    expect([made.status, made.text]).toEqual([201, ''])
  })
  afterAll(async () => {
    for (const gateway of [broker, source, whole]) await gateway.close()
  })
  afterEach(restoreLimits)

  const found = async (gateway: HttpGateway, q: string, more = ''): Promise<string[]> => {
    const query = `type=Pump&join=inline&joinLevel=2&pick=id&q=${encodeURIComponent(q)}${more}`
    const reply = await gateway.get(`${entities}?${query}`)
    expect([reply.status, reply.headers['ngsild-warning'], reply.text]).toEqual([200, undefined, reply.text])
    return (reply.json() as { id: string }[]).map(({ id }) => id).sort()
  }

  test.each([
    ['feeds{level}>=10', ['urn:p:1', 'urn:p:2', 'urn:p:3', 'urn:p:4']],
    ['feeds{level}==30', ['urn:p:2']],
    ['feeds{Tank:level}>15', ['urn:p:2', 'urn:p:3', 'urn:p:4', 'urn:p:5']],
    ['feeds{level}>15;flow<4', ['urn:p:2', 'urn:p:3']],
    ['feeds{level}>35|flow==6', ['urn:p:3', 'urn:p:4', 'urn:p:6']],
    ['feeds{in{name}}=="north"', ['urn:p:1', 'urn:p:2']],
    ['feeds{in{name}}!="north"', ['urn:p:2']],
    ['!feeds{in}', ['urn:p:3', 'urn:p:4', 'urn:p:5', 'urn:p:6']],
    ['feeds{Hall:level}>1', []],
    ['!feeds{level}', ['urn:p:5', 'urn:p:6']],
  ])('%s finds %j', async (q, expected) => {
    expect(await found(broker, q)).toEqual(expected)
  })

  test('relationships with types give the same result as with all data in one place', async () => {
    for (const q of ['feeds{Tank:level}>15', '!feeds{Tank:level}', 'feeds{Tank:in{Hall:name}}~="^n"'])
      expect([q, await found(broker, q)]).toEqual([q, await found(whole, q)])
  })

  test('a query body finds the same, and pages and counts cover all results', async () => {
    const body = {
      type: 'Query',
      entities: [{ type: 'Pump' }],
      q: 'feeds{level}>=10',
      join: 'inline',
      joinLevel: 1,
      pick: ['id'],
    }
    const posted = await broker.send('POST', `${operations}/query`, body)
    expect((posted.json() as { id: string }[]).map(({ id }) => id)).toEqual([
      ...['urn:p:1', 'urn:p:2', 'urn:p:3', 'urn:p:4'],
    ])
    const page = async (offset: number) => {
      const q = encodeURIComponent('feeds{level}>=10')
      const path = `${entities}?type=Pump&join=inline&pick=id&count=true&limit=2&offset=${offset}&q=${q}`
      const reply = await broker.get(path)
      const next = /rel="next"/.test(reply.headers['link'] ?? '')
      return [reply.headers['ngsild-results-count'], next, reply.json()]
    }
    expect([await page(0), await page(2), await page(4)]).toEqual([
      ['4', true, [{ id: 'urn:p:1' }, { id: 'urn:p:2' }]],
      ['4', false, [{ id: 'urn:p:3' }, { id: 'urn:p:4' }]],
      ['4', false, []],
    ])
  })

  test('an entity map contains all results', async () => {
    const q = encodeURIComponent('feeds{level}==30|feeds{level}==40')
    const reply = await broker.get(`${entities}?type=Pump&join=inline&entityMap=true&q=${q}`)
    expect([reply.status, (reply.json() as { id: string }[]).map(({ id }) => id)]).toEqual([
      201,
      ['urn:p:2', 'urn:p:4'],
    ])
    const map = (await broker.get(reply.headers['ngsild-entitymap']!)).json() as { entityMap: object }
    expect(Object.keys(map.entityMap)).toEqual(['urn:p:2', 'urn:p:4'])
  })

  test('too many candidates to evaluate one by one are 403', async () => {
    const query = (q: string) => `${entities}?type=Pump&join=inline&q=${encodeURIComponent(q)}`
    setLimit('linkedCandidatesMax', 3)
    expect((await broker.get(query('feeds{level}==30'))).status).toBe(200)
    expect((await broker.get(query('!feeds{level}'))).status).toBe(403)
  })
})
