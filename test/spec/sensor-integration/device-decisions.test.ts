/**
 * Decisions about devices and topics do what their answers say: every held frame is listed with its reason, and accepting
 * a topic never merges devices, contradicts a mapping or changes nothing without saying so.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'

let folder: string
let gateway: GatewayInside
let client: MqttClient

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0', ...noPlugins, ...env })
  client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { protocolVersion: 4 })
}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
})
afterEach(async () => {
  await client.endAsync(true)
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

const publish = (topic: string, payload: unknown): Promise<unknown> =>
  client.publishAsync(topic, typeof payload === 'string' ? payload : JSON.stringify(payload), { qos: 1 })

const path = '/selvedge/v1/devices'
const at = (name: string): string => `${path}/${encodeURIComponent(name)}`
const list = async () => (await gateway.get(path)).json() as Lists
const headers = { 'Content-Type': 'application/json' }

type Listed = { count: number; items: Record<string, unknown>[] }
type Lists = { waiting: Listed; undecoded: Listed; unclaimed: Listed; choices: Listed }

/** Status and body, of a refusal its detail. */
async function accept(name: string, body?: object): Promise<[number, unknown]> {
  const reply = await gateway.ask('POST', `${at(name)}/accept`, body === undefined ? {} : { body, headers })
  const told = reply.json() as { detail?: string }
  return [reply.status, told.detail ?? told]
}

async function show(name: string): Promise<[number, unknown]> {
  const reply = await gateway.get(at(name))
  return [reply.status, reply.json()]
}

const containing = (text: string): unknown => expect.stringContaining(text)

const quarantine = { SELVEDGE_PROVISIONING_MODE: 'quarantine' }
const future = 1_900_000_000

describe('a frame whose time is refused', () => {
  it('is listed with its reason, also under its device, where the device is accepted', async () => {
    await start(quarantine)
    const pack = (t?: number) => [{ bn: 'cellar:', n: 'temperature', u: 'Cel', v: 21.9, t }]
    await publish('senml/x', pack())
    await accept('cellar')
    for (const t of [future, future]) await publish('senml/x', pack(t))
    const refused = {
      ...{ topic: 'senml/x', bridge: 'senml', frames: 2 },
      reason: containing('outside the window'),
    }
    expect(await list()).toMatchObject({ waiting: { count: 0 }, undecoded: { count: 1, items: [refused] } })
    expect(await show('cellar')).toEqual([
      200,
      expect.objectContaining({ undecoded: [expect.objectContaining(refused)] }),
    ])
  })

  it('is listed by its reason, not as a frame of a device that waits', async () => {
    await start(quarantine)
    await publish('senml/x', [{ n: 'd1:t', v: 1, t: future }])
    await publish('senml/x', [{ n: 'd2:t', v: 1 }])
    expect(await list()).toMatchObject({
      waiting: { count: 1, items: [{ device: 'd2' }] },
      undecoded: { count: 1, items: [{ reason: containing('outside the window') }] },
    })
  })
})

it('lists the held frames of a device that the settings ignore since', async () => {
  await start(quarantine)
  await publish('senml/x', [{ n: 'd1:t', v: 1 }])
  await client.endAsync(true)
  await gateway.close()
  await start({ ...quarantine, SELVEDGE_PROVISIONING_IGNORE: 'd1' })
  expect((await list()).undecoded).toMatchObject({
    count: 1,
    items: [{ topic: 'senml/x', reason: containing('d1 is not accepted') }],
  })
})
