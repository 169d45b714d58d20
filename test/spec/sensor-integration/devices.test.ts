/**
 * No published value is lost silently. Topics that no bridge reads are listed and their frames held, and
 * waiting devices are listed. Accepting either takes effect without a restart, survives a restart, and stores
 * the held frames in order and once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import type { Reply } from '#test/kit/http-gateway.ts'

let folder: string
let gateway: GatewayInside
let client: MqttClient

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
})
afterEach(async () => {
  restoreLimits()
  await stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0', ...noPlugins, ...env })
  client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { protocolVersion: 4 })
}

async function stop(): Promise<void> {
  await client.endAsync(true)
  await gateway.close()
}

const publish = (topic: string, payload: unknown): Promise<unknown> =>
  client.publishAsync(topic, typeof payload === 'string' ? payload : JSON.stringify(payload), { qos: 1 })

const path = '/selvedge/v1/devices'
const at = (name: string): string => `${path}/${encodeURIComponent(name)}`
const list = async () => (await gateway.get(path)).json() as Lists
const accept = (name: string, body?: object): Promise<Reply> =>
  gateway.ask('POST', `${at(name)}/accept`, body === undefined ? {} : { body, headers: json })
const json = { 'Content-Type': 'application/json' }

interface Lists {
  readonly waiting: { count: number; items: Record<string, unknown>[] }
  readonly undecoded: { count: number; items: Record<string, unknown>[] }
  readonly unclaimed: { count: number; items: Record<string, unknown>[] }
  readonly choices: { count: number; items: Record<string, unknown>[] }
}

/** Values in the order of their times. */
async function history(channel: string): Promise<unknown[]> {
  const reply = await gateway.get(
    `/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:StreamObservation:${channel}?options=temporalValues`,
  )
  if (reply.status === 404) return []
  const entity = reply.json() as Record<string, { values: [unknown, string][] }>
  return (entity['http://www.w3.org/ns/sosa/hasSimpleResult']?.values ?? []).map(([value]) => value)
}

async function metric(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await gateway.get('/metrics')).text)?.[1])
}

