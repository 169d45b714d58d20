/** Temporal entities: created, extended, corrected, deleted [NGSI-LD 5.6.11 to 5.6.16, 6.18 to 6.22]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const temporal = '/ngsi-ld/v1/temporal/entities'
const at = (minute: number): string =>
  new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString().replace('.000', '')
const speeds = (...minutes: number[]): object[] =>
  minutes.map((minute) => property(minute, { observedAt: at(minute) }))

interface Instance {
  readonly value: unknown
  readonly instanceId: string
  readonly datasetId?: string
  readonly deletedAt?: string
}
async function instancesOf(id: string, name = 'speed', query = ''): Promise<Instance[]> {
  const answer = await gateway.get(`${temporal}/${id}${query}`)
  expect(answer.status).toBe(200)
  return (answer.json() as Record<string, Instance[]>)[name] ?? []
}
const valuesOf = async (id: string, name?: string, query?: string): Promise<unknown[]> =>
  (await instancesOf(id, name, query)).map(({ value }) => value)
async function created(attributes: object): Promise<string> {
  const id = freshId('Vehicle')
  expect((await gateway.send('POST', temporal, { id, type: 'Vehicle', ...attributes })).status).toBe(201)
  return id
}

describe('creating a temporal entity', () => {
  it('shall be 201 with a Location and no body; the entity has the final state of its history', async () => {
    const id = freshId('Vehicle')
    const answer = await gateway.send('POST', temporal, { id, type: 'Vehicle', speed: speeds(2, 0, 1) })
    expect([answer.status, answer.headers['location'], answer.text]).toEqual([201, `${temporal}/${id}`, ''])
    expect(await valuesOf(id)).toEqual([0, 1, 2])
    const entity = (await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json() as Record<string, Instance>
    expect(entity['speed']).toMatchObject({ value: 2, observedAt: at(2) })
  })

  it('shall store every kind of attribute and every dataset', async () => {
    const id = await created({
      speed: [...speeds(0), property(9, { observedAt: at(1), datasetId: 'urn:d:1' })],
      near: [0, 1].map((n) => ({ type: 'Relationship', object: `urn:x:${n}`, observedAt: at(n) })),
      name: [0, 1].map((n) => ({ type: 'LanguageProperty', languageMap: { en: `${n}` }, observedAt: at(n) })),
    })
    expect((await instancesOf(id)).map(({ datasetId }) => datasetId)).toEqual([undefined, 'urn:d:1'])
    expect(await instancesOf(id, 'near')).toMatchObject([{ object: 'urn:x:0' }, { object: 'urn:x:1' }])
    expect(await instancesOf(id, 'name')).toMatchObject([
      { languageMap: { en: '0' } },
      { languageMap: { en: '1' } },
    ])
  })

  it('shall expire the entity at the given time (V1.9.1), also after additions, and omit the expiry from its history', async () => {
    const ends = (year: number) => `${year}-01-01T00:00:00Z`
    const id = await created({ expiresAt: ends(2098), speed: speeds(0) })
    const read = async () =>
      (await gateway.get(`/ngsi-ld/v1/entities/${id}?options=sysAttrs`)).json() as Record<string, unknown>
    expect(await read()).toMatchObject({ expiresAt: ends(2098), speed: { value: 0 } })
    expect(await instancesOf(id, 'expiresAt')).toEqual([])
    const more = { expiresAt: ends(2099), speed: speeds(1) }
    expect((await gateway.send('POST', `${temporal}/${id}/attrs`, more)).status).toBe(204)
    expect(await read()).toMatchObject({ expiresAt: ends(2099), speed: { value: 1 } })
    const odd = { id: freshId('Vehicle'), type: 'Vehicle', expiresAt: 'soon', speed: speeds(0) }
    expect((await gateway.send('POST', temporal, odd)).status).toBe(400)
  })

  it.each([
    ['nothing', {}, 'InvalidRequest'],
    ['no id', { type: 'Vehicle', speed: speeds(0) }, 'BadRequestData'],
    ['no type', { id: 'urn:x:1', speed: speeds(0) }, 'BadRequestData'],
    ['an id that is not a URI', { id: 'x', type: 'Vehicle', speed: speeds(0) }, 'BadRequestData'],
    [
      'an attribute without value',
      { id: 'urn:x:1', type: 'V', speed: [{ type: 'Property' }] },
      'BadRequestData',
    ],
  ])('shall be 400 for %s', async (_, body, type) => {
    const answer = await gateway.send('POST', temporal, body)
    expect(answer.status).toBe(400)
    expect((answer.json() as { type: string }).type).toBe(`https://uri.etsi.org/ngsi-ld/errors/${type}`)
  })
})

describe('extending a temporal entity', () => {
  it('shall be 204; past values remain past, the newest becomes current', async () => {
    const id = await created({ speed: speeds(10) })
    const more = {
      id,
      type: ['Vehicle', 'Car'],
      speed: speeds(5, 20),
      name: [property('x', { observedAt: at(0) })],
    }
    expect((await gateway.send('POST', temporal, more)).status).toBe(204)
    expect(await valuesOf(id)).toEqual([5, 10, 20])
    const entity = (await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json() as Record<string, unknown>
    expect(entity).toMatchObject({ type: ['Vehicle', 'Car'], speed: { value: 20 }, name: { value: 'x' } })
  })

  it('shall add other values with an existing time, and none twice', async () => {
    const id = await created({ speed: speeds(0, 1, 2) })
    const other = [
      property('one', { observedAt: at(1) }),
      property('two', { observedAt: at(2) }),
      ...speeds(0),
    ]
    expect((await gateway.send('POST', `${temporal}/${id}/attrs`, { speed: other })).status).toBe(204)
    expect(await valuesOf(id)).toEqual([0, 1, 'one', 2, 'two'])
  })

  it('shall be 404 for an unknown entity, 400 for another id in the body', async () => {
    const body = { speed: speeds(0) }
    expect((await gateway.send('POST', `${temporal}/urn:x:none/attrs`, body)).status).toBe(404)
    const id = await created(body)
    expect((await gateway.send('POST', `${temporal}/${id}/attrs`, { id: 'urn:x:2', ...body })).status).toBe(
      400,
    )
  })

  it('shall add values observed by other interfaces to the same history', async () => {
    const id = freshId('Vehicle')
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', speed: speeds(10)[0] })
    await gateway.send('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, { speed: speeds(11)[0] })
    await gateway.send('POST', `${temporal}/${id}/attrs`, { speed: speeds(1, 11, 12) })
    expect(await valuesOf(id)).toEqual([1, 10, 11, 12])
  })

  it('shall recognize stored instances, in any order of their members', async () => {
    const id = freshId('Vehicle')
    const speed = { type: 'Property', value: 3, unitCode: 'KMH', observedAt: at(3) }
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', speed })
    const again = [1, 2, 3].map((n) => ({ type: 'Property', observedAt: at(n), value: n, unitCode: 'KMH' }))
    const answer = await gateway.send('POST', temporal, { id, type: 'Vehicle', speed: again })
    expect(answer.status).toBe(204)
    expect(await valuesOf(id)).toEqual([1, 2, 3])
  })
})

describe('an instance', () => {
  it('shall be replaced and keep its id', async () => {
    const id = await created({ speed: speeds(0, 1, 2) })
    for (const [i, { instanceId }] of (await instancesOf(id)).entries()) {
      const path = `${temporal}/${id}/attrs/speed/${instanceId}`
      const body = { speed: [property(100 + i, { observedAt: at(i) })] }
      expect((await gateway.send('PATCH', path, body)).status).toBe(204)
      const changed = (await instancesOf(id, 'speed', '?options=sysAttrs'))[i]
      expect(changed).toMatchObject({ instanceId, value: 100 + i })
    }
    expect(await valuesOf(id)).toEqual([100, 101, 102])
  })

  it('shall be deleted alone', async () => {
    const id = await created({ speed: speeds(0, 1, 2) })
    const [first, , last] = await instancesOf(id)
    for (const { instanceId } of [first!, last!]) {
      const path = `${temporal}/${id}/attrs/speed/${instanceId}`
      expect((await gateway.ask('DELETE', path)).status).toBe(204)
      expect((await gateway.ask('DELETE', path)).status).toBe(404)
    }
    expect(await valuesOf(id)).toEqual([1])
  })

  it('shall be restored with its previous id when it is written again after its deletion', async () => {
    const id = await created({ speed: speeds(0, 1, 2, 3) })
    await gateway.send('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, { speed: speeds(4)[0] })
    const before = await instancesOf(id)
    for (const { instanceId } of before.slice(1, 5))
      await gateway.ask('DELETE', `${temporal}/${id}/attrs/speed/${instanceId}`)
    expect(await valuesOf(id)).toEqual([0])
    const again = { speed: speeds(1, 2, 4) }
    expect((await gateway.send('POST', `${temporal}/${id}/attrs`, again)).status).toBe(204)
    expect(await instancesOf(id)).toEqual([0, 1, 2, 4].map((i) => before[i]))
  })

  it.each([
    ['urn:x:none', 'speed', 'urn:ngsi-ld:instance:n1-0', 404],
    ['', 'other', 'urn:ngsi-ld:instance:n1-0', 404],
    ['', 'speed', 'urn:ngsi-ld:instance:s1-0-00000000', 404],
    ['', 'speed', 'urn:somebody:else', 404],
    ['', 'speed', 'nouri', 400],
    ['', 'a(b', 'urn:ngsi-ld:instance:n1-0', 400],
    ['nouri', 'speed', 'urn:ngsi-ld:instance:n1-0', 400],
  ])('shall not be found under %s %s %s', async (entity, name, instance, status) => {
    const id = entity === '' ? await created({ speed: speeds(0) }) : entity
    expect((await gateway.ask('DELETE', `${temporal}/${id}/attrs/${name}/${instance}`)).status).toBe(status)
  })
})

describe('deleting', () => {
  const datasets = () => [
    property(1, { observedAt: at(0) }),
    property(2, { observedAt: at(0), datasetId: 'urn:d:2' }),
  ]
  it.each([
    ['', [2]],
    ['?datasetId=urn:d:2', [1]],
    ['?deleteAll=true', []],
  ])('an attribute%s shall leave %j of its history', async (query, left) => {
    const id = await created({ speed: datasets(), name: [property('x', { observedAt: at(0) })] })
    expect((await gateway.ask('DELETE', `${temporal}/${id}/attrs/speed${query}`)).status).toBe(204)
    expect(await valuesOf(id)).toEqual(left)
    expect(await valuesOf(id, 'name')).toEqual(['x'])
    expect((await gateway.ask('DELETE', `${temporal}/${id}/attrs/speed${query}`)).status).toBe(404)
  })

  it('an entity created with its history shall delete both together, and can be created again', async () => {
    const body = { speed: speeds(0, 1) }
    const id = await created(body)
    expect((await gateway.ask('DELETE', `${temporal}/${id}`)).status).toBe(204)
    expect((await gateway.get(`${temporal}/${id}`)).status).toBe(404)
    expect((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).status).toBe(404)
    expect((await gateway.ask('DELETE', `${temporal}/${id}`)).status).toBe(404)
    expect((await gateway.send('POST', temporal, { id, type: 'Vehicle', ...body })).status).toBe(201)
    expect(await valuesOf(id)).toEqual([0, 1])
  })

  it('shall be returned only if the entity has, or had, the given types', async () => {
    const came = await created({ speed: speeds(1) })
    const gone = freshId('Vehicle')
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id: gone, type: ['Vehicle', 'Boat'] })
    await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${gone}`)
    for (const id of [came, gone]) {
      const outcomes = [
        await gateway.ask('DELETE', `${temporal}/${id}?type=Plane`),
        await gateway.get(`${temporal}/${id}`),
        await gateway.ask('DELETE', `${temporal}/${id}?type=(`),
        await gateway.ask('DELETE', `${temporal}/${id}?type=Plane,Vehicle`),
        await gateway.get(`${temporal}/${id}`),
      ]
      expect(outcomes.map(({ status }) => status)).toEqual([404, 200, 400, 204, 404])
    }
  })

  it('deleting the history of an entity created otherwise shall keep the entity, and start a new history', async () => {
    const id = freshId('Vehicle')
    const path = `/ngsi-ld/v1/entities/${id}`
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', speed: speeds(0)[0] })
    await gateway.send('PATCH', `${path}/attrs`, { speed: speeds(1)[0] })
    expect((await gateway.ask('DELETE', `${temporal}/${id}`)).status).toBe(204)
    expect((await gateway.get(`${temporal}/${id}`)).status).toBe(404)
    expect((await gateway.get(path)).json()).toMatchObject({ speed: { value: 1 } })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await gateway.send('PATCH', `${path}/attrs`, { speed: speeds(2)[0] })
    expect(await valuesOf(id)).toEqual([2])
  })
})

describe('a current deletion', () => {
  it.each<[string, object, object]>([
    ['Property', property(1, { observedAt: at(0) }), { value: 'urn:ngsi-ld:null' }],
    ['Relationship', { type: 'Relationship', object: 'urn:x:1' }, { object: 'urn:ngsi-ld:null' }],
    [
      'LanguageProperty',
      { type: 'LanguageProperty', languageMap: { en: 'a' } },
      { languageMap: { '@none': 'urn:ngsi-ld:null' } },
    ],
  ])('of a %s shall leave a marker with its time', async (type, attribute, marker) => {
    const id = freshId('Vehicle')
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', x: attribute, y: property(1) })
    await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${id}/attrs/x`)
    const [deleted, ...others] = await instancesOf(id, 'x', '?timeproperty=deletedAt')
    expect(others).toEqual([])
    expect(deleted).toMatchObject({ type, ...marker, deletedAt: expect.stringMatching(/Z$/) })
    await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${id}`)
    expect(await instancesOf(id, 'y', '?timeproperty=deletedAt')).toHaveLength(1)
  })

  it('of the scope shall leave one, too, because scopes have a history', async () => {
    const id = freshId('Vehicle')
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', scope: '/a', y: property(1) })
    await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${id}/attrs/scope`)
    expect(await valuesOf(id, 'scope', '?timeproperty=modifiedAt')).toEqual([['/a'], []])
    const [deleted] = await instancesOf(id, 'scope', '?timeproperty=deletedAt')
    expect(deleted).toMatchObject({ type: 'Property', value: [], deletedAt: expect.stringMatching(/Z$/) })
  })
})

describe('scopes with their observation times', () => {
  const scope = (minute: number, value: unknown) => property(value, { observedAt: at(minute) })
  const current = async (id: string): Promise<unknown> =>
    ((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json() as { scope: unknown }).scope

  it('shall all be in the evolution, and the newest be those of the entity', async () => {
    const id = await created({ scope: [scope(2, ['/b', '/c']), scope(0, '/a')] })
    const returned = [
      { ...scope(0, ['/a']), instanceId: expect.any(String) },
      { ...scope(2, ['/b', '/c']), instanceId: expect.any(String) },
    ]
    expect(await instancesOf(id, 'scope')).toEqual(returned)
    expect(await instancesOf(id, 'scope', '?timeproperty=modifiedAt')).toEqual(returned)
    expect(await valuesOf(id, 'scope', `?timerel=after&timeAt=${at(1)}`)).toEqual([['/b', '/c']])
    expect(await current(id)).toEqual(['/b', '/c'])
    const count = 'options=aggregatedValues&aggrMethods=totalCount'
    for (const query of [count, `${count}&lastN=1`])
      expect((await gateway.get(`${temporal}/${id}?${query}`)).json()).not.toHaveProperty('scope')
  })

  it('shall be added to existing ones: older ones as past, each once, others of the same time as well', async () => {
    const id = await created({ scope: [scope(2, '/b')] })
    const add = async (...scopes: object[]): Promise<void> => {
      const answer = await gateway.send('POST', `${temporal}/${id}/attrs`, { scope: scopes })
      expect([answer.status, answer.text]).toEqual([204, ''])
    }
    await add(scope(1, '/a'))
    expect(await current(id)).toBe('/b')
    await add(scope(1, '/a'), scope(3, '/c'))
    expect(await current(id)).toBe('/c')
    await add(scope(1, '/d'))
    expect(await valuesOf(id, 'scope')).toEqual([['/a'], ['/d'], ['/b'], ['/c']])
    expect(await current(id)).toBe('/c')
  })

  it('shall be changed and deleted one by one, and remain paths', async () => {
    const id = await created({ scope: [scope(0, '/a'), scope(1, '/b')] })
    const [first] = await instancesOf(id, 'scope')
    const one = `${temporal}/${id}/attrs/scope/${first!.instanceId}`
    for (const wrong of [5, 'no path', ['/a', 5]])
      expect((await gateway.send('PATCH', one, { scope: [scope(0, wrong)] })).status).toBe(400)
    expect((await gateway.send('PATCH', one, { scope: [scope(0, '/c')] })).status).toBe(204)
    expect(await valuesOf(id, 'scope')).toEqual([['/c'], ['/b']])
    expect((await gateway.ask('DELETE', one)).status).toBe(204)
    expect(await valuesOf(id, 'scope')).toEqual([['/b']])
    expect((await gateway.ask('DELETE', `${temporal}/${id}/attrs/scope`)).status).toBe(204)
    expect(await valuesOf(id, 'scope')).toEqual([])
    expect(await current(id)).toBe('/b')
  })

  it.each([
    [[{ type: 'Property', value: '/a', observedAt: 'yesterday' }], /^scope.observedAt/],
    [[scope(0, 'no path')], /^scope/],
    [[scope(0, '/a'), { type: 'Property' }], /^scope/],
  ])('shall be 400 for %j', async (given, detail) => {
    const body = { id: freshId('Vehicle'), type: 'Vehicle', scope: given }
    const answer = await gateway.send('POST', temporal, body)
    expect(answer.status).toBe(400)
    expect((answer.json() as { detail: string }).detail).toMatch(detail)
  })
})
