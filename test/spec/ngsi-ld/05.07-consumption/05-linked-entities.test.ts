/** Linked entities in responses and in q [NGSI-LD 4.5.23, 4.9, 4.21]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const encoded = encodeURIComponent
const urn = (name: string): string => `urn:ngsi-ld:${name}`
const to = (...names: readonly string[]): object => ({
  type: 'Relationship',
  object: names.length === 1 ? urn(names[0]!) : names.map(urn),
})

/** house -> street -> city -> house, and a house whose street is not stored. */
beforeAll(async () => {
  await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [
    {
      id: urn('House:1'),
      type: 'House',
      name: property('a'),
      on: to('Street:1'),
      near: to('House:2', 'Gone:1'),
    },
    { id: urn('House:2'), type: 'House', name: property('b'), on: to('Gone:2') },
    { id: urn('Street:1'), type: 'Street', name: property('Long'), lanes: property(2), in: to('City:1') },
    { id: urn('City:1'), type: 'City', name: property('Town'), oldest: to('House:1') },
    {
      id: urn('Road:1'),
      type: 'Road',
      houses: {
        type: 'ListRelationship',
        objectList: [{ object: urn('House:2') }, { object: urn('Gone:3') }],
      },
    },
  ])
})

const json = async (query: string, headers?: Record<string, string>): Promise<never> => {
  const answer = await gateway.get(`${path}${query}`, headers)
  expect([query, answer.status, answer.text]).toEqual([query, 200, answer.text])
  return answer.json()
}

describe('joined inline, an entity', () => {
  it('shall be nested in the relationship that leads to it', async () => {
    expect(await json(`/${urn('House:1')}?join=inline`)).toEqual({
      id: urn('House:1'),
      type: 'House',
      name: property('a'),
      on: {
        ...to('Street:1'),
        entity: {
          id: urn('Street:1'),
          type: 'Street',
          name: property('Long'),
          lanes: property(2),
          in: to('City:1'),
        },
      },
      near: {
        ...to('House:2', 'Gone:1'),
        entity: [{ id: urn('House:2'), type: 'House', name: property('b'), on: to('Gone:2') }],
      },
    })
  })

  it('shall replace its id in the simplified form', async () => {
    const found = await json(`/${urn('House:1')}?join=inline&joinLevel=2&format=simplified&omit=near`)
    expect(found).toEqual({
      id: urn('House:1'),
      type: 'House',
      name: 'a',
      on: {
        id: urn('Street:1'),
        type: 'Street',
        name: 'Long',
        lanes: 2,
        in: { id: urn('City:1'), type: 'City', name: 'Town', oldest: urn('House:1') },
      },
    })
  })

  it('shall be in entityList of a ListRelationship', async () => {
    const road = (await json(`/${urn('Road:1')}?join=inline&pick=houses{id}`)) as { houses: object }
    expect(road.houses).toHaveProperty('entityList', [{ id: urn('House:2') }])
  })

  it('shall never contain itself, nor an entity in containedBy', async () => {
    const text = JSON.stringify(await json(`/${urn('House:1')}?join=inline&joinLevel=8`))
    expect(text.match(/"id":"urn:ngsi-ld:House:1"/g)).toHaveLength(1)
    const less = await json(`/${urn('House:1')}?join=inline&containedBy=${urn('Street:1')}`)
    expect(less).toHaveProperty('on', to('Street:1'))
  })
})

describe('joined flat, entities', () => {
  it('shall follow the selected entities, each once', async () => {
    const ids = ((await json('?type=House&join=flat&joinLevel=8')) as { id: string }[]).map(({ id }) => id)
    expect(ids).toEqual(['House:1', 'House:2', 'Street:1', 'City:1'].map(urn))
  })

  it('shall be returned as a list when retrieving one entity, even if nothing is linked', async () => {
    expect(await json(`/${urn('Street:1')}?join=flat&pick=name,in{name}`)).toEqual([
      { name: property('Long'), in: to('City:1') },
      { name: property('Town') },
    ])
    expect(await json(`/${urn('House:2')}?join=flat`)).toMatchObject([{ id: urn('House:2') }])
  })

  it('shall be projected by omit at every level', async () => {
    expect(await json(`/${urn('Street:1')}?join=flat&options=keyValues&omit=lanes,in{oldest,type}`)).toEqual([
      { id: urn('Street:1'), type: 'Street', name: 'Long', in: urn('City:1') },
      { id: urn('City:1'), name: 'Town' },
    ])
  })
})

describe('q through a relationship', () => {
  it.each([
    ['on{name}=="Long"', ['House:1']],
    ['on{Street:lanes}>1', ['House:1']],
    ['on{City:lanes}>1', []],
    ['on{in{name}}~="^T"', ['House:1']],
    ['on{lanes}>2', []],
    ['on', ['House:1', 'House:2']],
    ['!on{name}', ['House:2', 'Street:1', 'City:1', 'Road:1']],
    ['houses{name}=="b"', ['Road:1']],
    ['name=="b"|on{lanes}==2', ['House:1', 'House:2']],
  ])('%s shall find %j', async (q, expected) => {
    const found = (await json(`?q=${encoded(q)}&join=inline&joinLevel=2`)) as { id: string }[]
    expect(found.map(({ id }) => id)).toEqual(expected.map(urn))
  })
})

describe('an invalid join', () => {
  it.each([
    ['join=sideways', /^join/],
    ['joinLevel=2', /^joinLevel/],
    ['join=flat&joinLevel=0', /^joinLevel/],
    ['join=flat&joinLevel=x', /^joinLevel/],
    ['pick=on{name}', /join/],
    ['join=inline&pick=on{in{name}}', /^joinLevel/],
    ['q=on{name}==1', /^q: .*require join/],
    ['q=on{name}==1&join=@none', /^q: .*require join/],
    ['q=on{in{name}}==1&join=flat', /^q: .*joinLevel/],
    ['join=inline&pick=on{name', /^pick.*}/],
    ['join=inline&pick=on{}', /^pick/],
    ['pick=name&omit=name', /^omit/],
    ['pick=name&attrs=name', /^attrs/],
    ['join=inline&containedBy=x', /^containedBy/],
    ['containedBy=urn:ngsi-ld:House:1', /^containedBy: is allowed only with join/],
  ])('%s shall be 400', async (query, detail) => {
    const answer = await gateway.get(`${path}?type=House&${query}`)
    expect([query, answer.status]).toEqual([query, 400])
    expect((answer.json() as { detail: string }).detail).toMatch(detail)
  })
})
