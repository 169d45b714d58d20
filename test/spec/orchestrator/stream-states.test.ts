/**
 * The state of a stream changes alone, as for a sensor that falls silent: the application gets a notice by the MQTT
 * topic of the embedded broker, and another one when the state is normal again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { iotStream, patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-stream-states-'))
const stream = 'urn:ngsi-ld:IotStream:a:t'
const state = 'urn:selvedge:ns:state'
/** A second is usual; a busy machine takes longer, and this proves that no timer of half a minute was needed. */
const marginMs = 15_000
const received: { readonly notice: Readonly<Record<string, unknown>>; readonly at: number }[] = []
let gateway: GatewayInside
let mqtt: MqttClient

beforeAll(async () => {
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0' })
  await vi.waitFor(async () => {
    expect((await gateway.get('/orchestrator/version')).status).toBe(200)
  }, patience)
  mqtt = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
})
afterAll(async () => {
  await mqtt.endAsync()
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

const property = (value: string, minute: number) => ({
  [state]: { type: 'Property', value, observedAt: `2026-11-23T10:${10 + minute}:00Z` },
})
/** Sets the state, and returns the next notice, which follows soon. */
async function noticeOf(value: string, minute: number) {
  const count = received.length
  const begunAt = performance.now()
  const attributes = property(value, minute)
  expect((await gateway.send('POST', `/ngsi-ld/v1/entities/${stream}/attrs`, attributes)).status).toBe(204)
  await expect.poll(() => received.length, patience).toBe(count + 1)
  expect(received[count]!.at - begunAt).toBeLessThan(marginMs)
  return received[count]!.notice
}

it('is a notice each time, by MQTT', async () => {
  const entity = { id: stream, type: `${iotStream}IotStream`, ...property('normal', 0) }
  expect((await gateway.send('POST', '/ngsi-ld/v1/entities', entity)).status).toBe(201)
  const body = {
    type: 'Subscription',
    entities: [{ id: stream, type: `${iotStream}IotStream` }],
    watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
  }
  const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'a' }
  const answer = await gateway.ask('POST', '/orchestrator/ngsi-ld/v1/subscriptions', { body, headers })
  const id = answer.text
  mqtt.on('message', (topic, payload) => {
    expect(topic).toBe(`notifications/${id}`)
    const notice = JSON.parse(payload.toString()) as Readonly<Record<string, unknown>>
    received.push({ notice, at: performance.now() })
  })
  await mqtt.subscribeAsync(`notifications/${id}`, { qos: 1 })
  for (const minute of [1, 3]) {
    const failure = await noticeOf('fault', minute)
    expect(failure).toMatchObject({
      type: 'StreamFailure',
      subscriptionId: id,
      stream,
      reason: 'fault',
      at: `2026-11-23T10:${10 + minute}:00Z`,
      alternatives: [],
    })
    expect(await noticeOf('normal', minute + 1)).toMatchObject({
      type: 'StreamRecovery',
      subscriptionId: id,
      stream,
      failure: failure['id'],
      detail: 'normal',
    })
  }
})
