/** Query Temporal Evolution of Entities [NGSI-LD 5.7.4, 6.18.3.2], aggregates [4.5.19] and parts [6.3.10]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile({ temporalInstancesMax: 30 })
const temporal = '/ngsi-ld/v1/temporal/entities'
const at = (minute: number): string =>
  new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString().replace('.000', '')
const series = (values: readonly unknown[], start = 0): object[] =>
  values.map((value, i) => property(value, { observedAt: at(start + i) }))
const since = `timerel=after&timeAt=${at(0)}`

beforeAll(async () => {
  const bodies = [
    { id: 'urn:v:1', type: 'Vehicle', speed: series([10, 90, 20]), color: [property('red')] },
    { id: 'urn:v:2', type: ['Vehicle', 'Car'], speed: series([30, 40], 100) },
    { id: 'urn:b:1', type: 'Bus', speed: series([5, 6]), load: series([true, false]) },
    { id: 'urn:l:1', type: 'Long', a: series([...Array(25).keys()]), b: series([...Array(25).keys()]) },
  ]
  for (const body of bodies) expect((await gateway.send('POST', temporal, body)).status).toBe(201)
  const place = [{ type: 'Relationship', object: 'urn:p:1', observedAt: at(0) }]
  await gateway.send('POST', temporal, { id: 'urn:y:1', type: 'Yard', place, speed: series([1]) })
  for (const id of ['urn:t:1', 'urn:t:2'])
    await gateway.send('POST', temporal, { id, type: 'Truck', speed: series([1]) })
  const gone = { id: 'urn:v:gone', type: 'Vehicle', speed: series([1])[0] }
  await gateway.send('POST', '/ngsi-ld/v1/entities', gone)
  await gateway.ask('DELETE', '/ngsi-ld/v1/entities/urn:v:gone')
})

type Found = { id: string; speed: { value: number }[] }
async function found(query: string): Promise<Found[]> {
  const answer = await gateway.get(`${temporal}?${query}`)
  expect([query, answer.status, answer.text]).toEqual([query, 200, expect.anything()])
  return answer.json()
}
const idsOf = async (query: string): Promise<string[]> => (await found(query)).map(({ id }) => id)

it.each([
  [`type=Vehicle&${since}`, ['urn:v:1', 'urn:v:2', 'urn:v:gone']],
  [`type=Vehicle;Car&${since}`, ['urn:v:2']],
  [`type=Vehicle&timerel=before&timeAt=${at(50)}`, ['urn:v:1', 'urn:v:gone']],
  [`type=Vehicle&timerel=between&timeAt=${at(1)}&endTimeAt=${at(100)}`, ['urn:v:1']],
  [`type=*&id=urn:b:1,urn:v:2&${since}`, ['urn:v:2', 'urn:b:1']],
  [`type=*&idPattern=^urn:v&${since}`, ['urn:v:1', 'urn:v:2', 'urn:v:gone']],
  [`attrs=load&${since}`, ['urn:b:1']],
  [`type=Vehicle&q=speed>80&${since}`, ['urn:v:1']],
  [`type=Vehicle&q=color==%22red%22&${since}`, ['urn:v:1']],
  [`type=Vehicle&q=speed>80&timerel=after&timeAt=${at(2)}`, []],
  [`type=Truck&q=createdAt>2020-01-01T00:00:00Z&${since}`, ['urn:t:1', 'urn:t:2']],
  [`type=Truck&q=speed.modifiedAt<2020-01-01T00:00:00Z&${since}`, []],
])('%s shall find %j', async (query, ids) => {
  expect(await idsOf(query)).toEqual(ids)
})

it.each([
  ['id', ['urn:v:1', 'urn:v:2', 'urn:v:gone']],
  ['id;desc', ['urn:v:gone', 'urn:v:2', 'urn:v:1']],
])('orderBy=%s shall order entities, including deleted ones: %j', async (orderBy, ids) => {
  expect(await idsOf(`type=Vehicle&${since}&orderBy=${orderBy}`)).toEqual(ids)
})

it('shall also be available by POST', async () => {
  const post = (body: object, query = '') =>
    gateway.send('POST', `/ngsi-ld/v1/temporal/entityOperations/query${query}`, body)
  const temporalQ = { timerel: 'after', timeAt: at(1), lastN: 1 }
  const entities = [{ type: 'Bus' }, { type: 'Vehicle', idPattern: '1$' }]
  const answer = await post({ type: 'Query', entities, attrs: ['speed'], temporalQ })
  expect(answer.status).toBe(200)
  expect((answer.json() as Found[]).map(({ id, speed }) => [id, speed.map(({ value }) => value)])).toEqual([
    ['urn:v:1', [20]],
    ['urn:b:1', [6]],
  ])
  const sums = { type: 'Query', entities, temporalQ, aggrParams: { aggrMethods: ['sum'] } }
  expect((await post(sums, '?options=aggregatedValues')).status).toBe(200)
  const unsaid = await post({ ...sums, aggrParams: {} }, '?options=aggregatedValues')
  expect([unsaid.status, unsaid.text]).toEqual([400, expect.stringContaining('aggrParams.aggrMethods')])
  const inBody = await post({ type: 'Query', entities, temporalQ, aggrParams: {} })
  expect(inBody.status).toBe(400)
  expect((await post({ type: 'Query', entities })).status).toBe(400)
  const query = { type: 'Query', entities, temporalQ }
  for (const twice of ['?timerel=before', `?timeAt=${at(1)}`, '?lastN=2'])
    expect([twice, (await post(query, twice)).text]).toEqual([twice, expect.stringContaining('given twice')])
  expect((await post({ type: 'Query', entities, temporalQ: { timeRel: 'after' } })).status).toBe(400)
})

it('shall page entities with links and a count', async () => {
  const path = `${temporal}?type=Vehicle&${since}&limit=1&offset=1&count=true`
  const answer = await gateway.get(path)
  expect((answer.json() as Found[]).map(({ id }) => id)).toEqual(['urn:v:2'])
  expect(answer.headers['ngsild-results-count']).toBe('3')
  expect(answer.headers['link']).toMatch(/offset=2>;\s*rel="next".*offset=0>;\s*rel="prev"/)
})

it('shall show the members selected by pick and omit', async () => {
  expect(await found(`type=Car&${since}&pick=id`)).toEqual([{ id: 'urn:v:2' }])
  expect(Object.keys((await found(`type=Bus&${since}&omit=type,speed`))[0]!)).toEqual(['id', 'load'])
})

it.each([
  ['type=Vehicle', /timerel/, 'BadRequestData'],
  [since, /type/, 'BadRequestData'],
  [`type=V&${since}&pick=a&omit=a`, /omit/, 'BadRequestData'],
  [`type=V&${since}&attrs=a&omit=b`, /attrs/, 'BadRequestData'],
  [`type=V&${since}&orderBy=speed`, /orderBy/, 'BadRequestData'],
  [`type=V&${since}&orderBy=id,createdAt`, /orderBy/, 'BadRequestData'],
  [`type=V&${since}&format=other`, /format/, 'BadRequestData'],
  [`type=V&${since}&options=temporalValues,aggregatedValues`, /exclude/, 'InvalidRequest'],
  [`type=V&${since}&options=aggregatedValues`, /aggrMethods/, 'BadRequestData'],
  [`type=V&${since}&q=driver{age}>17`, /linked/, 'BadRequestData'],
  [`type=V&${since}&pick=driver{age}`, /pick/, 'BadRequestData'],
  [
    `attrs=place&${since}&options=aggregatedValues&aggrMethods=sum,max`,
    /aggrMethods.*place/,
    'InvalidRequest',
  ],
  [`type=V&${since}&options=aggregatedValues&aggrMethods=median`, /median/, 'BadRequestData'],
  [
    `type=V&${since}&options=aggregatedValues&aggrMethods=sum&aggrPeriodDuration=1h`,
    /duration/,
    'BadRequestData',
  ],
])('%s shall be 400 with a reason', async (query, detail, type) => {
  const answer = await gateway.get(`${temporal}?${query}`)
  expect(answer.status).toBe(400)
  const problem = answer.json() as { type: string; detail: string }
  expect(problem.detail).toMatch(detail)
  expect(problem.type).toMatch(new RegExp(`/${type}$`))
})

it('temporalValues shall contain the values in the form of each kind', async () => {
  const one = (type: string, member: string, value: unknown) => ({ type, [member]: value, observedAt: at(0) })
  const body = {
    id: 'urn:k:1',
    type: 'Kinds',
    a: one('Relationship', 'object', 'urn:x:1'),
    b: one('LanguageProperty', 'languageMap', { en: 'yes' }),
    c: one('VocabProperty', 'vocab', 'male'),
    d: one('JsonProperty', 'json', [1]),
    e: one('ListProperty', 'valueList', ['1st', '2nd']),
    f: one('ListRelationship', 'objectList', [{ object: 'urn:x:1' }, { object: 'urn:x:2' }]),
    g: one('GeoProperty', 'value', { type: 'Point', coordinates: [1, 2] }),
  }
  expect((await gateway.send('POST', temporal, body)).status).toBe(201)
  const [shown] = await found(`type=Kinds&${since}&options=temporalValues`)
  expect(shown).toEqual({
    id: 'urn:k:1',
    type: 'Kinds',
    a: { type: 'Relationship', objects: [['urn:x:1', at(0)]] },
    b: { type: 'LanguageProperty', languageMaps: [[{ languageMap: { en: 'yes' } }, at(0)]] },
    c: { type: 'VocabProperty', vocabs: [[{ vocab: 'male' }, at(0)]] },
    d: { type: 'JsonProperty', jsons: [[{ json: [1] }, at(0)]] },
    e: { type: 'ListProperty', valueLists: [[['1st', '2nd'], at(0)]] },
    f: { type: 'ListRelationship', objectLists: [[['urn:x:1', 'urn:x:2'], at(0)]] },
    g: { type: 'GeoProperty', values: [[{ type: 'Point', coordinates: [1, 2] }, at(0)]] },
  })
  const [counted] = await found(
    `type=Kinds&${since}&attrs=a,e&options=aggregatedValues&aggrMethods=sum,totalCount`,
  )
  const whole = [at(0), at(0)]
  expect(counted).toMatchObject({
    a: { type: 'Relationship', totalCount: [[1, ...whole]] },
    e: { type: 'ListProperty', sum: [[2, ...whole]] },
  })
  expect(counted).not.toHaveProperty('a.sum')
})

it('shall not be available as GeoJSON, which has no form for it', async () => {
  const answer = await gateway.get(`${temporal}?type=Bus&${since}`, { accept: 'application/geo+json' })
  expect(answer.status).toBe(406)
})

it('shall use the representation in format, even if options has another', async () => {
  const [bus] = await found(
    `type=Bus&attrs=load&${since}&format=temporalValues&options=aggregatedValues&aggrMethods=sum`,
  )
  expect(bus).toMatchObject({
    load: {
      values: [
        [true, at(0)],
        [false, at(1)],
      ],
    },
  })
})

describe('aggregates', () => {
  const aggregates = (methods: string, duration = '') =>
    `options=aggregatedValues&aggrMethods=${methods}${duration === '' ? '' : `&aggrPeriodDuration=${duration}`}`

  it('shall be per method, attribute and period', async () => {
    const answer = await gateway.get(
      `${temporal}/urn:v:1?${aggregates('avg,max,totalCount', 'PT2M')}&attrs=speed`,
    )
    expect(answer.json()).toEqual({
      id: 'urn:v:1',
      type: 'Vehicle',
      speed: {
        type: 'Property',
        avg: [
          [50, at(0), at(2)],
          [20, at(2), at(4)],
        ],
        max: [
          [90, at(0), at(2)],
          [20, at(2), at(4)],
        ],
        totalCount: [
          [2, at(0), at(2)],
          [1, at(2), at(4)],
        ],
      },
    })
  })

  it("shall cover all time without a duration, and in queries start at the query's start", async () => {
    const [bus] = await found(`type=Bus&${since}&${aggregates('sum')}&attrs=load`)
    expect(bus).toMatchObject({ load: { sum: [[1, at(0), at(1)]] } })
    const [car] = await found(`type=Car&${since}&${aggregates('min', 'PT1H')}`)
    expect(car).toMatchObject({ speed: { min: [[30, at(60), at(120)]] } })
  })
})

it('attributes without an applicable method shall be omitted unless requested', async () => {
  const [yard] = await found(`type=Yard&${since}&options=aggregatedValues&aggrMethods=sum`)
  expect(Object.keys(yard!)).toEqual(['id', 'type', 'speed'])
})

it('with lastN aggregates shall be computed from the last instances', async () => {
  const path = `${temporal}/urn:l:1?attrs=a&options=aggregatedValues&aggrMethods=totalCount,sum`
  const whole = [at(0), at(60)]
  const window = `timerel=between&timeAt=${at(0)}&endTimeAt=${at(60)}`
  const answer = await gateway.get(`${path}&${window}&lastN=2`)
  expect(answer.json()).toMatchObject({ a: { totalCount: [[2, ...whole]], sum: [[47, ...whole]] } })
  const early = await gateway.get(`${path}&timerel=before&timeAt=${at(10)}&lastN=3&aggrPeriodDuration=PT2M`)
  expect(early.json()).toMatchObject({
    a: {
      totalCount: [
        [2, at(7), at(9)],
        [1, at(9), at(11)],
      ],
    },
  })
})

describe('a response that exceeds the limit of instances', () => {
  const range = (answer: { headers: Readonly<Record<string, string | undefined>> }) =>
    answer.headers['content-range']
  it('shall be 206 with the oldest and their range', async () => {
    const answer = await gateway.get(`${temporal}/urn:l:1`)
    expect([answer.status, range(answer)]).toEqual([206, `date-time ${at(0)}-${at(14)}/*`])
    expect((answer.json() as Record<string, unknown[]>)['a']).toHaveLength(15)
  })
  it('shall be 206 with the newest if lastN was requested', async () => {
    const answer = await gateway.get(`${temporal}/urn:l:1?lastN=20`)
    expect([answer.status, range(answer)]).toEqual([206, `date-time ${at(24)}-${at(10)}/20`])
  })
  it('shall contain the requested time, in queries as well', async () => {
    const answer = await gateway.get(`${temporal}?type=Long,Bus&${since}`)
    expect([answer.status, range(answer)]).toEqual([206, expect.stringContaining(`date-time ${at(0)}-`)])
  })
})