describe('a topic that no bridge reads', () => {
  it('is listed with its count, its last payload and the bridge that could read it', async () => {
    await start()
    for (const value of [20, 21]) await publish('greenhouse/temperature', value)
    await publish('chatter', 'hello there, all of you')
    const { unclaimed } = await list()
    expect(unclaimed).toMatchObject({
      count: 2,
      items: [
        { topic: 'chatter', frames: 1, held: 1, payload: 'hello there, all of you', bytes: 23 },
        {
          topic: 'greenhouse/temperature',
          frames: 2,
          held: 2,
          payload: '21',
          readableBy: 'json',
          proposal: { topic: 'greenhouse/temperature', source: { deviceName: 'greenhouse' } },
        },
      ],
    })
    expect(unclaimed.items[0]).not.toHaveProperty('readableBy')
    expect(await metric('selvedge_unclaimed_topics')).toBe(2)
  })

  it('is mapped by accept, which stores held and later frames, in order and once', async () => {
    await start()
    for (const value of [1, 2, 3]) await publish('greenhouse/temperature', value)
    const accepted = await accept('greenhouse/temperature')
    expect([accepted.status, accepted.json()]).toEqual([
      200,
      {
        kind: 'topic',
        name: 'greenhouse/temperature',
        mapping: { bridge: 'json', source: { deviceName: 'greenhouse', fields: 'auto' } },
        devices: [],
        released: 3,
      },
    ])
    expect((await accept('greenhouse/temperature')).json()).toMatchObject({ released: 0 })
    await publish('greenhouse/temperature', 4)
    expect(await history('greenhouse:temperature')).toEqual([1, 2, 3, 4])
    expect((await list()).unclaimed.count).toBe(0)
    await stop()
    await start()
    await publish('greenhouse/temperature', 5)
    expect(await history('greenhouse:temperature')).toEqual([1, 2, 3, 4, 5])
  })

  it('is mapped as the operator specifies, with a device, names and units', async () => {
    await start()
    await publish('x/y', { env: { t: 215 }, other: 7 })
    const source = { deviceName: 'boiler', fields: [{ path: 'env.t', name: 'flow', unit: '°C', scale: 0.1 }] }
    expect((await accept('x/y', { bridge: 'json', source })).json()).toMatchObject({ released: 1 })
    const id = 'urn:ngsi-ld:StreamObservation:boiler:flow'
    expect((await gateway.get(`/ngsi-ld/v1/entities/${id}`)).json()).toMatchObject({
      'http://www.w3.org/ns/sosa/hasSimpleResult': { value: 21.5, unitCode: 'CEL' },
    })
  })

  it('is mapped by a pattern before anything is published', async () => {
    await start()
    const source = { fields: 'auto' }
    expect((await accept('plant/{device}/env', { bridge: 'json', source })).status).toBe(200)
    await publish('plant/p1/env', { t: 1 })
    expect(await history('p1:t')).toEqual([1])
    expect((await list()).choices.items).toMatchObject([
      { kind: 'topic', name: 'plant/{device}/env', decision: 'accepted', bridge: 'json' },
    ])
  })

  it('is ignored together with all topics that a filter matches, and listed again when that is withdrawn', async () => {
    await start()
    for (const topic of ['cmnd/a/POWER', 'cmnd/b/POWER', 'tele/a/x']) await publish(topic, 'TOGGLE')
    const ignored = await gateway.ask('POST', `${at('cmnd/#')}/ignore`)
    expect([ignored.status, ignored.json()]).toEqual([200, { kind: 'topic', name: 'cmnd/#', dropped: 2 }])
    await publish('cmnd/c/POWER', 'TOGGLE')
    expect((await list()).unclaimed.items.map(({ topic }) => topic)).toEqual(['tele/a/x'])
    expect((await gateway.ask('DELETE', at('cmnd/#'))).status).toBe(204)
    await publish('cmnd/c/POWER', 'TOGGLE')
    expect((await list()).unclaimed.items.map(({ topic }) => topic)).toEqual(['cmnd/c/POWER', 'tele/a/x'])
  })

  it('is shown with its newest frames and the readings its bridge would decode', async () => {
    await start()
    await publish('tele/cellar/SENSOR', {
      Time: '2026-03-01T10:13:52',
      DS18B20: { Id: '0316', Temperature: 20.6 },
      TempUnit: 'C',
    })
    const shown = await gateway.get(at('tele/cellar/SENSOR'))
    expect(shown.json()).toMatchObject({
      unclaimed: {
        proposal: { topic: 'tele/{device}/SENSOR' },
        newest: [{ payload: expect.stringContaining('DS18B20') as string }],
      },
      preview: {
        readings: [{ device: 'cellar', field: 'DS18B20.Temperature', value: 20.6, unitCode: 'CEL' }],
      },
    })
    expect((await gateway.get(at('nothing/of/it'))).status).toBe(404)
  })

  it('holds frames within its memory limit: the topic with the most bytes loses its oldest frames first', async () => {
    setLimit('unclaimedBytesMax', 40_000)
    setLimit('unclaimedTopicsMax', 3)
    await start()
    await publish('quiet', 1)
    for (let i = 0; i < 20; i++) await publish('loud', 'x'.repeat(10_000))
    const { items } = (await list()).unclaimed
    expect(items.map(({ topic, frames, held }) => [topic, frames, held])).toEqual([
      ['loud', 20, 3],
      ['quiet', 1, 1],
    ])
    for (const topic of ['a', 'b', 'c']) await publish(topic, 1)
    expect((await list()).unclaimed.items.map(({ topic }) => topic)).toEqual(['c', 'b', 'a'])
  })

  it('cannot be mapped against the settings, to a missing bridge, or with wrong settings', async () => {
    await start()
    await publish('x/y', 'no value at all, sorry')
    const details = async (reply: Promise<Reply>) => [
      (await reply).status,
      ((await reply).json() as { detail: string }).detail,
    ]
    expect(await details(accept('senml/x'))).toEqual([409, expect.stringContaining('senml/x') as string])
    expect(await details(accept('x/y'))).toEqual([400, expect.stringContaining('"bridge"') as string])
    expect(await details(accept('x/y', { bridge: 'xml' }))).toEqual([
      400,
      'bridge: expected one of senml, json',
    ])
    const source = { deviceName: 'd', fields: [{ path: '..' }] }
    expect(await details(accept('x/y', { bridge: 'json', source }))).toEqual([
      400,
      'fields[0].path: expected a path such as a.b[0].c',
    ])
  })
})

