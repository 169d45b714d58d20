/**
 * Expiry of attributes and entities in writes [NGSI-LD V1.9.1, 4.22]: stored, replaced and removed like other
 * members.
 */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const batches = '/ngsi-ld/v1/entityOperations'
const [soon, later] = ['2098-01-01T00:00:00Z', '2099-01-01T00:00:00Z']
const never = 'urn:ngsi-ld:null'

it.each([
  ['PATCH', '', { a: { value: 2 } }, soon, soon],
  ['PATCH', '', { a: { expiresAt: later } }, soon, later],
  ['PATCH', '', { a: { expiresAt: never } }, soon, undefined],
  ['PATCH', '', { expiresAt: later }, later, soon],
  ['PATCH', '', { expiresAt: never }, undefined, soon],
  ['PATCH', '/attrs', { a: property(2) }, soon, undefined],
  ['PATCH', '/attrs', { a: property(2, { expiresAt: later }), expiresAt: later }, later, later],
  ['PATCH', '/attrs/a', { value: 2 }, soon, soon],
  ['PATCH', '/attrs/a', { expiresAt: never }, soon, undefined],
  ['PUT', '/attrs/a', property(2), soon, undefined],
  ['POST', '/attrs', { a: property(2, { expiresAt: later }) }, soon, later],
  ['PUT', '', { type: 'Alert', a: property(2) }, undefined, undefined],
  ['DELETE', '/attrs/expiresAt', undefined, undefined, soon],
] as const)('%s%s %j: the entity at %s, the attribute at %s', async (method, rest, body, whole, part) => {
  const id = freshId('Alert')
  const entity = { id, type: 'Alert', expiresAt: soon, a: property(1, { expiresAt: soon }) }
  expect((await gateway.send('POST', path, entity)).status).toBe(201)
  const one = `${path}/${id}${rest}`
  const written = body === undefined ? await gateway.ask(method, one) : await gateway.send(method, one, body)
  expect([written.status, written.text]).toEqual([204, ''])
  const found = (await gateway.get(`${path}/${id}?options=sysAttrs`)).json() as {
    expiresAt?: string
    a: { expiresAt?: string }
  }
  expect([found.expiresAt, found.a.expiresAt]).toEqual([whole, part])
})

it.each([
  ['merge', { a: { value: 2 } }, soon, soon],
  ['merge', { expiresAt: later, a: { expiresAt: never } }, later, undefined],
  ['update', { a: property(2) }, soon, undefined],
  ['update', { expiresAt: never, a: property(2, { expiresAt: later }) }, undefined, later],
  ['upsert', { a: property(2, { expiresAt: later }) }, undefined, later],
  ['upsert?options=update', { expiresAt: later, a: property(2) }, later, undefined],
] as const)(
  'a batch to %s %j: the entity at %s, the attribute at %s',
  async (operation, members, whole, part) => {
    const id = freshId('Alert')
    const entity = { id, type: 'Alert', expiresAt: soon, a: property(1, { expiresAt: soon }) }
    expect((await gateway.send('POST', `${batches}/create`, [entity])).status).toBe(201)
    const written = await gateway.send('POST', `${batches}/${operation}`, [{ id, type: 'Alert', ...members }])
    expect([written.status, written.text]).toEqual([204, ''])
    const found = (await gateway.get(`${path}/${id}?options=sysAttrs`)).json() as {
      expiresAt?: string
      a: { expiresAt?: string }
    }
    expect([found.expiresAt, found.a.expiresAt]).toEqual([whole, part])
  },
)

it('the expiry is a system attribute: returned only with sysAttrs, in every format', async () => {
  const id = freshId('Alert')
  const inner = { type: 'Property', value: 3, expiresAt: soon }
  const a = property(1, { expiresAt: soon, inner })
  await gateway.send('POST', path, { id, type: 'Alert', expiresAt: soon, a })
  for (const query of ['', '?format=concise', '?pick=id,a', '?attrs=a', '?format=simplified'])
    expect((await gateway.get(`${path}/${id}${query}`)).text).not.toContain('expiresAt')
  for (const query of ['?type=Alert', `?id=${id}`, '?type=Alert&format=concise'])
    expect((await gateway.get(`${path}${query}`)).text).not.toContain('expiresAt')
  const whole = (await gateway.get(`${path}/${id}?options=sysAttrs`)).json()
  expect(whole).toMatchObject({ expiresAt: soon, a: { expiresAt: soon, inner: { expiresAt: soon } } })
})

it.each(['soon', '2098-01-01', 7, never])('%j is not a valid expiry: 400', async (expiresAt) => {
  const type = 'Alert'
  expect((await gateway.send('POST', path, { id: freshId(type), type, expiresAt })).status).toBe(400)
  const a = property(1, { expiresAt })
  expect((await gateway.send('POST', path, { id: freshId(type), type, a })).status).toBe(400)
})
