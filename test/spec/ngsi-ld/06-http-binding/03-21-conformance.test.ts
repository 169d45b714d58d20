/** Downgrade to the version of the standard that a client prefers [NGSI-LD 1.9, 4.3.6.8 and 6.3.21; RFC 7240]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const base = '/ngsi-ld/v1'
const entities = `${base}/entities`
const old = 'urn:e:old'
const modern = 'urn:e:modern'
const context = { ex: 'http://x.example/', kind: 'ex:kind', Hot: 'ex:Hot' }

beforeAll(async () => {
  await gateway.send('POST', entities, { id: old, type: 'Room', level: property(1) })
  await gateway.send(
    'POST',
    entities,
    { id: modern, type: 'Room', kind: { type: 'VocabProperty', vocab: 'Hot' }, '@context': [context] },
    { 'Content-Type': 'application/ld+json' },
  )
})
const prefer = (version: string) => ({ Prefer: `ngsi-ld=${version}` })

describe('NGSI-LD 1.9, 6.3.21: Prefer: ngsi-ld', () => {
  it('answers 203 if the response was amended, and names the version', async () => {
    const reply = await gateway.get(`${entities}/${modern}`, prefer('1.6'))
    expect([reply.status, reply.headers['preference-applied']]).toEqual([203, 'ngsi-ld=1.6'])
    expect(reply.json()).toMatchObject({
      'http://x.example/kind': { type: 'Property', value: 'http://x.example/Hot' },
    })
  })

  it('answers 200 if nothing had to be amended', async () => {
    const reply = await gateway.get(`${entities}/${old}`, prefer('1.6'))
    expect([reply.status, reply.headers['preference-applied']]).toEqual([200, 'ngsi-ld=1.6'])
    expect((await gateway.get(`${entities}/${modern}`, prefer('1.8'))).status).toBe(200)
  })

  it('ignores versions above its own and invalid ones', async () => {
    const newer = await gateway.get(`${entities}/${modern}`, prefer('1.30'))
    expect([newer.status, newer.headers['preference-applied']]).toEqual([200, 'ngsi-ld=1.9'])
    const plain = await gateway.get(`${entities}/${modern}`, prefer('latest'))
    expect([plain.status, plain.headers['preference-applied']]).toEqual([200, undefined])
  })

  it('applies to lists, all representations, and queries with a body', async () => {
    const list = await gateway.get(`${entities}?type=Room&options=simplified`, prefer('1.6'))
    expect(list.status).toBe(203)
    expect(list.json()).toMatchObject([{ level: 1 }, { 'http://x.example/kind': 'http://x.example/Hot' }])
    const query = { type: 'Query', entities: [{ type: 'Room' }] }
    const posted = await gateway.send('POST', `${base}/entityOperations/query`, query, prefer('1.6'))
    expect([posted.status, posted.headers['preference-applied']]).toEqual([203, 'ngsi-ld=1.6'])
    const shapes = await gateway.get(`${entities}?type=Room`, {
      Accept: 'application/geo+json',
      Prefer: 'body=json, ngsi-ld=1.6',
    })
    expect([shapes.status, shapes.headers['preference-applied']]).toEqual([203, 'ngsi-ld=1.6'])
  })

  it('applies to histories', async () => {
    const reply = await gateway.get(
      `${base}/temporal/entities/${modern}?timeproperty=modifiedAt`,
      prefer('1.6'),
    )
    expect([reply.status, reply.headers['preference-applied']]).toEqual([203, 'ngsi-ld=1.6'])
    expect(reply.json()).toMatchObject({ 'http://x.example/kind': [{ type: 'Property' }] })
  })

  it('has an entity tag of its own', async () => {
    const tag = async (headers = {}) => (await gateway.get(`${entities}/${modern}`, headers)).headers['etag']
    expect(await tag(prefer('1.6'))).not.toBe(await tag())
  })
})
