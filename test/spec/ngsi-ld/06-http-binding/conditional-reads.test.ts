/** Conditional reads: an entity that the client already has is not sent again [RFC 9110 13.1.2]. */
import { beforeAll, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const id = 'urn:e:1'
const path = `/ngsi-ld/v1/entities/${id}`
const get = (tag: string | undefined, headers = {}, query = '') =>
  gateway.get(path + query, { ...headers, ...(tag === undefined ? {} : { 'If-None-Match': tag }) })
const tagOf = async (headers = {}): Promise<string> => (await get(undefined, headers)).headers['etag']!

beforeAll(async () => {
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'T', a: property(1) })
})

it('an entity that the client has shall be 304, without a body and with its tag', async () => {
  const tag = await tagOf()
  const reply = await get(tag)
  expect([reply.status, reply.text, reply.headers['etag']]).toEqual([304, '', tag])
  for (const others of [`"x", ${tag}`, `W/${tag}`, '*']) expect((await get(others)).status).toBe(304)
})

it('an entity that it has in another version or form shall be sent', async () => {
  const tag = await tagOf()
  expect((await get('"x"')).status).toBe(200)
  expect((await get(tag, { Accept: 'application/ld+json' })).status).toBe(200)
  expect((await get(tag, { Accept: 'application/geo+json' })).status).toBe(200)
  await gateway.send('PATCH', `${path}/attrs`, { a: property(2) })
  const reply = await get(tag)
  expect([reply.status, reply.headers['etag'] === tag]).toEqual([200, false])
})

it('a missing entity or one of another type shall remain an error', async () => {
  expect((await get('*', {}, '?type=Other')).status).toBe(404)
  expect((await get('*', {}, '?attrs=b')).status).toBe(404)
})
