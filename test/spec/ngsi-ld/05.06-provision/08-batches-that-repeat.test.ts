/**
 * Batches that contain an entity more than once [NGSI-LD 5.6.7 to 5.6.10, 5.6.20], and properties shared by
 * all items of a batch. Runs against a whole gateway, because notifications and history show how often an
 * entity was written.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { freshId, property } from '#test/kit/gateway-of-file.ts'
import { wholeGatewayOfFile } from '#test/kit/whole-gateway-of-file.ts'

const entities = '/ngsi-ld/v1/entities'
const gateway = wholeGatewayOfFile(noPlugins)
beforeAll(async () => {
  const created = await gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
    type: 'Subscription',
    entities: [{ type: 'Thing' }],
    notification: { format: 'simplified', endpoint: { uri: gateway.receiver.url() } },
  })
  expect(created.status).toBe(201)
})

const batch = (operation: string, items: readonly unknown[]) =>
  gateway.send('POST', `/ngsi-ld/v1/entityOperations/${operation}`, items)
const thing = (id: string, a: number, more: object = {}): object => ({
  id,
  type: 'Thing',
  a: property(a),
  ...more,
})
const read = async (id: string): Promise<object> => (await gateway.get(`${entities}/${id}`)).json()
/** The notified states of an entity, one list per notification. */
const notified = (id: string): (number | undefined)[][] =>
  gateway.receiver.received
    .map(({ body }) => (JSON.parse(body) as { data: { id: string; a?: number }[] }).data)
    .filter((data) => data.some((entity) => entity.id === id))
    .map((data) => data.map(({ a }) => a))
const history = async (id: string): Promise<unknown[]> => {
  const answer = await gateway.get(`/ngsi-ld/v1/temporal/entities/${id}?timeproperty=modifiedAt`)
  return (answer.json() as { a: { value: unknown }[] }).a.map(({ value }) => value)
}
const failed = (answer: { json(): unknown }): unknown => {
  const { success, errors } = answer.json() as {
    success: string[]
    errors: { entityId: string; error: { type: string } }[]
  }
  return [success, errors.map(({ entityId, error }) => [entityId, error.type.split('/').at(-1)])]
}

describe('an entity that occurs more than once', () => {
  it('shall be created once, by the first item; the others are errors', async () => {
    const id = freshId()
    const answer = await batch('create', [thing(id, 1), thing(id, 2), thing(id, 3)])
    expect([answer.status, failed(answer)]).toEqual([
      207,
      [
        [id],
        [
          [id, 'AlreadyExists'],
          [id, 'AlreadyExists'],
        ],
      ],
    ])
    expect(await read(id)).toEqual(thing(id, 1))
  })

  it('shall have the state of the last upsert, be written once, and be listed once among the created', async () => {
    const id = freshId()
    const answer = await batch('upsert', [thing(id, 1, { b: property(1) }), thing(id, 2)])
    expect([answer.status, answer.json()]).toEqual([201, [id]])
    expect(await read(id)).toEqual(thing(id, 2))
    const again = [thing(id, 3), thing(id, 4), { id, type: 'Thing', a: null }]
    const inPart = await batch('upsert?options=replace', again)
    expect([inPart.status, failed(inPart)]).toEqual([207, [[id], [[id, 'BadRequestData']]]])
    expect(await read(id)).toEqual(thing(id, 4))
    expect(await history(id)).toEqual([2, 4])
    await expect.poll(() => notified(id)).toEqual([[2], [4]])
  })

  it.each(['update', 'merge', 'upsert?options=update'])(
    'shall be written in order by %s, each time notified and stored in history',
    async (operation) => {
      const id = freshId()
      await batch('create', [thing(id, 0)])
      const items = [thing(id, 1), thing(id, 2, { b: property(1) }), thing(id, 3)]
      expect((await batch(operation, items)).status).toBe(204)
      expect(await read(id)).toEqual(thing(id, 3, { b: property(1) }))
      const inPart = await batch(operation, [...items.slice(2), thing(id, 3), { id, type: 'Thing', a: null }])
      expect([inPart.status, failed(inPart)]).toEqual([207, [[id], [[id, 'BadRequestData']]]])
      expect(await history(id)).toEqual([0, 1, 2, 3])
      await expect.poll(() => notified(id)).toEqual([[0], [1], [2], [3]])
    },
  )

  it('shall be created by the first and updated by the next upsert with options=update', async () => {
    const id = freshId()
    const answer = await batch('upsert?options=update', [
      thing(id, 1),
      { id, type: 'Thing', b: property(2) },
      thing(id, 3),
    ])
    expect([answer.status, answer.json()]).toEqual([201, [id]])
    expect(await read(id)).toEqual(thing(id, 3, { b: property(2) }))
    await expect.poll(() => notified(id)).toEqual([[1], [1], [3]])
  })

  it('shall be deleted once; the second item is an error', async () => {
    const id = freshId()
    await batch('create', [thing(id, 1)])
    const answer = await batch('delete', [id, id])
    expect([answer.status, failed(answer)]).toEqual([207, [[id], [[id, 'ResourceNotFound']]]])
  })
})

describe('the items of one batch', () => {
  it('shall have one modification time, even if written in several groups', async () => {
    const ids = Array.from({ length: 600 }, () => freshId('Many'))
    const items = (a: number): object[] => ids.map((id) => ({ ...thing(id, a), type: 'Many' }))
    const times = async (): Promise<Set<string>> => {
      const list = (await gateway.get(`${entities}?type=Many&options=sysAttrs&limit=1000`)).json() as {
        modifiedAt: string
        a: { modifiedAt: string }
      }[]
      expect(list).toHaveLength(600)
      return new Set(list.flatMap(({ modifiedAt, a }) => [modifiedAt, a.modifiedAt]))
    }
    expect((await batch('create', items(1))).status).toBe(201)
    expect(await times()).toHaveProperty('size', 1)
    for (const [n, operation] of ['update', 'merge', 'upsert', 'upsert?options=update'].entries()) {
      expect((await batch(operation, items(n + 2))).status).toBe(204)
      expect(await times()).toHaveProperty('size', 1)
    }
  })
})

describe('the body of a 207', () => {
  it('shall be application/json for any Accept header, with both lists and complete problems', async () => {
    const headers = { Accept: 'application/ld+json' }
    for (const operation of ['create', 'upsert', 'update', 'merge', 'delete']) {
      const item = operation === 'delete' ? 'no uri' : { id: 'no uri', type: 'Thing' }
      const answer = await gateway.send('POST', `/ngsi-ld/v1/entityOperations/${operation}`, [item], headers)
      expect([answer.status, answer.headers['content-type']]).toEqual([207, 'application/json'])
      expect(answer.json()).toEqual({
        success: [],
        errors: [
          {
            entityId: 'no uri',
            error: {
              type: 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData',
              title: expect.any(String),
              detail: expect.any(String),
              status: 400,
            },
          },
        ],
      })
    }
  })
})
