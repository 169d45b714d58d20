/**
 * Distributed histories between real gateways: merged evolutions, queries and aggregates over them, long
 * answers of sources in parts, and writes of histories that belong to a source.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const api = '/ngsi-ld/v1'
const temporal = `${api}/temporal/entities`
const operations = [
  ...['retrieveTemporal', 'queryTemporal', 'upsertTemporal', 'appendAttrsTemporal'],
  ...['deleteTemporal', 'deleteAttrsTemporal', 'updateAttrInstanceTemporal', 'deleteAttrInstanceTemporal'],
]
const reading = ['retrieveTemporal', 'queryTemporal']
const time = (minute: number): string => new Date(Date.UTC(2024, 0, 1, 0, minute)).toISOString()
/** Times in responses have no zero fraction. */
const shortened = (value: unknown) => (typeof value === 'string' ? value.replace('.000', '') : value)
const series = (minutes: readonly number[], factor = 1) =>
  minutes.map((minute) => ({ type: 'Property', value: minute * factor, observedAt: time(minute) }))

describe('GS CIM 009, 4.3.6: distributed histories', () => {
  let here: HttpGateway
  let there: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    there = await startHttpGateway({ alias: 'there', temporalInstancesMax: 4 })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  const hold = async (gateway: HttpGateway, id: string, attributes: object): Promise<void> => {
    const made = await gateway.send('POST', `${temporal}?local=true`, { id, type: 'Pump', ...attributes })
    expect([made.status, made.text]).toEqual([201, ''])
  }
  let registered: string[] = []
  const register = async (members: object, gateway = here): Promise<void> => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: there.url,
      operations: reading,
      ...members,
    }
    const made = await gateway.send('POST', `${api}/csourceRegistrations`, body)
    expect([made.status, made.text]).toEqual([201, ''])
    registered.push(gateway.url + made.headers['location']!)
  }
  afterEach(async () => {
    for (const gateway of [here, there])
      for (const url of registered.filter((one) => one.startsWith(gateway.url)))
        await gateway.ask('DELETE', url.slice(gateway.url.length))
    registered = []
  })
  type Instances = { value: number; observedAt: string }[]
  const minutesOf = (list: Instances | undefined): number[] =>
    (list ?? []).map(({ observedAt }) => new Date(observedAt).getUTCMinutes())
  const read = async (path: string, gateway = here) => {
    const reply = await gateway.get(path)
    expect([reply.status, reply.headers['ngsild-warning']]).toEqual([200, undefined])
    return reply.json() as Record<string, Instances>
  }

  test('instances of all brokers form one evolution, each once; local=true and other operations stay local', async () => {
    await hold(here, 'urn:h:1', { flow: series([1, 3]) })
    await hold(there, 'urn:h:1', { flow: series([2, 3, 4]), heat: series([5]) })
    await register({})
    const whole = await read(`${temporal}/urn:h:1`)
    expect([minutesOf(whole['flow']), minutesOf(whole['heat'])]).toEqual([[1, 2, 3, 4], [5]])
    expect(minutesOf((await read(`${temporal}/urn:h:1?local=true`))['flow'])).toEqual([1, 3])
    const last = await read(`${temporal}/urn:h:1?lastN=2&attrs=flow`)
    expect([minutesOf(last['flow']), last['heat']]).toEqual([[3, 4], undefined])
    const within = `timerel=between&timeAt=${time(2)}&endTimeAt=${time(4)}`
    expect(minutesOf((await read(`${temporal}/urn:h:1?${within}`))['flow'])).toEqual([2, 3])
  })

  test('a source without temporal operations is not queried', async () => {
    await hold(there, 'urn:h:2', { flow: series([2]) })
    await register({ operations: ['federationOps'] })
    expect((await here.get(`${temporal}/urn:h:2`)).status).toBe(404)
  })

  test('a history too long for one answer of a source is read in parts', async () => {
    const minutes = Array.from({ length: 19 }, (_, i) => i)
    await hold(there, 'urn:h:3', { flow: series(minutes), heat: series([3, 17]) })
    await register({})
    const whole = await read(`${temporal}/urn:h:3`)
    expect([minutesOf(whole['flow']), minutesOf(whole['heat'])]).toEqual([minutes, [3, 17]])
    const after = `timerel=after&timeAt=${time(7)}`
    expect(minutesOf((await read(`${temporal}/urn:h:3?${after}`))['flow'])).toEqual(minutes.slice(7))
    expect(minutesOf((await read(`${temporal}/urn:h:3?lastN=9`))['flow'])).toEqual(minutes.slice(-9))
  })

  test('queries find local and remote histories, and evaluate all values of the window', async () => {
    await hold(here, 'urn:q:1', { flow: series([11]) })
    await hold(here, 'urn:q:2', { flow: series([11]) })
    await hold(there, 'urn:q:2', { flow: series([12], 100) })
    await hold(there, 'urn:q:3', { flow: series([13]) })
    await register({})
    const after = `timerel=after&timeAt=${time(10)}`
    const ids = async (query: string) => {
      const reply = await here.get(`${temporal}?type=Pump&idPattern=^urn:q&${after}&${query}`)
      expect(reply.status).toBe(200)
      const found = reply.json() as { id: string }[]
      return [reply.headers['ngsild-results-count'], found.map(({ id }) => id)]
    }
    expect(await ids('count=true')).toEqual(['3', ['urn:q:1', 'urn:q:2', 'urn:q:3']])
    expect(await ids('count=true&limit=1&offset=2')).toEqual(['3', ['urn:q:3']])
    expect((await ids('q=flow%3E1000'))[1]).toEqual(['urn:q:2'])
    expect((await ids('local=true'))[1]).toEqual(['urn:q:1', 'urn:q:2'])
    const body = {
      type: 'Query',
      entities: [{ type: 'Pump', idPattern: '^urn:q' }],
      temporalQ: { timerel: 'after', timeAt: time(10) },
    }
    const posted = await here.send('POST', `${api}/temporal/entityOperations/query`, body)
    expect((posted.json() as { id: string }[]).map(({ id }) => id)).toEqual(['urn:q:1', 'urn:q:2', 'urn:q:3'])
  })

  test('aggregates include the values of all brokers', async () => {
    await hold(here, 'urn:h:4', { flow: series([20, 21]), level: series([22]) })
    await hold(there, 'urn:h:4', { flow: series([23, 24]) })
    await register({})
    const asked = `options=aggregatedValues&aggrMethods=sum,totalCount&timerel=after&timeAt=${time(20)}`
    const sums = (await read(`${temporal}/urn:h:4?${asked}`)) as unknown as Record<
      string,
      Record<string, [number, string, string][]>
    >
    expect(sums['flow']!['sum']!.map(([value]) => value)).toEqual([88])
    expect(sums['flow']!['totalCount']!.map(([value]) => value)).toEqual([4])
    expect(sums['level']!['totalCount']!.map(([value]) => value)).toEqual([1])
    const found = await here.get(`${temporal}?type=Pump&id=urn:h:4&${asked}`)
    expect(found.json()).toMatchObject([
      { id: 'urn:h:4', flow: { sum: [[88, time(20), time(24)].map(shortened)] } },
    ])
  })

  test('aggregates of relationships are counts, local or remote', async () => {
    const to = (n: number) => [{ type: 'Relationship', object: `urn:x:${n}`, observedAt: time(n) }]
    await hold(here, 'urn:h:16', { to: to(1) })
    await hold(there, 'urn:h:16', { to: to(2) })
    await register({})
    const sums = await read(`${temporal}/urn:h:16?options=aggregatedValues&aggrMethods=min,totalCount`)
    expect(sums['to']).toEqual({
      type: 'Relationship',
      totalCount: [[2, time(1), time(2)].map(shortened)],
    })
  })

  test('a source registered for another time is not queried', async () => {
    await hold(there, 'urn:h:5', { flow: series([2]) })
    const interval = { startAt: '2020-01-01T00:00:00Z', endAt: '2021-01-01T00:00:00Z' }
    await register({ observationInterval: interval })
    const asked = (from: string) => here.get(`${temporal}/urn:h:5?timerel=after&timeAt=${from}`)
    expect((await asked('2023-01-01T00:00:00Z')).status).toBe(404)
    expect((await asked('2020-06-01T00:00:00Z')).status).toBe(200)
  })

  test('redirect: a history is written, corrected and deleted at its source', async () => {
    const information = [{ entities: [{ type: 'Tank' }] }]
    await register({ mode: 'redirect', operations, information })
    const made = await here.send('POST', temporal, { id: 'urn:h:6', type: 'Tank', flow: series([1, 2]) })
    expect([made.status, made.headers['location']]).toEqual([201, `${temporal}/urn:h:6`])
    const more = await here.send('POST', temporal, { id: 'urn:h:6', type: 'Tank', flow: series([3]) })
    expect(more.status).toBe(204)
    const added = await here.send('POST', `${temporal}/urn:h:6/attrs`, { flow: series([4]) })
    expect([added.status, added.text]).toEqual([204, ''])
    expect(minutesOf((await read(`${temporal}/urn:h:6`))['flow'])).toEqual([1, 2, 3, 4])
    expect((await here.get(`${temporal}/urn:h:6?local=true`)).status).toBe(404)
    const flow = (await read(`${temporal}/urn:h:6`, there))['flow'] as unknown as { instanceId: string }[]
    const gone = await here.ask('DELETE', `${temporal}/urn:h:6/attrs/flow/${flow[0]!.instanceId}`)
    expect(gone.status).toBe(204)
    expect(minutesOf((await read(`${temporal}/urn:h:6`, there))['flow'])).toEqual([2, 3, 4])
    expect((await here.ask('DELETE', `${temporal}/urn:h:6`)).status).toBe(204)
    expect((await there.get(`${temporal}/urn:h:6`)).status).toBe(404)
  })

  test('circular registrations end, and an unreachable source causes a warning', async () => {
    await hold(there, 'urn:h:7', { flow: series([1]) })
    await register({})
    await register({ endpoint: here.url }, there)
    const reply = await here.get(`${temporal}/urn:h:7`)
    expect(minutesOf((reply.json() as { flow: Instances }).flow)).toEqual([1])
    const gone = await startHttpGateway({ alias: 'gone' })
    await gone.close()
    await register({ endpoint: gone.url })
    const warned = await here.get(`${temporal}/urn:h:7`)
    expect([warned.status, warned.headers['ngsild-warning']]).toEqual([
      200,
      expect.stringMatching(/(?:^|, )199 .*ECONNREFUSED/),
    ])
  })
})
