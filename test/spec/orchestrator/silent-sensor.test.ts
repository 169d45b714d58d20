/**
 * A sensor falls silent by the clock and sends again, in a real gateway process with fault detection. The application
 * gets both notices by the MQTT topic of the embedded broker.
 */
import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createFaultSite, observationId, patience, sensorId, streamId } from '#test/spec/faults/stuck-site.ts'

const site = createFaultSite({ SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false' })
const intervalMs = 2000
const notices: unknown[] = []
let mqtt: MqttClient

/** Samples that vary, the last of them at a time. */
const until = (end: number, count: number): (readonly [time: number, value: number])[] =>
  Array.from({ length: count }, (_, i) => [end - (count - i) * intervalMs, 20 + (i % 7)] as const)

beforeAll(async () => {
  await site.start()
  // The sensor sends no more from here on.
  await site.publish('a', until(Date.now(), 100))
  await vi.waitFor(async () => expect(await site.state('a')).not.toBeUndefined(), patience)
  mqtt = await connectAsync(`mqtt://127.0.0.1:${site.gateway().mqttPort}`)
})
afterAll(async () => {
  await mqtt.endAsync()
  await site.end()
})

it('is a failure whose reason is silence, and recovers', async () => {
  const body = {
    type: 'Subscription',
    entities: [{ id: observationId('a'), type: 'StreamObservation' }],
    watchedAttributes: ['urn:x:never'],
  }
  const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'a' }
  const path = '/orchestrator/ngsi-ld/v1/subscriptions'
  const { text: id } = await site.client().ask('POST', path, { body, headers })
  mqtt.on('message', (_, payload) => notices.push(JSON.parse(payload.toString())))
  await mqtt.subscribeAsync(`notifications/${id}`, { qos: 1 })
  await expect
    .poll(() => notices, patience)
    .toMatchObject([
      {
        type: 'StreamFailure',
        subscriptionId: id,
        stream: streamId('a'),
        sensor: sensorId('a'),
        reason: 'silence',
        detail: expect.stringContaining('dropout') as string,
      },
    ])
  const device = site.device('a', 100, (i) => 20 + (i % 7))
  await expect
    .poll(() => notices[1], patience)
    .toMatchObject({ type: 'StreamRecovery', stream: streamId('a') })
  await device.end()
})
