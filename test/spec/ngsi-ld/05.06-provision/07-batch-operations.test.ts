/** Batch operations [NGSI-LD 5.6.7 to 5.6.10, 6.14 to 6.17]: each item succeeds or fails independently. */
import { describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entityOperations'
const value = async (id: string): Promise<unknown> => {
  const answer = await gateway.get(`/ngsi-ld/v1/entities/${id}`)
  return answer.status === 200 ? (answer.json() as { a?: { value: unknown } }).a?.value : answer.status
}
const thing = (id: string, a: unknown = 1): object => ({ id, type: 'Thing', a: property(a) })
const error = (entityId: string, name: string): object => ({
  entityId,
  error: expect.objectContaining({
    type: `https://uri.etsi.org/ngsi-ld/errors/${name}`,
    title: expect.any(String),
    status: expect.any(Number),
  }),
})

describe('batch create', () => {
  it('shall answer 201 with all ids', async () => {
    const [one, two] = [freshId(), freshId()]
    const answer = await gateway.send('POST', `${path}/create/`, [thing(one), thing(two)])
    expect([answer.status, answer.json()]).toEqual([201, [one, two]])
    expect([await value(one), await value(two)]).toEqual([1, 1])
  })

  it('shall answer 207 listing the failed items, and create the rest', async () => {
    const [taken, fresh] = [freshId(), freshId()]
    await gateway.send('POST', `${path}/create`, [thing(taken)])
    const items = [
      thing(taken, 2),
      thing(fresh),
      thing(fresh, 3),
      { id: 'urn:x:bad', type: 'Thing', a: null },
      7,
    ]
    const answer = await gateway.send('POST', `${path}/create`, items)
    expect(answer.status).toBe(207)
    const { success, errors } = answer.json() as { success: string[]; errors: object[] }
    expect(success).toEqual([fresh])
    expect(errors).toHaveLength(4)
    expect(errors).toEqual(
      expect.arrayContaining([
        error(taken, 'AlreadyExists'),
        error(fresh, 'AlreadyExists'),
        error('urn:x:bad', 'BadRequestData'),
      ]),
    )
    expect([await value(taken), await value(fresh)]).toEqual([1, 1])
  })

  it('shall parse each item of a JSON-LD list in its own context', async () => {
    const [one, two] = [freshId(), freshId()]
    const items = [
      { '@context': { x: 'https://one.example/' }, id: one, type: 'x:T' },
      { '@context': { x: 'https://two.example/' }, id: two, type: 'x:T' },
    ]
    expect((await gateway.send('POST', `${path}/create`, items)).status).toBe(201)
    expect((await gateway.get(`/ngsi-ld/v1/entities/${one}`)).json()).toHaveProperty(
      'type',
      'https://one.example/T',
    )
    expect((await gateway.get(`/ngsi-ld/v1/entities/${two}`)).json()).toHaveProperty(
      'type',
      'https://two.example/T',
    )
  })
})

describe('batch upsert', () => {
  it('shall answer 201 with the new ids only, 204 when there is none', async () => {
    const [old, fresh] = [freshId(), freshId()]
    await gateway.send('POST', `${path}/create`, [thing(old)])
    const mixed = await gateway.send('POST', `${path}/upsert`, [thing(old, 2), thing(fresh, 2)])
    expect([mixed.status, mixed.json()]).toEqual([201, [fresh]])
    expect((await gateway.send('POST', `${path}/upsert/`, [thing(old, 3)])).status).toBe(204)
    expect([await value(old), await value(fresh)]).toEqual([3, 2])
  })

  it('shall replace the whole entity, or only the given members with options=update', async () => {
    const id = freshId()
    await gateway.send('POST', `${path}/create`, [thing(id)])
    await gateway.send('POST', `${path}/upsert?options=update`, [{ id, type: 'Thing', b: property(2) }])
    expect((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json()).toEqual({
      id,
      type: 'Thing',
      a: property(1),
      b: property(2),
    })
    await gateway.send('POST', `${path}/upsert?options=replace`, [{ id, type: 'Thing', b: property(3) }])
    expect((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json()).toEqual({
      id,
      type: 'Thing',
      b: property(3),
    })
  })

  it('shall apply the last item of each id', async () => {
    const id = freshId()
    await gateway.send('POST', `${path}/upsert`, [thing(id, 1), thing(id, 2)])
    expect(await value(id)).toBe(2)
  })
})

describe('batch update', () => {
  it('shall answer 204, or 207 listing the unknown entities', async () => {
    const id = freshId()
    await gateway.send('POST', `${path}/create`, [thing(id)])
    expect((await gateway.send('POST', `${path}/update`, [thing(id, 2)])).status).toBe(204)
    const answer = await gateway.send('POST', `${path}/update`, [thing(id, 3), thing('urn:x:none')])
    expect(answer.status).toBe(207)
    expect(answer.json()).toEqual({ success: [id], errors: [error('urn:x:none', 'ResourceNotFound')] })
    expect(await value(id)).toBe(3)
  })
})

describe('NGSI-LD Null in a batch', () => {
  const nothing = 'urn:ngsi-ld:null'

  it('shall delete existing attributes by update, and by upsert with options=update', async () => {
    for (const operation of ['update', 'upsert?options=update']) {
      const id = freshId()
      await gateway.send('POST', `${path}/create`, [{ ...thing(id), b: property(1), scope: '/a' }])
      const items = [{ id, type: 'Thing', a: nothing, unknown: nothing, scope: nothing }]
      expect((await gateway.send('POST', `${path}/${operation}`, items)).status).toBe(204)
      expect((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json()).toEqual({
        id,
        type: 'Thing',
        b: property(1),
      })
    }
  })

  it('shall be an error of its item in a create or replace, and within values', async () => {
    const id = freshId()
    await gateway.send('POST', `${path}/create`, [thing(id)])
    for (const [operation, item] of [
      ['create', thing(freshId(), nothing)],
      ['upsert', thing(id, nothing)],
      ['upsert?options=update', thing('urn:x:new', nothing)],
      ['update', thing(id, { deep: nothing })],
      ['update?options=noOverwrite', thing(id, nothing)],
    ] as const) {
      const answer = await gateway.send('POST', `${path}/${operation}`, [item])
      const { entityId } = (answer.json() as { errors: { entityId: string }[] }).errors[0]!
      expect([operation, answer.status, answer.json()]).toEqual([
        operation,
        207,
        { success: [], errors: [error(entityId, 'BadRequestData')] },
      ])
    }
    expect(await value(id)).toBe(1)
    expect(await value('urn:x:new')).toBe(404)
  })

  it('shall list by full names the attributes that noOverwrite left unchanged', async () => {
    const id = freshId()
    await gateway.send('POST', `${path}/create`, [thing(id)])
    const items = [{ ...thing(id, 2), b: property(2) }]
    const answer = await gateway.send('POST', `${path}/update?options=noOverwrite`, items)
    expect([answer.status, answer.text]).toEqual([
      207,
      expect.stringContaining('https://uri.etsi.org/ngsi-ld/default-context/a'),
    ])
  })
})

describe('batch delete', () => {
  it('shall accept a list of ids', async () => {
    const [one, two] = [freshId(), freshId()]
    await gateway.send('POST', `${path}/create`, [thing(one), thing(two)])
    expect((await gateway.send('POST', `${path}/delete`, [one])).status).toBe(204)
    const answer = await gateway.send('POST', `${path}/delete/`, [one, two, 'no uri'])
    expect(answer.status).toBe(207)
    expect(answer.json()).toEqual({
      success: [two],
      errors: expect.arrayContaining([error(one, 'ResourceNotFound'), error('no uri', 'BadRequestData')]),
    })
    expect([await value(one), await value(two)]).toEqual([404, 404])
  })
})

describe('an unreadable item', () => {
  it('shall be identified by its index in the list, because it may have no id', async () => {
    const id = freshId()
    const answer = await gateway.send('POST', `${path}/create`, [
      thing(id),
      { type: 'Thing' },
      'text',
      { id: 7 },
    ])
    expect(answer.status).toBe(207)
    const { success, errors } = answer.json() as {
      success: string[]
      errors: { entityId: string; error: { detail: string } }[]
    }
    expect(success).toEqual([id])
    expect(errors.map(({ error }) => error.detail)).toEqual([
      '[1].id: is missing',
      '[2]: must be an entity: a JSON object',
      '[3].id: must be a URI',
    ])
    const wrong = await gateway.send('POST', `${path}/delete`, ['no uri'])
    expect(wrong.text).toContain('[0]: must be a URI')
  })
})

describe('an invalid batch body', () => {
  it.each(['create', 'upsert', 'update', 'merge', 'delete'])(
    'shall be rejected as a whole by %s',
    async (operation) => {
      for (const body of [{}, [], [null], [thing(freshId()), null], 'text']) {
        const answer = await gateway.ask('POST', `${path}/${operation}`, {
          body: JSON.stringify(body),
          headers: { 'Content-Type': 'application/json' },
        })
        expect([answer.status, JSON.stringify(body)]).toEqual([400, JSON.stringify(body)])
      }
    },
  )

  it('shall be rejected with 413 when it has more than 10,000 items', async () => {
    const answer = await gateway.send('POST', `${path}/delete`, Array(10_001).fill('urn:x:1'))
    expect(answer.status).toBe(413)
  })
})

describe('a large batch', () => {
  const large = (count: number, more: readonly string[] = []): { ids: string[]; body: string } => {
    const ids = Array.from({ length: count }, () => freshId('Large'))
    const note = property('"[{,\\'.repeat(400))
    const texts = ids.map((id, n) => JSON.stringify({ id, type: 'Large', a: property(n), note }))
    return { ids, body: `[${[...texts, ...more].join(',\n')}]` }
  }
  const post = (operation: string, body: string) =>
    gateway.ask('POST', `${path}/${operation}`, { body, headers: { 'Content-Type': 'application/json' } })

  it('shall be refused with 503 and the limit that is reached while as many others are in progress', async () => {
    setLimit('bodyBytesMax', 100_000)
    setLimit('largeBatchesMax', 0)
    const { body } = large(500)
    const refused = await post('create', body)
    expect(refused.status).toBe(503)
    expect(refused.headers['retry-after']).toBe('1')
    expect(refused.text).toContain('0 large batches are in progress already; retry later')
    restoreLimits()
    expect((await post('create', body)).status).toBe(201)
  })

  it('shall be written item by item like any other, although its body exceeds the limit of other requests', async () => {
    const { ids, body } = large(5000, ['7', '{"id": "urn:x:untyped"}'])
    expect(body.length).toBeGreaterThan(12_000_000)
    const created = await post('create', body)
    expect(created.status).toBe(207)
    const { success, errors } = created.json() as { success: string[]; errors: { entityId: string }[] }
    expect(success).toEqual(ids)
    expect(errors.map(({ entityId }) => entityId)).toEqual(['', 'urn:x:untyped'])
    expect([await value(ids[0]!), await value(ids.at(-1)!)]).toEqual([0, 4999])
    const upserted = await post(
      'upsert',
      body.replace('{"id": "urn:x:untyped"}', '8').replaceAll('"a"', '"b"'),
    )
    expect(upserted.status).toBe(207)
    expect(await value(ids[1]!)).toBeUndefined()
    expect(
      (
        await gateway.ask('POST', '/ngsi-ld/v1/entities', {
          body,
          headers: { 'Content-Type': 'application/json' },
        })
      ).status,
    ).toBe(413)
  })

  it('shall be rejected as a whole, without any write, if it is not a list of items', async () => {
    for (const wrong of ['null', '{"id": }', '', '1]']) {
      const { ids, body } = large(5000, [wrong])
      const answer = await post('create', body)
      expect([answer.status, wrong]).toEqual([400, wrong])
      expect(await value(ids[0]!)).toBe(404)
    }
    expect((await post('create', ' '.repeat(33 * 1024 * 1024))).status).toBe(413)
  })
})
