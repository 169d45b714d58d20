/** The event of the metadata repository: a subscriber is told of what was created or changed and matches, only of that. */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { prove } from './prove.ts'
import { attributesOf, clientOf, qoi, sensor, sensorType } from './sensor.ts'

let gateway: GatewayProcess
let client: HttpClient
let receiver: Receiver

beforeAll(async () => {
  gateway = await startGatewayProcess()
  client = httpClient(gateway.httpUrl)
  receiver = await createReceiver()
})
afterAll(async () => {
  await gateway.stop()
  await receiver.down()
})

interface Told {
  readonly subscriptionId: string
  readonly type: string
  readonly data: { readonly id: string; readonly [name: string]: unknown }[]
}

prove('Events', {
  async notification() {
    const mdr = clientOf(client)
    const id = 'urn:ngsi-ld:Sensor:events'
    const subscriptionId = 'urn:ngsi-ld:Subscription:events'
    const subscribed = await client.send('POST', '/ngsi-ld/v1/subscriptions/', {
      id: subscriptionId,
      type: 'Subscription',
      entities: [{ type: sensorType }],
      q: `${qoi}max>30`,
      notification: { endpoint: { uri: receiver.url('/notify'), accept: 'application/json' } },
    })
    expect(subscribed.status).toBe(201)
    const change = (max: number) =>
      mdr.update(id, { ...attributesOf(sensor(id)), 'qoi:max': { type: 'Property', value: max } })
    await mdr.create(sensor(id))
    await mdr.create({ ...sensor('urn:ngsi-ld:Other:events'), type: 'qoi:Other' })
    await change(20)
    await change(50)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(2), { timeout: 3000 })
    // What does not match would have come by now.
    await new Promise((resolve) => setTimeout(resolve, 300))
    const told = receiver.taken().map(({ body }) => JSON.parse(body) as Told)
    expect(told).toMatchObject([
      { type: 'Notification', subscriptionId, data: [{ id, [`${qoi}max`]: { value: 40 } }] },
      { type: 'Notification', subscriptionId, data: [{ id, [`${qoi}max`]: { value: 50 } }] },
    ])
    expect(receiver.taken().map(({ path }) => path)).toEqual(['/notify', '/notify'])
  },

  async indexed() {
    const listed = async () => {
      const answer = await client.get('/ngsi-ld/v1/subscriptions')
      return (answer.json() as { id: string; entities: { type: string }[] }[]).filter(({ id }) =>
        id.startsWith('indexing:'),
      )
    }
    await vi.waitFor(async () => expect(await listed()).toHaveLength(6), { timeout: 10_000 })
    const types = (await listed()).map(({ entities }) => entities[0]!.type)
    expect(types).toEqual(expect.arrayContaining([sensorType, `${qoi}Quality`]))
  },
})
