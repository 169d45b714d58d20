/** Writes on a condition: If-Match against lost updates [RFC 9110 13.1.1], and types of single entities [NGSI-LD 6.5.3]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'

async function room(): Promise<string> {
  const id = freshId('Room')
  await gateway.send('POST', path, {
    id,
    type: 'Room',
    a: property(1, { observedAt: '2024-01-01T00:00:00Z' }),
  })
  return id
}

const tagOf = async (id: string, headers = {}): Promise<string> =>
  (await gateway.get(`${path}/${id}`, headers)).headers['etag'] ?? 'none'

const writes: readonly (readonly [string, string, string, unknown])[] = [
  ['PATCH', '', 'merge', { a: { value: 2 } }],
  ['PUT', '', 'replace', { type: 'Room', a: property(2) }],
  ['POST', '/attrs', 'append', { b: property(2) }],
  ['PATCH', '/attrs', 'update', { a: property(2) }],
  ['PATCH', '/attrs/a', 'partial update', { value: 2 }],
  ['PUT', '/attrs/a', 'attribute replace', property(2)],
  ['DELETE', '/attrs/a', 'attribute delete', undefined],
  ['DELETE', '', 'delete', undefined],
]

const send = (method: string, target: string, body: unknown, headers = {}) =>
  body === undefined ? gateway.ask(method, target, { headers }) : gateway.send(method, target, body, headers)

describe.each(writes)('%s of an entity%s (%s)', (method, rest, _, body) => {
  it('shall be 412 after a write of another client, and change nothing', async () => {
    const id = await room()
    const stale = await tagOf(id)
    await gateway.send('PATCH', `${path}/${id}/attrs/a`, { value: 7, observedAt: '2025-01-01T00:00:00Z' })
    const current = await tagOf(id)
    expect(current).not.toBe(stale)
    const before = (await gateway.get(`${path}/${id}`)).text
    const refused = await send(method, `${path}/${id}${rest}`, body, { 'If-Match': stale })
    expect(refused.status).toBe(412)
    expect((await gateway.get(`${path}/${id}`)).text).toBe(before)
    const done = await send(method, `${path}/${id}${rest}`, body, { 'If-Match': `"1", ${current}` })
    expect(done.status).toBe(204)
  })

  it('shall be 404 if the entity does not have the requested type', async () => {
    const id = await room()
    expect((await send(method, `${path}/${id}${rest}?type=Car`, body)).status).toBe(404)
    expect((await send(method, `${path}/${id}${rest}?type=(Car|Room)`, body)).status).toBe(204)
  })
})

describe('entity tags', () => {
  it('shall differ per representation, and each be valid for writes', async () => {
    const id = await room()
    const plain = await tagOf(id)
    const linked = await tagOf(id, { Accept: 'application/ld+json' })
    expect(plain).toMatch(/^"\d+"$/)
    expect(linked).not.toBe(plain)
    expect((await send('PATCH', `${path}/${id}`, { a: { value: 3 } }, { 'If-Match': linked })).status).toBe(
      204,
    )
  })

  it('shall let one of many concurrent writes succeed', async () => {
    const id = await room()
    const tag = await tagOf(id)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        send('PATCH', `${path}/${id}`, { a: { value: i + 10 } }, { 'If-Match': tag }),
      ),
    )
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      204,
      ...Array<number>(9).fill(412),
    ])
  })

  it('shall be refused if malformed', async () => {
    const id = await room()
    expect((await send('PATCH', `${path}/${id}`, { a: 1 }, { 'If-Match': 'soon' })).status).toBe(400)
    expect((await send('PATCH', `${path}/${id}`, { a: { value: 9 } }, { 'If-Match': '*' })).status).toBe(204)
  })
})

describe('retrieval', () => {
  it('shall be 404 if the entity does not have the requested type', async () => {
    const id = await room()
    expect((await gateway.get(`${path}/${id}?type=Car`)).status).toBe(404)
    expect((await gateway.get(`${path}/${id}?type=Room`)).status).toBe(200)
  })
})
