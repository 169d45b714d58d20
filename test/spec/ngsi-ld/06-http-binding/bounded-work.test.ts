/**
 * Requests with bounded work (GS CIM 009, 6.3.2: TooComplexQuery), and long queries that yield to other
 * requests. `npm run stall` measures the event loop under the largest inputs.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const ld = '/ngsi-ld/v1'
const property = (value: unknown) => ({ type: 'Property', value })
const range = <T>(length: number, make: (i: number) => T): T[] => Array.from({ length }, (_, i) => make(i))
const upsert = (entities: readonly object[]) =>
  gateway.send('POST', `${ld}/entityOperations/upsert`, entities)
const tooComplex = { type: 'https://uri.etsi.org/ngsi-ld/errors/TooComplexQuery', status: 403 }

afterAll(restoreLimits)

describe('a pattern over 300 texts of 50 kB', () => {
  beforeAll(async () => {
    const long = 'a'.repeat(50_000)
    for (let part = 0; part < 3; part++)
      await upsert(
        range(100, (i) => ({
          id: `urn:x:long:${100 * part + i}`,
          type: 'Long',
          s: property(100 * part + i === 250 ? `b${long}` : `${long}!`),
        })),
      )
  })
  const query = (pattern: string) =>
    gateway.get(`${ld}/entities?type=Long&attrs=s&limit=1000&q=${encodeURIComponent(`s~="${pattern}"`)}`)

  it('with catastrophic backtracking shall be answered, and yield to other requests', async () => {
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    const asked = query('(a|aa)+$')
    count()
    const { status, text } = await asked
    isOver = true
    expect(status).toBe(200)
    expect((JSON.parse(text) as { id: string }[]).map(({ id }) => id)).toEqual(['urn:x:long:250'])
    expect(turns).toBeGreaterThan(5)
  })

  it('with too many states shall be 403 TooComplexQuery', async () => {
    expect((await query('(.*a){20}$')).json()).toMatchObject(tooComplex)
  })
})

it('a geometry with too many positions for the stored entities shall be 403 TooComplexQuery', async () => {
  const ring = (positions: number) => {
    const open = range(positions - 1, (i) => [
      Math.cos((6.28 * i) / positions),
      Math.sin((6.28 * i) / positions),
    ])
    return [[...open, open[0]]]
  }
  const location = { type: 'GeoProperty', value: { type: 'Polygon', coordinates: ring(5000) } }
  await upsert([{ id: 'urn:x:area', type: 'Area', location }])
  const within = (positions: number) =>
    gateway.send('POST', `${ld}/entityOperations/query`, {
      type: 'Query',
      entities: [{ type: 'Area' }],
      geoQ: { georel: 'intersects', geometry: 'Polygon', coordinates: ring(positions) },
    })
  expect((await within(1000)).json()).toMatchObject(tooComplex)
  expect((await within(50)).json()).toHaveLength(1)
})

it('an orderBy over too many entities shall be 403 TooComplexQuery', async () => {
  await upsert(range(30, (i) => ({ id: `urn:x:ordered:${i}`, type: 'Ordered', n: property(i) })))
  const ordered = () => gateway.get(`${ld}/entities?type=Ordered&orderBy=n`)
  setLimit('orderedEntitiesMax', 29)
  expect((await ordered()).json()).toMatchObject(tooComplex)
  setLimit('orderedEntitiesMax', 30)
  expect((await ordered()).json()).toHaveLength(30)
})

describe('an entity', () => {
  const most = limits.attributesPerEntityMax.value
  const attributes = (count: number, first = 0) =>
    Object.fromEntries(range(count, (i) => [`a${first + i}`, property(i)]))
  const path = `${ld}/entities/urn:x:wide`
  beforeAll(() => upsert([{ id: 'urn:x:wide', type: 'Wide', ...attributes(most) }]))

  it.each([
    ['POST', '/attrs'],
    ['PATCH', '/attrs'],
    ['PATCH', ''],
  ])('shall not exceed the limit of attributes by %s %s', async (method, suffix) => {
    const { status, text } = await gateway.send(method, path + suffix, attributes(1, most))
    expect([status, JSON.parse(text).detail]).toEqual([
      400,
      `the entity urn:x:wide would have ${most + 1} attributes; the maximum is ${most}`,
    ])
    expect((await gateway.send('PATCH', `${path}/attrs`, { a7: property('new') })).status).toBe(204)
  })
})

describe('a body with too many values for one turn', () => {
  const most = limits.bodyValuesMax.value

  it('shall be 400', async () => {
    const value = `[${'[],'.repeat(most / 2)}[]]`
    const body = `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":${value}}}`
    const { status, text } = await gateway.send('POST', `${ld}/entities`, body)
    expect([status, JSON.parse(text).detail]).toEqual([400, `the body has more than ${most} values`])
  })

  it('does not count commas and brackets in strings', async () => {
    const body = { id: 'urn:x:commas', type: 'N', a: property(`\\",[{`.repeat(most / 2)) }
    expect((await gateway.send('POST', `${ld}/entities`, body)).status).toBe(201)
  })

  it('is processed entity by entity if it is a batch', async () => {
    const values = range(1000, (i) => i)
    const batch = range(most / 900, (i) => ({ id: `urn:x:part:${i}`, type: 'Part', a: property(values) }))
    expect((await upsert(batch)).status).toBe(201)
  })
})
