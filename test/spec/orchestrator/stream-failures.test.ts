/**
 * A sensor that an application subscribed to fails, in a real gateway process fed by MQTT: the application
 * gets a notice with alternatives, each once through kills, and another one when the sensor has healed.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { iotStream } from '#contract/vocabulary.ts'
import {
  createFaultSite,
  observationId,
  patience,
  sensorId,
  streamId,
  yesterday,
} from '#test/spec/faults/stuck-site.ts'

const interval = 600_000
const place = (metersEast: number) => [10 + metersEast / 62_000, 56]
const device = (metersEast: number, label: string) => ({
  location: place(metersEast),
  fields: { temperature: { label, updateInterval: interval / 1000 } },
})
const devices = {
  north: device(0, 'temperature'),
  far: device(3_000, 'Temperature'),
  near: device(200, 'temperature'),
  // Its label is another one, although it is nearest.
  damp: device(20, 'humidity'),
}
// A busy machine may take long to search for alternatives.
const env = { SELVEDGE_LIMITS: 'orchestratorSearchMs=30000' }
const site = createFaultSite(env, { provisioning: { devices } })
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'dashboard' }
const begin = yesterday() - 86_400_000
const stuck = begin + 120 * interval
const healed = stuck + 12 * interval
const varying = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [from + i * interval, 20 + (i % 7) + (i % 3) / 10] as const)
const equal = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [from + i * interval, 25.5] as const)

interface Notice {
  readonly id: string
  readonly type: string
  readonly alternatives?: readonly Readonly<Record<string, unknown>>[]
}

const subscribe = async (entity: object): Promise<string> => {
  const body = { type: 'Subscription', entities: [entity] }
  const answer = await site.client().ask('POST', path, { body, headers })
  expect([answer.status, answer.text]).toEqual([200, expect.stringMatching(/^urn:/)])
  return answer.text
}

/** All unconfirmed notices of a subscription, once there are so many: failures and recoveries. */
async function notices(id: string, count: number): Promise<Notice[]> {
  const answer = await fetch(`${site.gateway().httpUrl}${path}/${id}/notifications`, {
    headers: { ...headers, Accept: 'text/event-stream' },
    signal: AbortSignal.timeout(100_000),
  })
  expect(answer.status).toBe(200)
  let text = ''
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const all = [...text.matchAll(/\ndata: (.*)\n\n/g)].map(([, data]) => JSON.parse(data!) as Notice)
    // Delivery is at least once: a repeat has the same id.
    const found = new Map(all.filter(({ type }) => type !== 'Notification').map((one) => [one.id, one]))
    if (found.size >= count) return [...found.values()]
  }
  expect.unreachable('the stream ended')
}

beforeAll(async () => {
  await site.start()
  for (const name of ['far', 'near', 'damp']) await site.publish(name, varying(begin, 3))
  await site.publish('north', varying(begin, 120))
  await vi.waitFor(async () => expect(await site.state('north')).toBe('normal'), patience)
  await vi.waitFor(async () => {
    const reply = await site.client().get('/ranking/ngsi-ld/v1/entities?type=iot-stream:IotStream')
    expect(reply.json()).toHaveLength(4)
  }, patience)
})
afterAll(site.end)

describe('a sensor that sticks', () => {
  const ids = { observation: '', type: '' }

  it('fails for all subscriptions that select it, with the nearest of the same property first', async () => {
    ids.observation = await subscribe({ id: observationId('north'), type: 'iot-stream:StreamObservation' })
    ids.type = await subscribe({ type: 'iot-stream:IotStream', idPattern: ':north:' })
    await site.publish('north', equal(stuck, 10))
    for (const id of Object.values(ids)) {
      const [notice] = await notices(id, 1)
      expect(notice).toEqual({
        id: expect.stringMatching(/^urn:ngsi-ld:StreamFailure:/) as string,
        type: 'StreamFailure',
        subscriptionId: id,
        stream: streamId('north'),
        sensor: sensorId('north'),
        at: new Date(stuck + 7 * interval).toISOString(),
        reason: 'fault',
        detail: 'stuck (rule:stuck)',
        alternatives: ['near', 'far'].map((name) => ({
          stream: streamId(name),
          sensor: sensorId(name),
          observedProperty: `urn:ngsi-ld:ObservableProperty:${name}:temperature`,
          distance: expect.any(Number) as number,
          rankScore: expect.any(Number) as number,
          isVirtual: false,
        })),
      })
      const [near, far] = notice!.alternatives!
      expect(Math.abs((near!['distance'] as number) - 200)).toBeLessThan(10)
      expect(Math.abs((far!['distance'] as number) - 3_000)).toBeLessThan(50)
    }
  })

  it('recovers once it is normal, and both notices are there once after kills', async () => {
    await site.killAndStart()
    await site.publish('north', varying(healed, 70))
    await vi.waitFor(async () => expect(await site.state('north')).toBe('normal'), patience)
    for (const id of Object.values(ids)) {
      const [failure, recovery, ...further] = await notices(id, 2)
      expect(recovery).toMatchObject({
        type: 'StreamRecovery',
        stream: streamId('north'),
        failure: failure!.id,
        detail: 'normal',
      })
      expect(further).toEqual([])
    }
    await site.killAndStart()
    await site.publish('north', equal(healed + 70 * interval, 1))
    for (const id of Object.values(ids)) expect(await notices(id, 2)).toHaveLength(2)
  })

  it('fails when the stream is deleted', async () => {
    const reply = await site.client().ask('DELETE', `/ngsi-ld/v1/entities/${streamId('north')}`)
    expect(reply.status).toBe(204)
    for (const id of Object.values(ids)) {
      const [, , notice] = await notices(id, 3)
      expect(notice).toMatchObject({ type: 'StreamFailure', reason: 'deleted' })
      expect(notice!.alternatives!.map(({ stream }) => stream)).toEqual([streamId('near'), streamId('far')])
    }
  })
})

it('a virtual sensor that is withdrawn gives no notice, unlike another stream of the subscription', async () => {
  const watched = async (): Promise<number> => {
    const reply = await site.client().get('/selvedge/v1/plugins')
    const plugins = reply.json() as { orchestrator: { notifications: { failures: { watched: number } } } }
    return plugins.orchestrator.notifications.failures.watched
  }
  const before = await watched()
  const streams = [`${streamId('mast')}:VS`, streamId('mast')]
  for (const id of streams) {
    const generatedBy = { type: 'Relationship', object: id.replace('IotStream', 'Sensor') }
    const body = { id, type: iotStream.IotStream, [iotStream.generatedBy]: generatedBy }
    const reply = await site.client().ask('POST', '/ngsi-ld/v1/entities', { body, headers })
    expect(reply.status).toBe(201)
  }
  const id = await subscribe({ type: 'iot-stream:IotStream', idPattern: ':mast:' })
  await vi.waitFor(async () => expect(await watched()).toBe(before + 2), patience)
  for (const one of streams) await site.client().ask('DELETE', `/ngsi-ld/v1/entities/${one}`)
  expect(await notices(id, 1)).toMatchObject([
    { type: 'StreamFailure', reason: 'deleted', stream: streamId('mast') },
  ])
  await vi.waitFor(async () => expect(await watched()).toBe(before + 1), patience)
})
