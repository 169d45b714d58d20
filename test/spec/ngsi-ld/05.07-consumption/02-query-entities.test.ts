/** Query Entities [NGSI-LD 5.7.2, 6.4.3.2], paging and counting [6.3.10, 6.3.13]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { workTime } from '#test/kit/calm-time.ts'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const observes = 'http://www.w3.org/ns/sosa/observes'
const car = (n: number): string => `urn:ngsi-ld:Car:${String(n).padStart(3, '0')}`

/** Cars 0 to 119 along the equator, one degree apart, and two planes. */
beforeAll(async () => {
  const cars = Array.from({ length: 120 }, (_, n) => ({
    id: car(n),
    type: 'Car',
    speed: property(n, { observedAt: '2025-01-01T00:00:00Z' }),
    brand: property(n % 2 === 0 ? 'A' : 'B'),
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [n, 0] } },
    ...(n === 7 ? { [observes]: { type: 'Relationship', object: 'urn:ngsi-ld:Property:7' } } : {}),
  }))
  const planes = [
    { id: 'urn:ngsi-ld:Plane:1', type: ['Plane', 'Jet'], speed: property(900) },
    { id: 'urn:ngsi-ld:Plane:2', type: 'https://a.example/Plane', wings: property(2) },
  ]
  await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [...cars, ...planes])
})

const ids = async (query: string): Promise<string[]> => {
  const answer = await gateway.get(`${path}?limit=1000&${query}`)
  expect([query, answer.status]).toEqual([query, 200])
  return (answer.json() as { id: string }[]).map(({ id }) => id)
}
const encoded = encodeURIComponent

describe('a selection', () => {
  it.each([
    ['type=Plane', ['urn:ngsi-ld:Plane:1']],
    ['type=Jet', ['urn:ngsi-ld:Plane:1']],
    ['type=Plane;Jet', ['urn:ngsi-ld:Plane:1']],
    ['type=Plane;Car', []],
    [`type=${encoded('https://a.example/Plane')}`, ['urn:ngsi-ld:Plane:2']],
    [`type=Plane,${encoded('https://a.example/Plane')}`, ['urn:ngsi-ld:Plane:1', 'urn:ngsi-ld:Plane:2']],
    ['type=Boat', []],
    [`type=Car&id=${car(3)},${car(1)},urn:ngsi-ld:Car:none`, [car(1), car(3)]],
    [`type=Car&idPattern=${encoded('Car:00[12]$')}`, [car(1), car(2)]],
    ['attrs=wings', ['urn:ngsi-ld:Plane:2']],
    ['q=speed>=119', [car(119), 'urn:ngsi-ld:Plane:1']],
    ['type=Car&q=speed==5', [car(5)]],
    [`type=Car&q=${encoded('brand=="A";speed<4')}`, [car(0), car(2)]],
    [`type=Car&q=${encoded('(speed==1|speed==3);brand=="B"')}`, [car(1), car(3)]],
    ['type=Car&q=speed==5..7', [car(5), car(6), car(7)]],
    ['type=Car&q=speed==5,7', [car(5), car(7)]],
    [`q=${encoded(`${observes}=="urn:ngsi-ld:Property:7"`)}`, [car(7)]],
    [`q=${encoded(observes)}`, [car(7)]],
    [
      `type=Car&georel=near;maxDistance==120000&geometry=Point&coordinates=${encoded('[10,0]')}`,
      [car(9), car(10), car(11)],
    ],
    [
      `georel=within&geometry=Polygon&coordinates=${encoded('[[[19.5,-1],[21.5,-1],[21.5,1],[19.5,1],[19.5,-1]]]')}`,
      [car(20), car(21)],
    ],
  ])('%s shall find %j', async (query, expected) => {
    expect((await ids(query)).toSorted()).toEqual(expected.toSorted())
  })

  it('shall use the terms of the context in the Link header', async () => {
    const link =
      '<http://any.example/contexts/selvedge-platform.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
    const answer = await gateway.get(`${path}?q=sosa:observes`, { Link: link })
    const [found] = answer.json() as object[]
    expect(found).toHaveProperty(['sosa:observes', 'object'], 'urn:ngsi-ld:Property:7')
  })

  it('shall show only the attributes in attrs', async () => {
    const [found] = (
      await gateway.get(`${path}?type=Car&attrs=brand&options=keyValues&limit=1`)
    ).json() as object[]
    expect(found).toEqual({ id: car(0), type: 'Car', brand: 'A' })
  })

  it('shall immediately return a value written just before', async () => {
    await gateway.send('PATCH', `${path}/${car(50)}/attrs`, {
      speed: property(5000, { observedAt: '2025-01-01T00:00:01Z' }),
    })
    expect(await ids('type=Car&q=speed>1000')).toEqual([car(50)])
    expect(await ids('type=Car&q=speed==50')).toEqual([])
    await gateway.send('PATCH', `${path}/${car(50)}/attrs`, {
      speed: property(50, { observedAt: '2025-01-01T00:00:02Z' }),
    })
    expect(await ids('type=Car&q=speed==50')).toEqual([car(50)])
  })

  it('shall be an empty list when nothing matches', async () => {
    const answer = await gateway.get(`${path}?type=Boat`, { Accept: 'application/ld+json' })
    expect([answer.status, answer.text]).toEqual([200, '[]'])
  })
})

