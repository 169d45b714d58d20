/**
 * Creating and appending temporal entities only adds [NGSI-LD 5.6.11, 5.6.12]. An observation is identified
 * by entity, attribute, datasetId, observedAt and value: several values may share one time, whichever
 * interface wrote them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freshId, property } from '#test/kit/gateway-of-file.ts'
import { connectRaw, publishPacket } from '#test/kit/mqtt.ts'

const temporal = '/ngsi-ld/v1/temporal/entities'
const json = JSON.stringify([
  {
    topic: 'site/{device}/telemetry',
    time: { path: 'time', format: 'iso' },
    fields: [{ path: 'temp', name: 'temperature' }],
  },
])
const folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
let gateway: GatewayInside
beforeAll(async () => {
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0', SELVEDGE_BRIDGES_JSON: json })
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

const time = '2026-01-01T00:00:00Z'
const at = (value: unknown, more: object = {}): object => property(value, { observedAt: time, ...more })
const all = (...values: readonly unknown[]): object[] => values.map((value) => at(value))

interface Instance {
  readonly value: unknown
  readonly instanceId: string
}
async function instancesOf(id: string, query = '', name = 'o'): Promise<readonly Instance[]> {
  const answer = await gateway.get(`${temporal}/${id}${query}`)
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  return (answer.json() as Record<string, Instance[]>)[name] ?? []
}
const valuesOf = async (id: string, query?: string, name?: string): Promise<unknown[]> =>
  (await instancesOf(id, query, name)).map(({ value }) => value)
async function currentOf(id: string): Promise<unknown> {
  const entity = (await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json() as { o: { value: unknown } }
  return entity.o.value
}
async function send(method: string, path: string, body: object): Promise<void> {
  const answer = await gateway.send(method, path, body)
  expect([answer.status < 300, answer.text]).toEqual([true, answer.text])
}
const create = (id: string, o: unknown, path = temporal): Promise<void> =>
  send('POST', path, { id, type: 'T', o })

it('values with an existing time shall be added, also by a new request', async () => {
  const id = freshId()
  await create(id, all(396, 397, 398, 399))
  await create(id, all(400))
  expect(await valuesOf(id)).toEqual([396, 397, 398, 399, 400])
  expect(await currentOf(id)).toBe(400)
  await send('POST', `${temporal}/${id}/attrs`, { o: all(396, 401, 399) })
  expect(await valuesOf(id)).toEqual([396, 397, 398, 399, 400, 401])
  expect(await valuesOf(id, '?lastN=2')).toEqual([400, 401])
})

it.each([
  [[4, 5], 5, [5, 4]],
  [[5, 4], 4, [5, 4]],
  [[4, 3], 3, [5, 4, 3]],
])(
  'a current value shall remain in history with %j of its time; the last given one, %j, is current',
  async (given, current, values) => {
    const id = freshId()
    await send('POST', '/ngsi-ld/v1/entityOperations/upsert', [{ id, type: 'T', o: at(5) }] as object)
    await create(id, all(...given))
    expect(await valuesOf(id)).toEqual(values)
    expect(await currentOf(id)).toBe(current)
    const count = await gateway.get(`${temporal}/${id}?options=aggregatedValues&aggrMethods=totalCount`)
    expect(count.json()).toMatchObject({ o: { totalCount: [[values.length, time, time]] } })
  },
)

it('an observation received by MQTT shall remain when history with its time is written', async () => {
  const client = await connectRaw(gateway.mqttPort!, 'adds')
  client.send(
    publishPacket('site/d1/telemetry', JSON.stringify({ temp: 20, time }), { qos: 1, messageId: 1 }),
  )
  expect(await client.next()).toMatchObject({ cmd: 'puback' })
  client.end()
  const id = 'urn:ngsi-ld:StreamObservation:d1:temperature'
  const name = 'http://www.w3.org/ns/sosa/hasSimpleResult'
  expect(await valuesOf(id, '', name)).toEqual([20])
  const unit = (await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json() as Record<string, object>
  await send('POST', `${temporal}/${id}/attrs`, { [name]: [{ ...unit[name], value: 21 }] })
  await send('POST', `${temporal}/${id}/attrs`, { [name]: [{ ...unit[name], unitCode: 'X', value: 22 }] })
  expect(await valuesOf(id, '', name)).toEqual([20, 21, 22])
})

it('every kind of attribute and dataset shall keep its values of a time', async () => {
  const id = freshId()
  const near = (n: number) => ({ type: 'Relationship', object: `urn:x:${n}`, observedAt: time })
  const body = (n: number) => ({
    near: [near(n)],
    o: [at(n), at(n + 10, { datasetId: 'urn:d:1' })],
    scope: [at(`/s${n}`)],
  })
  await send('POST', temporal, { id, type: 'T', ...body(1) })
  await send('POST', `${temporal}/${id}/attrs`, body(2))
  await send('POST', `${temporal}/${id}/attrs`, body(1))
  expect(await valuesOf(id)).toEqual([1, 11, 2, 12])
  expect(await valuesOf(id, '', 'scope')).toEqual([['/s1'], ['/s2']])
  expect(await instancesOf(id, '', 'near')).toMatchObject([{ object: 'urn:x:1' }, { object: 'urn:x:2' }])
})

it('the original of a modified observation shall be added again when it is written again', async () => {
  const id = freshId()
  await create(id, all(1, 2, 3))
  for (const [i, { instanceId }] of (await instancesOf(id)).entries())
    await send('PATCH', `${temporal}/${id}/attrs/o/${instanceId}`, { o: at(i + 11) })
  expect(await valuesOf(id)).toEqual([11, 12, 13])
  await send('POST', `${temporal}/${id}/attrs`, { o: all(1, 2, 3) })
  expect(new Set(await valuesOf(id))).toEqual(new Set([11, 12, 13, 1, 2, 3]))
  expect(await instancesOf(id)).toHaveLength(6)
})