describe('a device that waits', () => {
  const env = { SELVEDGE_PROVISIONING_MODE: 'quarantine', SELVEDGE_PROVISIONING_IGNORE: 'banned' }

  it('is listed with its readings, accepted without a restart, and stays accepted after one', async () => {
    await start(env)
    for (const v of [1, 2]) await publish('senml/x', [{ n: 'd1:t', u: 'Cel', v }])
    await publish('senml/x', [{ n: 'd2:t', v: 9 }])
    expect((await list()).waiting).toMatchObject({
      count: 2,
      items: [
        { device: 'd2', frames: 1 },
        { device: 'd1', frames: 2, bridge: 'senml', topic: 'senml/x', readings: [{ field: 't', value: 2 }] },
      ],
    })
    expect((await accept('d1')).json()).toEqual({ kind: 'device', name: 'd1', devices: ['d1'], released: 2 })
    expect(await history('d1:t')).toEqual([1, 2])
    expect((await list()).waiting.items.map(({ device }) => device)).toEqual(['d2'])
    await stop()
    await start(env)
    await publish('senml/x', [{ n: 'd1:u', v: 3 }])
    expect(await history('d1:u')).toEqual([3])
    expect(await history('d1:t')).toEqual([1, 2])
    expect(await history('d2:t')).toEqual([])
  })

  it('is ignored and its frames dropped, even if it was accepted before', async () => {
    await start(env)
    await publish('senml/x', [{ n: 'd1:t', v: 1 }])
    await accept('d1')
    await publish('senml/x', [{ n: 'd2:t', v: 1 }])
    const ignore = (name: string) => gateway.ask('POST', `${at(name)}/ignore`)
    expect((await ignore('d1')).json()).toEqual({ kind: 'device', name: 'd1', dropped: 0 })
    expect((await ignore('d2')).json()).toEqual({ kind: 'device', name: 'd2', dropped: 1 })
    for (const n of ['d1:t', 'd2:t']) await publish('senml/x', [{ n, v: 2 }])
    expect(await history('d1:t')).toEqual([1])
    expect((await list()).waiting.count).toBe(0)
    expect((await accept('banned')).status).toBe(409)
  })

  it('is accepted together with the topic it was seen on', async () => {
    await start(env)
    await publish('greenhouse/temperature', 20)
    expect((await accept('greenhouse/temperature')).json()).toMatchObject({
      devices: ['greenhouse'],
      released: 1,
    })
    expect(await history('greenhouse:temperature')).toEqual([20])
  })
})

it('lists frames that could not be decoded, by topic and reason', async () => {
  await start()
  for (let i = 0; i < 3; i++) await publish('senml/x', 'no pack')
  expect((await list()).undecoded).toMatchObject({
    count: 1,
    items: [{ topic: 'senml/x', bridge: 'senml', frames: 3, payload: 'no pack' }],
  })
})

it('lists and releases as many large frames as are held', async () => {
  await start()
  const body = `[${'{"n":"t","v":1},'.repeat(14_000)}{"n":"t","v":2}]`
  for (let at = 0; at < 15; at++) await publish(`large/${at}`, `{"v":${at},"list":${body}}`)
  expect((await list()).unclaimed.count).toBe(15)
  const source = { fields: [{ path: 'v' }] }
  expect((await accept('large/{device}', { bridge: 'json', source })).json()).toMatchObject({ released: 15 })
  expect(await history('14:v')).toEqual([14])
})