describe('pages', () => {
  const linkOf = (link: string | undefined, relation: string): string | undefined =>
    new RegExp(`<([^>]*)>;rel="${relation}";type="application/json"`).exec(link ?? '')?.[1]

  it('shall hold 50 entities without a limit, and reach every entity once', async () => {
    const seen: string[] = []
    let next: string | undefined = `${path}?type=Car`
    let pages = 0
    while (next !== undefined) {
      const answer = await gateway.get(next)
      seen.push(...(answer.json() as { id: string }[]).map(({ id }) => id))
      next = linkOf(answer.headers['link'], 'next')
      pages++
    }
    expect(pages).toBe(3)
    expect(seen).toHaveLength(120)
    expect(new Set(seen).size).toBe(120)
  })

  it('shall link to the previous page, and keep the parameters of the request', async () => {
    const answer = await gateway.get(`${path}?type=Car&q=${encoded('brand=="A"')}&limit=10&offset=15`)
    const prev = linkOf(answer.headers['link'], 'prev')!
    expect(new URL(prev, gateway.url).searchParams.get('q')).toBe('brand=="A"')
    expect(((await gateway.get(prev)).json() as { id: string }[])[0]).toHaveProperty('id', car(10))
    const first = await gateway.get(`${path}?type=Car&limit=10`)
    expect(linkOf(first.headers['link'], 'prev')).toBeUndefined()
  })

  it('shall keep a query that contains a question mark in the link to the next page', async () => {
    const answer = await gateway.get(`${path}?type=Car&limit=1&q=brand~=%22B?%22;speed>116`)
    const next = linkOf(answer.headers['link'], 'next')!
    expect(((await gateway.get(next)).json() as { id: string }[]).map(({ id }) => id)).toEqual([car(118)])
  })

  it('shall be counted with count=true', async () => {
    const counted = await gateway.get(`${path}?type=Car&limit=2&count=true`)
    expect([counted.headers['ngsild-results-count'], (counted.json() as object[]).length]).toEqual(['120', 2])
    const empty = await gateway.get(`${path}?type=Car&limit=0&count=true`)
    expect([empty.headers['ngsild-results-count'], empty.text]).toEqual(['120', '[]'])
    expect((await gateway.get(`${path}?type=Car`)).headers['ngsild-results-count']).toBeUndefined()
  })

  it.each([
    ['limit=1001', 403, 'TooManyResults'],
    ['limit=0', 400, 'BadRequestData'],
    ['limit=-1', 400, 'BadRequestData'],
    ['limit=many', 400, 'BadRequestData'],
    ['offset=-1', 400, 'BadRequestData'],
    ['count=1', 400, 'BadRequestData'],
  ])('shall be rejected with %s', async (query, status, name) => {
    const answer = await gateway.get(`${path}?type=Car&${query}`)
    expect(answer.status).toBe(status)
    expect(answer.json()).toHaveProperty('type', `https://uri.etsi.org/ngsi-ld/errors/${name}`)
  })
})

