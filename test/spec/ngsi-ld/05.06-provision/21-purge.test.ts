/** Purge of entities [NGSI-LD 5.6.21, 6.4.3.3]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const read = async (id: string): Promise<unknown> => {
  const answer = await gateway.get(`${path}/${id}`)
  return answer.status === 200 ? answer.json() : answer.status
}

async function things(type: string, count: number, members: (n: number) => object): Promise<string[]> {
  const ids = Array.from({ length: count }, () => freshId(type))
  const items = ids.map((id, n) => ({ id, type, ...members(n) }))
  expect((await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', items)).status).toBe(201)
  return ids
}

const purge = async (query: string): Promise<number> =>
  (await gateway.ask('DELETE', `${path}${query}`)).status

describe('DELETE of entities', () => {
  it('shall delete all matching entities, even more than a page, and nothing else', async () => {
    const ids = await things('Many', 600, (n) => ({ a: property(n) }))
    const [other] = await things('Other', 1, () => ({ a: property(1) }))
    expect(await purge('?type=Many&q=a%3E=10')).toBe(204)
    expect((await gateway.get(`${path}?type=Many&limit=0&count=true`)).headers['ngsild-results-count']).toBe(
      '10',
    )
    expect(await read(ids[9]!)).toMatchObject({ a: property(9) })
    expect(await read(ids[10]!)).toBe(404)
    expect(await purge('/?type=Many')).toBe(204)
    expect(await read(ids[9]!)).toBe(404)
    expect(await read(other!)).toMatchObject({ a: property(1) })
    expect(await purge('?type=Many')).toBe(204)
  })

  it('shall remove only the attributes to drop', async () => {
    const ids = await things('Dropped', 300, () => ({ scope: '/a', a: property(1), b: property(2) }))
    expect(await purge('?type=Dropped&q=a&drop=a,scope')).toBe(204)
    for (const id of ids) expect(await read(id)).toEqual({ id, type: 'Dropped', b: property(2) })
  })

  it('shall remove all attributes except those to keep, by the names of the context', async () => {
    const full = 'http://www.w3.org/ns/sosa/hasSimpleResult'
    const [id] = await things('Kept', 1, () => ({ a: property(1), [full]: property(2), scope: '/a' }))
    expect(await purge(`?type=Kept&id=${id}&keep=${encodeURIComponent(full)}`)).toBe(204)
    expect(await read(id!)).toEqual({ id, type: 'Kept', [full]: property(2) })
  })

  it.each([
    ['no filter', ''],
    ['keep and drop together', '?type=T&keep=a&drop=b'],
    ['a member that every entity requires', '?type=T&drop=id'],
    ['a parameter of responses', '?type=T&limit=5'],
    ['an empty name', '?type=T&drop=a,'],
    ['an id alone', '?id=urn:x:1'],
    ['a pattern of ids alone', '?idPattern=.*'],
    ['an id and a pattern of ids', '?id=urn:x:1&idPattern=.*'],
    ['an empty pattern of ids', '?type=Lamp&idPattern='],
    ['scopes alone', '?scopeQ=/a'],
    ['conditions on linked entities', `?type=T&q=${encodeURIComponent('a{b}==1')}`],
  ])('shall reject %s', async (_, query) => {
    expect(await purge(query)).toBe(400)
  })

  it('shall delete everything with local=true', async () => {
    const [id] = await things('Last', 1, () => ({ a: property(1) }))
    expect(await purge('?local=true')).toBe(204)
    expect(await read(id!)).toBe(404)
  })
})
