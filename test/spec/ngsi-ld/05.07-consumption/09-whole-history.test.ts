/**
 * Without a temporal query a history has all instances, including those without observedAt [NGSI-LD 5.7.3.4];
 * scopes have their own history [4.5.6, 4.18].
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile({ temporalInstancesMax: 30 })
const temporal = '/ngsi-ld/v1/temporal/entities'
const entities = '/ngsi-ld/v1/entities'
const at = (minute: number): string =>
  new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString().replace('.000', '')
const observed = (minute: number): object => property(minute, { observedAt: at(minute) })

type Instance = Record<string, unknown>
type History = Record<string, readonly Instance[]>
async function history(id: string, query = ''): Promise<History> {
  const answer = await gateway.get(`${temporal}/${id}${query}`)
  expect([query, answer.status, answer.text]).toEqual([query, 200, expect.anything()])
  return answer.json()
}
const values = (list: readonly Instance[] = []): unknown[] => list.map(({ value }) => value)
const patch = (id: string, body: object) => gateway.send('PATCH', `${entities}/${id}/attrs`, body)

describe('the history of an entity without a temporal query', () => {
  const id = 'urn:x:board'
  beforeAll(async () => {
    const near = { type: 'Relationship', object: 'urn:x:1' }
    const name = { type: 'LanguageProperty', languageMap: { en: 'one' } }
    const place = { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 2] } }
    await gateway.send('POST', entities, {
      id,
      type: 'Board',
      state: property('on'),
      near,
      name,
      place,
      level: observed(0),
    })
    await patch(id, { state: property('off') })
    await patch(id, { level: observed(5) })
  })

  it('shall have all kinds of attributes, with every value they had', async () => {
    const { state, near, name, place, level } = await history(id)
    expect(values(state)).toEqual(['on', 'off'])
    expect(near).toMatchObject([{ type: 'Relationship', object: 'urn:x:1', instanceId: expect.any(String) }])
    expect(name).toMatchObject([{ languageMap: { en: 'one' } }])
    expect(place).toMatchObject([{ value: { type: 'Point', coordinates: [1, 2] } }])
    expect(values(level)).toEqual([0, 5])
  })

  it('shall have the attributes selected by attrs, pick and omit, and the last instances of each', async () => {
    expect(Object.keys(await history(id, '?attrs=state,level'))).toEqual(['id', 'type', 'level', 'state'])
    expect(Object.keys(await history(id, '?pick=state'))).toEqual(['state'])
    expect(await history(id, '?omit=state')).not.toHaveProperty('state')
    const { state, level } = await history(id, '?lastN=1')
    expect([values(state), values(level)]).toEqual([['off'], [5]])
    const pairs = await history(id, '?options=temporalValues&attrs=state')
    expect(pairs['state']).toMatchObject({
      values: [
        ['on', expect.any(String)],
        ['off', expect.any(String)],
      ],
    })
  })

  it('shall have only observed instances with a temporal query', async () => {
    const told = await history(id, `?timerel=after&timeAt=${at(0)}`)
    expect(Object.keys(told)).toEqual(['id', 'type', 'level'])
  })

  it('shall show that an attribute was deleted', async () => {
    const other = freshId('Board')
    await gateway.send('POST', entities, { id: other, type: 'Board', level: observed(0) })
    await gateway.ask('DELETE', `${entities}/${other}/attrs/level`)
    const { level } = await history(other)
    expect(level).toMatchObject([{ value: 0 }, { value: 'urn:ngsi-ld:null', deletedAt: expect.any(String) }])
    const pairs = await history(other, '?options=temporalValues')
    expect(pairs['level']).toEqual({ type: 'Property', values: [[0, at(0)]] })
  })

  it.each([
    'attrs=none',
    'pick=none',
    'attrs=none&lastN=1',
    'attrs=none&options=aggregatedValues&aggrMethods=max',
  ])('shall be 404 for attributes that it never had: %s', async (query) => {
    expect((await gateway.get(`${temporal}/${id}?${query}`)).status).toBe(404)
    expect((await gateway.get(`${temporal}/${id}?${query.replace('none', 'none,level')}`)).status).toBe(200)
  })

  it('shall be returned in parts if it is too long: all unobserved instances in the first', async () => {
    const long = freshId('Board')
    const levels = Array.from({ length: 40 }, (_, minute) => observed(minute))
    await gateway.send('POST', temporal, { id: long, type: 'Board', level: levels, state: [property('on')] })
    await patch(long, { state: property('off') })
    const first = await gateway.get(`${temporal}/${long}`)
    expect([first.status, first.headers['content-range']]).toEqual([206, `date-time ${at(0)}-${at(27)}/*`])
    const { state, level } = first.json() as History
    expect([values(state), level?.length]).toEqual([['on', 'off'], 28])

    for (let i = 0; i < 40; i++) await patch(long, { state: property(i) })
    const many = await gateway.get(`${temporal}/${long}`)
    expect([many.status, values((many.json() as History)['state']).slice(0, 3)]).toEqual([
      206,
      ['on', 'off', 0],
    ])
    const end = /Z-(.*)\/\*$/.exec(many.headers['content-range']!)![1]!
    const rest = await gateway.get(
      `${temporal}/${long}?timeproperty=modifiedAt&attrs=state&timerel=after&timeAt=${end}`,
    )
    expect(values((rest.json() as History)['state']).at(-1)).toBe(39)
  })
})

describe('scopes', () => {
  const write = (method: string, path: string, body: object) =>
    gateway.send(method, `${entities}${path}`, body)

  it('have as observedAt the time when they were set', async () => {
    const id = freshId('Room')
    await write('POST', '', { id, type: 'Room', scope: '/old', level: observed(0) })
    await write('PATCH', `/${id}`, { scope: ['/new', '/newer'] })
    const { scope } = await history(id, '?options=sysAttrs')
    expect(values(scope)).toEqual([['/old'], ['/new', '/newer']])
    for (const { observedAt, modifiedAt } of scope!) expect(observedAt).toBe(modifiedAt)
    const [, second] = scope!
    const since = `?timerel=after&timeAt=${second!['observedAt'] as string}`
    expect(values((await history(id, since))['scope'])).toContainEqual(['/new', '/newer'])
    expect(await history(id, `?timerel=before&timeAt=${at(1)}`)).not.toHaveProperty('scope')
  })

  it('select an entity in a query of history while they were valid', async () => {
    const scope = (minute: number, value: string) => property(value, { observedAt: at(minute) })
    const id = freshId('Hall')
    const scopes = [scope(10, '/a/b'), scope(20, '/c')]
    const levels = [5, 15, 25].map(observed)
    await gateway.send('POST', temporal, { id, type: 'Hall', scope: scopes, level: levels })
    const finds = async (scopeQ: string, window: string): Promise<boolean> => {
      const answer = await gateway.get(`${temporal}?type=Hall&scopeQ=${scopeQ}&attrs=level&${window}`)
      expect([answer.status, answer.text]).toEqual([200, expect.anything()])
      return (answer.json() as unknown as { id: string }[]).some((one) => one.id === id)
    }
    const between = (from: number, to: number) => `timerel=between&timeAt=${at(from)}&endTimeAt=${at(to)}`
    expect(await finds('/a/%23', between(12, 18))).toBe(true)
    expect(await finds('/c', between(12, 18))).toBe(false)
    expect(await finds('/a/b', between(22, 30))).toBe(false)
    expect(await finds('/c', between(22, 30))).toBe(true)
    expect(await finds('/a/b', between(0, 8))).toBe(false)
    expect(await finds('/a/b|/c', `timerel=before&timeAt=${at(10)}`)).toBe(false)
    expect(await finds('/a/b;/c', between(0, 30))).toBe(false)
    await gateway.ask('DELETE', `${entities}/${id}`)
    expect(await finds('/a/b', between(12, 18))).toBe(true)
  })

  it('do not select an entity after their removal', async () => {
    const id = freshId('Shed')
    await write('POST', '', { id, type: 'Shed', scope: '/s', level: property(1) })
    await gateway.ask('DELETE', `${entities}/${id}/attrs/scope`)
    const { scope } = await history(id, '?timeproperty=deletedAt')
    const deletedAt = scope![0]!['deletedAt'] as string
    await patch(id, { level: property(2, { observedAt: '2090-01-01T00:00:00Z' }) })
    const query = `${temporal}?type=Shed&scopeQ=/s&timerel=after&timeAt=`
    expect((await gateway.get(`${query}2089-01-01T00:00:00Z`)).json()).toEqual([])
    const before = new Date(Date.parse(deletedAt) - 1).toISOString()
    expect((await gateway.get(`${query}${before}`)).json()).toMatchObject([{ id }])
  })
})