describe('an invalid query', () => {
  it.each([
    ['', /type, id, attrs, q/],
    ['idPattern=x', /type, id, attrs, q/],
    ['attrs=createdAt,modifiedAt', /type, id, attrs, q/],
    ['q=modifiedAt>2020-01-01T00:00:00Z', /type, id, attrs, q/],
    ['colour=red', /colour/],
    ['type=Car&type=Plane', /type is given twice/],
    ['type=', /type/],
    ['type=A%20B;', /type/],
    ['type=!A', /type/],
    ['type=Car&orderBy=', /^orderBy/],
    ['type=Car&orderBy=(', /^orderBy/],
    ['type=Car&format=xml', /^format/],
    ['type=Car&id=car1', /^id/],
    ['type=Car&idPattern=(', /^idPattern: .*missing closing \)/],
    ['type=Car&q=', /q/],
    ['type=Car&q=speed==', /q|value/],
    ['type=Car&q=(speed==1', /\)/],
    ['type=Car&q=speed~="["', /pattern|\[/i],
    ['type=Car&georel=near', /geometry|coordinates|distance/i],
    ['type=Car&georel=near;maxDistance==x&geometry=Point&coordinates=[0,0]', /maxDistance|georel/],
    ['type=Car&georel=within&geometry=Polygon&coordinates=[[0,0]]', /geometry|coordinates/],
    ['type=Car&geometry=Point', /georel/],
    ['type=%ff', /percent/],
    ['type=Car&idPattern=', /^idPattern: must not be an empty/],
    ['type=Car&expandValues=', /expandValues/],
    ['type=Car&expandValues=a<b', /expandValues/],
    ['type=Car&jsonKeys=', /jsonKeys/],
    ['type=*&local=false', /local=false/],
  ])('%s shall be 400 with a reason', async (query, detail) => {
    const answer = await gateway.get(`${path}?${query}`)
    expect([query, answer.status]).toEqual([query, 400])
    expect((answer.json() as { detail: string }).detail).toMatch(detail)
  })

  it('for all entities shall be accepted with local=true', async () => {
    expect((await ids('local=true')).length).toBe(122)
    expect((await ids('type=*')).length).toBe(122)
  })
})

describe('attacks', () => {
  it.each([
    `type=Car&q=${encoded('speed==1 OR 1=1')}`,
    `type=Car&q=${encoded(`brand=="' OR '1'='1"`)}`,
    `type=Car&q=${encoded('brand=="A\'; DROP TABLE entity; --"')}`,
    `type=${encoded("Car' UNION SELECT doc FROM entity --")}`,
    `id=${encoded("urn:x:1' OR 1=1 --")}`,
    `type=Car&q=${encoded('__proto__==1')}`,
    `type=Car&q=${encoded('constructor.prototype==1')}`,
    `attrs=${encoded("x') OR 1=1 --")}`,
  ])('%s shall find nothing or be rejected', async (query) => {
    const answer = await gateway.get(`${path}?${query}`)
    expect([200, 400, 403]).toContain(answer.status)
    if (answer.status === 200) expect(answer.json()).toEqual([])
    expect((await ids('type=Car')).length).toBe(120)
  })

  it.each(['^(a+)+$', '(a|a)*b', '(.*)*x', '((((((((((a*)*)*)*)*)*)*)*)*)*b', 'a'.repeat(5000)])(
    'the pattern %s shall finish in bounded time',
    async (pattern) => {
      const long = 'a'.repeat(2000)
      await gateway.send('POST', path, {
        id: `urn:ngsi-ld:Long:${pattern.length}`,
        type: 'Long',
        text: property(`${long}!`),
      })
      const worked = workTime()
      const answer = await gateway.get(`${path}?type=Long&q=${encoded(`text~="${pattern}"`)}`)
      expect([200, 400, 403]).toContain(answer.status)
      expect(worked()).toBeLessThan(2000)
    },
  )

  it('a query longer or deeper than allowed shall be 403 TooComplexQuery', async () => {
    const many = Array.from({ length: limits.queryTermsMax.value + 1 }, (_, i) => `a${i}==1`).join(';')
    const deep = `${'('.repeat(400)}a==1${')'.repeat(400)}`
    for (const q of [many, deep, `a=="${'x'.repeat(limits.queryCharactersMax.value)}"`]) {
      const answer = await gateway.get(`${path}?type=Car&q=${encoded(q)}`)
      expect(answer.status).toBe(403)
      expect(answer.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/TooComplexQuery')
    }
  })
})
