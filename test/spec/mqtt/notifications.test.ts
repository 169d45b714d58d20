/**
 * Notifications over MQTT through a whole gateway (GS CIM 009, 5.8.6 and 7.2): to the gateway's own broker,
 * and to a Mosquitto that is stopped. Pending notifications arrive in order when it is back.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createMosquitto } from '#test/kit/mosquitto.ts'
import { describePeer } from '#test/kit/peers.ts'

interface Message {
  readonly metadata: Record<string, string>
  readonly body: { readonly type: string; readonly data: readonly { readonly t: number }[] }
}

let folder: string
let gateway: GatewayInside
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-told-'))
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0' })
})
afterEach(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

async function subscribe(uri: string, notifierInfo: readonly object[] = []): Promise<void> {
  const endpoint = { uri, notifierInfo, receiverInfo: [{ key: 'X-Site', value: 'north' }] }
  const answer = await gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
    id: 'urn:x:s',
    type: 'Subscription',
    entities: [{ type: 'Room' }],
    notification: { endpoint, format: 'simplified' },
  })
  expect([answer.status, answer.text]).toEqual([201, ''])
}
const write = async (t: number): Promise<void> => {
  const entity = { id: 'urn:x:r', type: 'Room', t: { type: 'Property', value: t } }
  expect((await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [entity])).status).toBeLessThan(
    300,
  )
}
async function hear(port: number): Promise<{ client: MqttClient; heard: Message[] }> {
  const heard: Message[] = []
  // A persistent session, so that no message is missed between two connections.
  const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { clientId: 'listener', clean: false })
  client.on('message', (_, payload) => heard.push(JSON.parse(payload.toString()) as Message))
  await client.subscribeAsync('told/#', { qos: 1 })
  return { client, heard }
}
const values = (heard: readonly Message[]): (number | undefined)[] => heard.map(({ body }) => body.data[0]?.t)

describe('a notification over MQTT', () => {
  it("arrives at subscribers of the gateway's own broker, with the HTTP headers as metadata", async () => {
    const { client, heard } = await hear(gateway.mqttPort!)
    await subscribe(`mqtt://127.0.0.1:${gateway.mqttPort}/told/rooms`, [{ key: 'MQTT-QoS', value: '1' }])
    for (const t of [1, 2, 3]) await write(t)
    await expect.poll(() => values(heard)).toEqual([1, 2, 3])
    expect(heard[0]).toMatchObject({
      metadata: {
        'Content-Type': 'application/json',
        'X-Site': 'north',
        Link: expect.stringContaining('core'),
      },
      body: { type: 'Notification', subscriptionId: 'urn:x:s' },
    })
    // A topic that the gateway itself publishes to is not listed for mapping; one from a device is.
    const topics = async (): Promise<unknown> =>
      ((await gateway.get('/selvedge/v1/devices')).json() as { unclaimed: object }).unclaimed
    expect(await topics()).toMatchObject({ count: 0 })
    await client.publishAsync('told/rooms', '{"t":1}', { qos: 1 })
    expect(await topics()).toMatchObject({ count: 1, items: [{ topic: 'told/rooms', frames: 1 }] })
    await client.endAsync()
  })
})

describePeer('mosquitto', 'a notification to a broker that goes away', (path) => {
  it('arrives when the broker is back', async () => {
    const mosquitto = await createMosquitto(path)
    await mosquitto.start()
    await subscribe(`mqtt://127.0.0.1:${mosquitto.port}/told/rooms`, [{ key: 'MQTT-QoS', value: '2' }])
    const before = await hear(mosquitto.port)
    await write(1)
    await expect.poll(() => values(before.heard)).toEqual([1])
    await before.client.endAsync()
    await mosquitto.kill()
    for (const t of [2, 3]) await write(t)
    await gateway.close()
    gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0' })
    const waiting = async () => (await gateway.get('/ngsi-ld/v1/subscriptions/urn:x:s')).text
    await expect.poll(waiting).toContain('"status":"failed"')
    await mosquitto.start()
    const after = await hear(mosquitto.port)
    await expect.poll(() => values(after.heard)).toEqual([2, 3])
    await after.client.endAsync()
    await mosquitto.remove()
  })
})
