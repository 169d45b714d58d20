/**
 * The pattern extractor in a real gateway process: models by HTTP, windows of groups as Events, and the same
 * Events whatever the order of arrival and through kills.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import {
  at,
  begin,
  iotStream,
  iso,
  minute,
  patience,
  patternSite,
  propertyId,
  sosa,
  streamEntities,
  summary,
  to,
  value,
} from './pattern-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-patterns-'))

let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)
/** @param batches whether events are written by batch operations. */
const start = async (batches = true): Promise<void> => {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: {
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_PATTERNS_PORT: '0',
      ENABLE_BATCH_OPERATIONS: `${batches}`,
      SELVEDGE_LIMITS: 'patternSaveMs=300,patternCheckMs=300',
      TZ: 'Europe/Copenhagen',
    },
  })
}
beforeAll(() => start())
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const { create, observe, events, register } = patternSite(client)

/** Two classes by the direction in which two streams vary: together, or only the second. */
const mixture = {
  kind: 'gaussian-mixture',
  weights: [0.5, 0.5],
  means: [
    [0.7, 0.7],
    [0, 1],
  ],
  covariances: [
    [
      [0.05, 0],
      [0, 0.05],
    ],
    [
      [0.05, 0],
      [0, 0.05],
    ],
  ],
}
const labels = ['Together', 'Alone']

async function model(id: string) {
  const answer = await client().get(`/patterns/api/model/${id}`)
  expect(answer.status).toBe(200)
  return answer.json() as {
    readonly status: { readonly observationSubscriptionId: string; readonly groups: number }
  }
}

