/**
 * Beyond the standard: values without observedAt are returned separately with their write times
 * (options=unobserved), and restored at those times (options=sysAttrs), so that a history can be copied from
 * one gateway to another.
 */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile({ temporalInstancesMax: 30 })
const temporal = '/ngsi-ld/v1/temporal/entities'
const at = (minute: number): string =>
  new Date(Date.UTC(2025, 0, 1) + minute * 60_000).toISOString().replace('.000', '')
const unobserved = 'timeproperty=modifiedAt&options=unobserved,sysAttrs'

type Instance = Record<string, unknown>
type History = Record<string, readonly Instance[]>
async function history(id: string, query = unobserved): Promise<History> {
  const answer = await gateway.get(`${temporal}/${id}?${query}`)
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  return answer.json()
}
const bringBack = (body: object) => gateway.send('POST', `${temporal}?options=sysAttrs`, body)

it('unobserved values shall be returned without the observed ones, and with the deletions of attributes', async () => {
  const id = freshId()
  const observed = [0, 1, 2].map((value) => property(value, { observedAt: at(value) }))
  await gateway.send('POST', temporal, { id, type: 'Door', state: [property('open')], angle: observed })
  await gateway.send('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, { state: property('shut') })
  await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${id}/attrs/state`)
  const { state, angle } = await history(id)
  expect(angle).toBeUndefined()
  expect(state?.map(({ value }) => value)).toEqual(['open', 'shut', 'urn:ngsi-ld:null'])
  expect(state?.at(-1)).toHaveProperty('deletedAt')
  const asked = await gateway.get(`${temporal}/${id}?options=unobserved`)
  expect([asked.status, asked.text]).toEqual([400, expect.stringContaining('timeproperty') as string])
})

it('restored values shall have their original times, and not change the entity', async () => {
  const id = freshId()
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Door', state: property('now') })
  const past = {
    id,
    type: 'Door',
    state: [
      property('first', { createdAt: at(0), modifiedAt: at(0) }),
      property('second', { modifiedAt: at(5) }),
      property('urn:ngsi-ld:null', { deletedAt: at(7) }),
      property('urn:ngsi-ld:null', { deletedAt: at(8), datasetId: 'urn:d:1' }),
    ],
    name: { type: 'LanguageProperty', languageMap: { '@none': 'urn:ngsi-ld:null' }, deletedAt: at(9) },
    scope: [
      { type: 'Property', value: ['/a', '/b'], modifiedAt: at(1) },
      { type: 'Property', value: [], deletedAt: at(2) },
    ],
  }
  expect((await bringBack(past)).status).toBe(204)
  expect(await gateway.get(`/ngsi-ld/v1/entities/${id}`).then(({ json }) => json())).toEqual({
    id,
    type: 'Door',
    state: { type: 'Property', value: 'now' },
  })
  const returned = await history(id)
  const brief = (name: string) =>
    returned[name]!.map(({ value, languageMap, modifiedAt, deletedAt, datasetId }) => [
      value ?? languageMap,
      modifiedAt,
      deletedAt !== undefined,
      datasetId,
    ])
  expect(brief('state')).toEqual([
    ['first', at(0), false, undefined],
    ['second', at(5), false, undefined],
    ['urn:ngsi-ld:null', at(7), true, undefined],
    ['urn:ngsi-ld:null', at(8), true, 'urn:d:1'],
    ['now', expect.any(String), false, undefined],
  ])
  expect(brief('name')).toEqual([[{ '@none': 'urn:ngsi-ld:null' }, at(9), true, undefined]])
  expect(brief('scope')).toEqual([
    [['/a', '/b'], at(1), false, undefined],
    [[], at(2), true, undefined],
  ])
  const early = await history(id, `timeproperty=createdAt&timerel=before&timeAt=${at(6)}`)
  expect(early['state']?.map(({ value }) => value)).toEqual(['first', 'second'])
  const late = await history(id, `timeproperty=deletedAt&timerel=after&timeAt=${at(8)}`)
  expect(Object.keys(late)).toEqual(['id', 'type', 'state', 'name'])

  expect((await bringBack(past)).status).toBe(204)
  expect((await history(id))['state']).toHaveLength(5)
})

it('restored values shall be ordered by their times, with any existing history, and in parts', async () => {
  const id = freshId()
  const states = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => property(from + i, { modifiedAt: at(from + i) }))
  expect((await bringBack({ id, type: 'Door', state: states(20, 40) })).status).toBe(201)
  expect((await bringBack({ id, type: 'Door', state: states(0, 20) })).status).toBe(204)
  const first = await gateway.get(`${temporal}/${id}?${unobserved}`)
  expect([first.status, first.headers['content-range']]).toEqual([206, `date-time ${at(0)}-${at(29)}/*`])
  const values = (first.json() as unknown as History)['state']!.map(({ value }) => value)
  expect(values).toEqual([...Array(30).keys()])
  const last = await history(id, `${unobserved}&lastN=3`)
  expect(last['state']?.map(({ value }) => value)).toEqual([37, 38, 39])
})

it('without the option system times shall be ignored, and an invalid one shall be rejected', async () => {
  const id = freshId()
  const body = { id, type: 'Door', state: [property('open', { modifiedAt: at(0) })] }
  expect((await gateway.send('POST', temporal, body)).status).toBe(201)
  const { state } = await history(id)
  expect(state?.[0]?.['modifiedAt']).not.toBe(at(0))
  const wrong = await bringBack({ ...body, state: [property('open', { modifiedAt: 'yesterday' })] })
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('state') as string])
  expect((await gateway.send('POST', `${temporal}?options=other`, body)).status).toBe(400)
})
