/**
 * Distributed discovery between real gateways: local and remote types and attributes, limited to the claims
 * and operations of sources.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const api = '/ngsi-ld/v1'
const prefix = 'https://uri.etsi.org/ngsi-ld/default-context/'
const at = (value: unknown) => ({ type: 'Property', value })

describe('GS CIM 009, 4.3.6: distributed discovery of types and attributes', () => {
  let here: HttpGateway
  let there: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    there = await startHttpGateway({ alias: 'there' })
    await here.send('POST', `${api}/entities`, { id: 'urn:p:1', type: 'Pump', flow: at(1) })
    await there.send('POST', `${api}/entities`, { id: 'urn:p:2', type: 'Pump', flow: at(1), heat: at(2) })
    await there.send('POST', `${api}/entities`, {
      id: 'urn:v:1',
      type: 'Valve',
      flow: { type: 'Relationship', object: 'urn:p:2' },
    })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  let registered: string[] = []
  const register = async (members: object, gateway = here): Promise<void> => {
    const made = await gateway.send('POST', `${api}/csourceRegistrations`, {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }, { type: 'Valve' }] }],
      endpoint: there.url,
      ...members,
    })
    expect([made.status, made.text]).toEqual([201, ''])
    registered.push(gateway.url + made.headers['location']!)
  }
  afterEach(async () => {
    for (const gateway of [here, there])
      for (const url of registered.filter((one) => one.startsWith(gateway.url)))
        await gateway.ask('DELETE', url.slice(gateway.url.length))
    registered = []
  })
  const read = async (path: string) => (await here.get(`${api}${path}`)).json() as Record<string, unknown>

  test('lists contain local and remote names, with local=true only local ones', async () => {
    await register({})
    expect((await read('/types'))['typeList']).toEqual(['Pump', 'Valve'])
    expect((await read('/types?local=true'))['typeList']).toEqual(['Pump'])
    expect((await read('/attributes'))['attributeList']).toEqual(['flow', 'heat'])
    expect((await read('/attributes?local=true'))['attributeList']).toEqual(['flow'])
  })

  test('details of all brokers are summed', async () => {
    await register({})
    const type = { type: 'EntityType' }
    expect(await read('/types?details=true')).toMatchObject([
      { ...type, id: `${prefix}Pump`, typeName: 'Pump', attributeNames: ['flow', 'heat'] },
      { ...type, id: `${prefix}Valve`, typeName: 'Valve', attributeNames: ['flow'] },
    ])
    expect(await read('/attributes?details=true')).toMatchObject([
      { attributeName: 'flow', typeNames: ['Pump', 'Valve'] },
      { attributeName: 'heat', typeNames: ['Pump'] },
    ])
    expect(await read('/types/Pump')).toMatchObject({
      typeName: 'Pump',
      entityCount: 2,
      attributeDetails: [
        { attributeName: 'flow', attributeTypes: ['Property'] },
        { attributeName: 'heat', attributeTypes: ['Property'] },
      ],
    })
    expect(await read('/attributes/flow')).toMatchObject({
      attributeName: 'flow',
      attributeCount: 3,
      attributeTypes: ['Property', 'Relationship'],
      typeNames: ['Pump', 'Valve'],
    })
  })

  test('a source contributes only what it claims', async () => {
    await register({ information: [{ entities: [{ type: 'Pump' }], propertyNames: ['flow'] }] })
    expect((await read('/types'))['typeList']).toEqual(['Pump'])
    expect((await read('/attributes'))['attributeList']).toEqual(['flow'])
    expect((await here.get(`${api}/types/Valve`)).status).toBe(404)
    expect(await read('/attributes/flow')).toMatchObject({ attributeCount: 3, typeNames: ['Pump'] })
  })

  test('a source receives only operations that it offers', async () => {
    await register({ operations: ['retrieveEntityTypes'] })
    expect((await read('/types'))['typeList']).toEqual(['Pump', 'Valve'])
    expect((await read('/types?details=true')).length).toBe(1)
    expect((await read('/attributes'))['attributeList']).toEqual(['flow'])
  })

  test('circular registrations end', async () => {
    await register({})
    await register({ endpoint: here.url }, there)
    expect((await read('/types'))['typeList']).toEqual(['Pump', 'Valve'])
  })

  test('an unreachable source causes a warning', async () => {
    const gone = await startHttpGateway({ alias: 'gone' })
    await gone.close()
    await register({ endpoint: gone.url })
    const reply = await here.get(`${api}/types`)
    expect([reply.status, reply.headers['ngsild-warning']]).toEqual([200, expect.stringMatching(/^199 /)])
  })
})
