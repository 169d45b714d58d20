/** Retrieve Temporal Evolution of an Entity [NGSI-LD 5.7.3, 6.20.3.1]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const id = 'urn:ngsi-ld:Sensor:1'
const path = `/ngsi-ld/v1/temporal/entities/${id}`
const at = (second: number): string =>
  new Date(Date.UTC(2025, 0, 1) + second * 1000).toISOString().replace('.000', '')

async function observe(values: readonly (readonly [second: number, value: unknown])[]): Promise<void> {
  for (const [second, value] of values) {
    await gateway.send('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, {
      speed: property(value, { observedAt: at(second) }),
    })
  }
}

beforeAll(async () => {
  await gateway.send('POST', '/ngsi-ld/v1/entities', {
    id,
    type: 'Sensor',
    speed: property(0, { observedAt: at(0), unitCode: 'KMH' }),
    name: property('first'),
  })
  await observe([
    [10, 1],
    [20, 2],
    [30, 3],
  ])
})

type Instance = { type: string; value: unknown; observedAt: string; instanceId: string }
const speeds = async (query: string): Promise<unknown[]> => {
  const answer = await gateway.get(`${path}?${query}`)
  expect([query, answer.status]).toEqual([query, 200])
  return ((answer.json() as { speed?: Instance[] }).speed ?? []).map(({ value }) => value)
}

it('shall return all instances of all attributes, each with its own id', async () => {
  const evolution = (await gateway.get(path)).json() as { id: string; type: string; speed: Instance[] }
  expect(evolution).toMatchObject({ id, type: 'Sensor' })
  expect(evolution.speed.map(({ value }) => value)).toEqual([0, 1, 2, 3])
  expect(evolution.speed[1]).toMatchObject({ type: 'Property', value: 1, observedAt: at(10) })
  expect(new Set(evolution.speed.map(({ instanceId }) => instanceId)).size).toBe(4)
})

it('shall be 404 if the entity does not have the requested types', async () => {
  const statuses = async (query: string): Promise<number[]> =>
    Promise.all(
      ['Sensor', 'Room,Sensor', '*', 'Room', 'Sensor;Room', '('].map(
        async (type) => (await gateway.get(`${path}?type=${type}${query}`)).status,
      ),
    )
  expect(await statuses('')).toEqual([200, 200, 200, 404, 404, 400])
  expect(await statuses('&format=aggregatedValues&aggrMethods=max&attrs=speed')).toEqual([
    200, 200, 200, 404, 404, 400,
  ])
})

describe('a window', () => {
  it.each([
    [`timerel=before&timeAt=${at(20)}`, [0, 1]],
    [`timerel=after&timeAt=${at(20)}`, [2, 3]],
    [`timerel=between&timeAt=${at(10)}&endTimeAt=${at(30)}`, [1, 2]],
    ['lastN=2', [2, 3]],
    [`timerel=before&timeAt=${at(30)}&lastN=1`, [2]],
    [`timerel=after&timeAt=${at(3600)}`, []],
    ['attrs=speed', [0, 1, 2, 3]],
    ['attrs=name', []],
    [`timeproperty=modifiedAt&timerel=before&timeAt=${at(3600)}`, []],
    [`timeproperty=modifiedAt&timerel=after&timeAt=${at(3600)}`, [0, 1, 2, 3]],
  ])('%s shall return %j', async (query, values) => {
    expect(await speeds(query)).toEqual(values)
  })

  it.each([
    ['timerel=before', /timeAt/],
    [`timeAt=${at(0)}`, /timerel/],
    [`timerel=around&timeAt=${at(0)}`, /timerel/],
    ['timerel=after&timeAt=yesterday', /timeAt/],
    ['timerel=after&timeAt=2025-01-01', /timeAt/],
    [`timerel=between&timeAt=${at(0)}`, /endTimeAt/],
    [`timerel=before&timeAt=${at(0)}&endTimeAt=${at(1)}`, /endTimeAt/],
    ['timeproperty=bornAt', /timeproperty/],
    ['lastN=0', /lastN/],
    ['lastN=some', /lastN/],
    ['options=aggregatedValues', /aggregatedValues/],
    ['q=speed', /\bq\b/],
  ])('%s shall be 400 with a reason', async (query, detail) => {
    const answer = await gateway.get(`${path}?${query}`)
    expect([query, answer.status]).toEqual([query, 400])
    expect((answer.json() as { detail: string }).detail).toMatch(detail)
  })
})

describe('representations', () => {
  it('shall return values with their times', async () => {
    const answer = await gateway.get(`${path}?options=temporalValues&attrs=speed&lastN=2`)
    expect(answer.json()).toEqual({
      id,
      type: 'Sensor',
      speed: {
        type: 'Property',
        values: [
          [2, at(20)],
          [3, at(30)],
        ],
      },
    })
  })

  it('shall include modifiedAt with sysAttrs', async () => {
    const answer = await gateway.get(`${path}?options=sysAttrs&attrs=speed&lastN=1`)
    expect((answer.json() as { speed: object[] }).speed[0]).toHaveProperty('modifiedAt')
  })

  it('shall return a @context with a single address as JSON-LD does', async () => {
    const answer = await gateway.get(path, { Accept: 'application/ld+json' })
    expect(answer.headers['content-type']).toBe('application/ld+json')
    expect(answer.json()).toHaveProperty('@context', expect.stringContaining('ngsi-ld-core-context'))
  })
})

it('shall be 404 for an id that no entity ever had', async () => {
  expect((await gateway.get('/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:Sensor:none')).status).toBe(404)
})

it('shall outlive the entity', async () => {
  const gone = 'urn:ngsi-ld:Sensor:gone'
  await gateway.send('POST', '/ngsi-ld/v1/entities', {
    id: gone,
    type: 'Sensor',
    speed: property(1, { observedAt: at(0) }),
  })
  const { createdAt } = (await gateway.get(`/ngsi-ld/v1/entities/${gone}?options=sysAttrs`)).json() as {
    createdAt: string
  }
  await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${gone}`)
  const evolution = (await gateway.get(`/ngsi-ld/v1/temporal/entities/${gone}?options=sysAttrs`)).json() as {
    speed: Instance[]
    deletedAt: string
  }
  expect(evolution.speed[0]).toMatchObject({ value: 1, observedAt: at(0) })
  expect(evolution).toMatchObject({ createdAt })
  expect(Date.parse(evolution.deletedAt)).toBeGreaterThanOrEqual(Date.parse(createdAt))
  const plain = (await gateway.get(`/ngsi-ld/v1/temporal/entities/${gone}`)).json()
  expect(plain).toMatchObject({ deletedAt: evolution.deletedAt })
  expect(plain).not.toHaveProperty('createdAt')
})

describe('instances written in one commit', () => {
  const temporal = '/ngsi-ld/v1/temporal/entities'
  const values = async (path: string): Promise<unknown[]> =>
    ((await gateway.get(path)).json() as { speed: Instance[] }).speed.map(({ value }) => value)

  it('shall be returned in the order of the requests, also with lastN', async () => {
    const same = 'urn:ngsi-ld:Sensor:batch'
    const items = [7, 8, 9].map((value) => ({ id: same, type: 'Sensor', speed: property(value) }))
    await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert?options=update', items)
    const path = `${temporal}/${same}?timeproperty=modifiedAt`
    expect(await values(path)).toEqual([7, 8, 9])
    expect(await values(`${path}&lastN=2`)).toEqual([8, 9])
    expect(await values(`${path}&lastN=1`)).toEqual([9])
  })

  it('shall be returned in the order of observation, if written as one history', async () => {
    const same = 'urn:ngsi-ld:Sensor:history'
    const speed = [3, 1, 0, 2].map((second) => property(second, { observedAt: at(second) }))
    await gateway.send('POST', temporal, { id: same, type: 'Sensor', speed })
    expect(await values(`${temporal}/${same}?timeproperty=createdAt`)).toEqual([0, 1, 2, 3])
    expect(await values(`${temporal}/${same}?timeproperty=modifiedAt&lastN=1`)).toEqual([3])
  })
})

it('more instances than a response may hold shall be returned in parts without gaps', async () => {
  const long = 'urn:ngsi-ld:Sensor:long'
  const total = limits.temporalInstancesMax.value + 500
  await gateway.send('POST', '/ngsi-ld/v1/entities', {
    id: long,
    type: 'Sensor',
    speed: property(0, { observedAt: at(0) }),
  })
  const perRequest = 2000
  for (let start = 1; start < total; start += perRequest) {
    const items = Array.from({ length: Math.min(perRequest, total - start) }, (_, i) => ({
      id: long,
      type: 'Sensor',
      speed: property(start + i, { observedAt: at(start + i) }),
    }))
    expect((await gateway.send('POST', '/ngsi-ld/v1/entityOperations/update', items)).status).toBe(204)
  }
  const seen = new Set<unknown>()
  let from = at(0)
  for (let part = 0; part < 3; part++) {
    const answer = await gateway.get(`/ngsi-ld/v1/temporal/entities/${long}?timerel=after&timeAt=${from}`)
    for (const { value } of (answer.json() as { speed: Instance[] }).speed) seen.add(value)
    if (answer.status === 200) break
    expect(answer.status).toBe(206)
    const range = /^date-time (\S+Z)-(\S+Z)\/\*$/.exec(answer.headers['content-range']!)!
    expect(range[1]).toBe(from)
    from = range[2]!
  }
  expect(seen.size).toBe(total)
})

it('instances that are large together shall be returned in parts without gaps', async () => {
  const large = 'urn:ngsi-ld:Sensor:large'
  const total = 60
  const text = 'x'.repeat(60_000)
  const speed = Array.from({ length: total }, (_, i) => property(`${i} ${text}`, { observedAt: at(i) }))
  await gateway.send('POST', '/ngsi-ld/v1/temporal/entities', { id: large, type: 'Sensor', speed })
  const seen = new Set<unknown>()
  let from = at(0)
  for (let part = 0; part < 5; part++) {
    const answer = await gateway.get(`/ngsi-ld/v1/temporal/entities/${large}?timerel=after&timeAt=${from}`)
    expect(answer.text.length).toBeLessThan(1.1 * limits.pageBytesMax.value)
    for (const { value } of (answer.json() as { speed: Instance[] }).speed) seen.add(value)
    if (answer.status === 200) break
    expect(answer.status).toBe(206)
    from = /^date-time \S+Z-(\S+Z)\/\*$/.exec(answer.headers['content-range']!)![1]!
  }
  expect(seen.size).toBe(total)
})
