/** NGSI-LD Null in a temporal entity deletes an attribute [NGSI-LD 5.5.4, 5.6.11, 5.6.12]. */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const temporal = '/ngsi-ld/v1/temporal/entities'
const entities = '/ngsi-ld/v1/entities'
const at = (minute: number): string =>
  new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString().replace('.000', '')
const value = (minute: number, more: object = {}) => property(minute, { observedAt: at(minute), ...more })
const none = (more: object = {}) => property('urn:ngsi-ld:null', more)

type Instance = Record<string, unknown>
async function history(id: string): Promise<Record<string, readonly Instance[]>> {
  const answer = await gateway.get(`${temporal}/${id}`)
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  return answer.json()
}
const current = async (id: string): Promise<Instance> => (await gateway.get(`${entities}/${id}`)).json()
async function post(body: object, path = temporal): Promise<void> {
  const answer = await gateway.send('POST', path, body)
  expect([answer.status < 300, answer.text]).toEqual([true, answer.text])
}

it('shall be accepted with a new entity: a finally deleted attribute has no current value', async () => {
  const id = freshId()
  const speed = [value(0), value(1), none({ deletedAt: at(2) }), value(0, { datasetId: 'urn:d:1' })]
  const near = { type: 'Relationship', object: 'urn:ngsi-ld:null', deletedAt: at(3) }
  const name = { type: 'LanguageProperty', languageMap: { '@none': 'urn:ngsi-ld:null' }, observedAt: at(4) }
  const level = [value(5), none({ deletedAt: at(4) })]
  await post({ id, type: 'T', speed, near, name, level })
  expect(await current(id)).toEqual({
    id,
    type: 'T',
    speed: value(0, { datasetId: 'urn:d:1' }),
    level: value(5),
  })
  const returned = await history(id)
  const marker = (more: object) => ({ ...more, instanceId: expect.any(String) })
  expect(returned['speed']?.map(({ value: one }) => one)).toEqual([0, 0, 1, 'urn:ngsi-ld:null'])
  expect(returned['speed']?.at(-1)).toEqual(marker(none({ deletedAt: at(2) })))
  expect(returned['near']).toEqual([marker(near)])
  expect(returned['name']).toEqual([marker({ ...name, observedAt: undefined, deletedAt: at(4) })])
  await post({ id, type: 'T', speed })
  expect((await history(id))['speed']).toEqual(returned['speed'])
})

it('shall delete a current value that was observed before, and keep one that was observed later', async () => {
  const id = freshId()
  await post({ id, type: 'T', speed: [value(10)], scope: [property('/a', { observedAt: at(0) })] })
  await post({ speed: [none({ deletedAt: at(5) })] }, `${temporal}/${id}/attrs`)
  expect(await current(id)).toMatchObject({ speed: { value: 10 }, scope: '/a' })
  await post({ speed: [none({ deletedAt: at(15) })] }, `${temporal}/${id}/attrs`)
  expect(await current(id)).toEqual({ id, type: 'T', scope: '/a' })
  expect((await history(id))['speed']?.map(({ value: one }) => one)).toEqual([
    ...['urn:ngsi-ld:null', 10, 'urn:ngsi-ld:null'],
  ])
  await post({ id, type: 'T', speed: [value(20)], scope: [none()] })
  expect(await current(id)).toEqual({ id, type: 'T', speed: value(20) })
  await post({ id, type: 'T', speed: none() })
  expect(await current(id)).toEqual({ id, type: 'T' })
})

it.each([
  ['as a member', 'urn:ngsi-ld:null'],
  ['within a value', [property({ a: 'urn:ngsi-ld:null' })]],
  ['as a sub-attribute', [value(0, { unit: property('urn:ngsi-ld:null') })]],
  ['with an invalid time', [none({ deletedAt: 'yesterday' })]],
])('shall be 400 %s', async (_, speed) => {
  expect((await gateway.send('POST', temporal, { id: freshId(), type: 'T', speed })).status).toBe(400)
})