describe('the pattern extractor', () => {
  it('publishes the pattern of each window of streams at one place, once, through kills', async () => {
    await create([
      ...streamEntities('a1', 'a-flow', [10.2, 56.1]),
      ...streamEntities('a2', 'a-speed', [10.2, 56.1]),
      ...streamEntities('a3', 'a-speed', [10.3, 56.1]),
    ])
    const input = {
      observableProperties: [propertyId('a-flow'), propertyId('a-speed')],
      model: mixture,
      labels,
    }
    const registered = await register(input)
    expect(registered).toEqual({
      id: expect.any(String) as string,
      subscriptionId: expect.any(String) as string,
      ...input,
    })
    for (let row = 0; row < 24; row++) {
      const together = row < 12
      await observe('a1', together ? 10 + (row % 3) : 10, begin + row * minute)
      await observe('a2', 10 + (row % 3), begin + row * minute)
      if (row !== 13) continue
      await gateway.kill()
      await start(false)
    }
    await vi.waitFor(async () => expect(await events('a1')).toHaveLength(13), patience)
    const [first, ...others] = summary(await events('a1'))
    expect(first).toEqual([iso(0), iso(11), 'Together'])
    expect(others.at(-1)).toEqual([iso(12), iso(23), 'Alone'])
    expect(others.map(([, end]) => end)).toEqual(Array.from({ length: 12 }, (_, i) => iso(12 + i)))
    const event = (await events('a1')).find((one) => at(one, 'windowEnd') === iso(11))!
    expect(event).toMatchObject({
      id: expect.stringMatching(/^urn:ngsi-ld:Event:[0-9a-f]{24}$/) as string,
      type: `${iotStream}Event`,
      [`${iotStream}windowStart`]: { type: 'Property', value: { '@type': 'DateTime', '@value': iso(0) } },
      [`${iotStream}detectedFrom`]: [
        { type: 'Relationship', object: 'urn:ngsi-ld:IotStream:a1' },
        { type: 'Relationship', object: 'urn:ngsi-ld:IotStream:a2' },
      ],
      expiresAt: expect.any(String) as string,
    })
    const { value: confidence } = event['urn:selvedge:ns:confidence'] as { value: number }
    expect(confidence).toBeGreaterThan(0.9)
    expect(confidence).toBeLessThanOrEqual(1)
    // By the clock of the gateway, not by the times of the values.
    const kept = Date.parse(event['expiresAt'] as string) - Date.parse(event['createdAt'] as string)
    expect(Math.abs(kept - 72 * 60 * minute)).toBeLessThan(minute)
    expect(await events('a3')).toEqual([])
    const all = (await client().get('/patterns/api/model')).json() as { count: number; result: object[] }
    expect(all).toMatchObject({ count: 1, result: [{ ...registered, status: { groups: 1, streams: 2 } }] })
  })

  it('changes events for late values, within the hours of the day', async () => {
    await create([
      ...streamEntities('b1', 'b-flow', [10.4, 56.1]),
      ...streamEntities('b2', 'b-speed', [10.4001, 56.1]),
    ])
    const properties = [propertyId('b-flow'), propertyId('b-speed')]
    const { id } = await register({
      observableProperties: properties,
      model: mixture,
      spatial: { radius: 50 },
      // The first row is at 10:00 in the time zone of the gateway.
      temporal: { window: 4, step: 2, hours: '10:00-10:08' },
    })
    for (const row of [0, 1, 3, 4, 5, 6, 7, 8, 9, 2]) {
      await observe('b1', row % 3, begin + row * minute)
      await observe('b2', row % 3, begin + row * minute)
    }
    const expected = [0, 2, 4].map((row) => [iso(row), iso(row + 3), 'pattern-1'])
    await vi.waitFor(async () => expect(summary(await events('b1'))).toEqual(expected), patience)
    expect(await model(id)).toMatchObject({ status: { state: 'running', groups: 1 } })
  })

  it('shows the subscriptions of a model at the broker, and deletes them with it', async () => {
    const { id, subscriptionId } = await register({
      observableProperties: ['urn:p:1', 'urn:p:2'],
      model: mixture,
    })
    const path = (of: string): string => `/ngsi-ld/v1/subscriptions/${of}`
    const shown = await client().get(path(subscriptionId))
    expect(shown.json()).toMatchObject({
      q: `${sosa}observes=="urn:p:1"|${sosa}observes=="urn:p:2"`,
      entities: [{ type: `${iotStream}IotStream` }],
      notification: {
        endpoint: { uri: expect.stringMatching(/^http:.*\/api\/notification\/stream$/) as string },
      },
    })
    // On its own port the extractor has the paths of the original.
    const { uri } = (shown.json() as { notification: { endpoint: { uri: string } } }).notification.endpoint
    const same = await httpClient(new URL(uri).origin).get(`/api/model/${id}`)
    expect(same.json()).toMatchObject({ id, subscriptionId })
    const { observationSubscriptionId } = (await model(id)).status
    expect((await client().get(path(observationSubscriptionId))).status).toBe(200)
    expect((await client().send('DELETE', path(subscriptionId), undefined)).status).toBe(204)
    await vi.waitFor(
      async () => expect((await client().get(path(subscriptionId))).status).toBe(200),
      patience,
    )
    expect((await client().send('DELETE', `/patterns/api/model/${id}`, undefined)).status).toBe(204)
    for (const one of [subscriptionId, observationSubscriptionId])
      expect((await client().get(path(one))).status).toBe(404)
    expect((await client().get(`/patterns/api/model/${id}`)).status).toBe(404)
    expect((await client().send('DELETE', `/patterns/api/model/${id}`, undefined)).status).toBe(404)
  })

  it('takes notifications of every form at its callbacks', async () => {
    await create([
      ...streamEntities('c1', 'c-flow', [10.6, 56.1]),
      ...streamEntities('c2', 'c-speed', [10.6, 56.1]),
    ])
    const { id } = await register({
      observableProperties: [propertyId('c-flow'), propertyId('c-speed')],
      model: mixture,
      temporal: { window: 2 },
    })
    await vi.waitFor(async () => expect((await model(id)).status.groups).toBe(1), patience)
    const notify = async (purpose: string, body: unknown): Promise<void> => {
      const answer = await client().send('POST', `/patterns/api/notification/${purpose}`, body)
      expect([answer.status, answer.json()]).toEqual([200, {}])
    }
    const observation = (name: string, row: number) => ({
      id: `urn:ngsi-ld:StreamObservation:${name}`,
      type: `${iotStream}StreamObservation`,
      [`${iotStream}belongsTo`]: to(`urn:ngsi-ld:IotStream:${name}`),
      [`${sosa}hasSimpleResult`]: value(row, { observedAt: iso(row) }),
    })
    const { [`${sosa}hasSimpleResult`]: _, ...simplified } = observation('c2', 3)
    await notify('observation', {
      id: 'urn:n:1',
      type: 'Notification',
      data: [observation('c1', 1), observation('c2', 1)],
    })
    await notify('observation', [observation('c1', 2), observation('c2', 2)])
    await notify('observation', observation('c1', 3))
    await notify('observation', {
      ...simplified,
      [`${iotStream}belongsTo`]: 'urn:ngsi-ld:IotStream:c2',
      [`${sosa}hasSimpleResult`]: '3^^xsd:double',
      [`${sosa}resultTime`]: iso(3),
    })
    await notify('observation', observation('c1', 3))
    await notify('stream', streamEntities('c1', 'c-flow', [10.6, 56.1])[1])
    const expected = [
      [iso(1), iso(2), 'pattern-1'],
      [iso(2), iso(3), 'pattern-1'],
    ]
    await vi.waitFor(async () => expect(summary(await events('c1'))).toEqual(expected), patience)
    // A late value adds a window, and changes the start of the next.
    await notify('observation', observation('c1', 2.5))
    const changed = [
      [iso(1), iso(2), 'pattern-1'],
      [iso(2), iso(2.5), 'pattern-1'],
      [iso(2.5), iso(3), 'pattern-2'],
    ]
    await vi.waitFor(async () => expect(summary(await events('c1'))).toEqual(changed), patience)
    const wrong = await client().send('POST', '/patterns/api/notification/observation', {
      type: 'Notification',
    })
    expect([wrong.status, wrong.json()]).toMatchObject([400, { status: 400 }])
  })

  it('answers errors as {status, message}', async () => {
    const pickle = Buffer.from([0x80, 0x04, 0x95, 0x00, 0x2e]).toString('base64')
    const send = async (body: object) => {
      const answer = await client().send('POST', '/patterns/api/model', body)
      return { code: answer.status, ...(answer.json() as { status: number; message: string }) }
    }
    expect(await send({ observableProperties: ['urn:p:1'], model: pickle })).toMatchObject({
      code: 415,
      status: 415,
      message: expect.stringContaining('Convert it in Python') as string,
    })
    expect(await send({ observableProperties: ['urn:p:1'], model: 'nothing' })).toMatchObject({
      code: 400,
      status: 400,
      message: expect.stringMatching(/^model: must be a JSON object/) as string,
    })
    expect((await client().get('/patterns/api/model/none')).status).toBe(404)
    expect((await client().send('PUT', '/patterns/api/model', {})).status).toBe(405)
  })
})
