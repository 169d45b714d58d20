/**
 * Decisions about devices and topics have exactly the effect that their answers state. Every held frame is
 * listed with its reason. Accepting a topic never merges devices, contradicts a mapping or changes anything
 * silently.
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

/** Status and body; for a refusal its detail. */
async function accept(name: string, body?: object): Promise<[number, unknown]> {
  const reply = await gateway.ask('POST', `${at(name)}/accept`, body === undefined ? {} : { body, headers })
  const told = reply.json() as { detail?: string }
  return [reply.status, told.detail ?? told]
}

async function show(name: string): Promise<[number, unknown]> {
  const reply = await gateway.get(at(name))
  return [reply.status, reply.json()]
}

async function forget(name: string): Promise<[number, unknown]> {
  const reply = await gateway.ask('DELETE', at(name))
  return [reply.status, reply.status === 204 ? undefined : (reply.json() as { detail: string }).detail]
}

async function observationOf(channel: string): Promise<unknown> {
  const reply = await gateway.get(`/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${channel}`)
  return (reply.json() as Record<string, unknown>)['http://www.w3.org/ns/sosa/hasSimpleResult']
}

const containing = (text: string): unknown => expect.stringContaining(text)

const quarantine = { SELVEDGE_PROVISIONING_MODE: 'quarantine' }
const future = 1_900_000_000

describe('a frame whose time is refused', () => {
  it('is listed with its reason, also under its device, even if the device is accepted', async () => {
    await start(quarantine)
    const pack = (t?: number) => [{ bn: 'cellar:', n: 'temperature', u: 'Cel', v: 21.9, t }]
    await publish('senml/x', pack())
    await accept('cellar')
    for (const t of [future, future]) await publish('senml/x', pack(t))
    const refused = {
      topic: 'senml/x',
      bridge: 'senml',
      frames: 2,
      reason: containing('outside the accepted window'),
    }
    expect(await list()).toMatchObject({ waiting: { count: 0 }, undecoded: { count: 1, items: [refused] } })
    expect(await show('cellar')).toEqual([
      200,
      expect.objectContaining({ undecoded: [expect.objectContaining(refused)] }),
    ])
  })

  it('is listed by its reason, not as a frame of a waiting device', async () => {
    await start(quarantine)
    await publish('senml/x', [{ n: 'd1:t', v: 1, t: future }])
    await publish('senml/x', [{ n: 'd2:t', v: 1 }])
    expect(await list()).toMatchObject({
      waiting: { count: 1, items: [{ device: 'd2' }] },
      undecoded: { count: 1, items: [{ reason: containing('outside the accepted window') }] },
    })
  })
})

it('lists the held frames of a device that the settings now ignore', async () => {
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

describe('accepting a topic whose device has the name of another', () => {
  const json = { bridge: 'json' }
  it.each([
    ['zigbee2mqtt/floor1/kitchen', 'zigbee2mqtt/kitchen', 'kitchen'],
    ['zigbee2mqtt/kitchen', 'zigbee2mqtt/floor1/kitchen', 'kitchen'],
    ['zigbee2mqtt/kitchen', 'home/kitchen/temperature', 'kitchen'],
    ['logger/a', 'mach/a/data', 'a'],
    ['senml/x', 'tele/cellar/SENSOR', 'cellar'],
  ])('is refused: %s, then %s', async (first, second, device) => {
    await start()
    if (first === 'senml/x') await publish(first, [{ bn: 'cellar:', n: 't', v: 1 }])
    else {
      await publish(first, { t: 1 })
      expect((await accept(first))[0]).toBe(200)
    }
    const value = second.startsWith('home') ? 2 : { u: 2 }
    await publish(
      second,
      second.startsWith('tele') ? { Time: '2026-03-01T10:00:00', A: { Temperature: 2 } } : value,
    )
    expect(await accept(second)).toEqual([
      409,
      `${second} would become the device ${device}, which is already read from ${first}; set "source.deviceName" to another name, or to ${device} to merge them`,
    ])
    expect((await list()).unclaimed).toMatchObject({ count: 1, items: [{ topic: second, held: 1 }] })
    expect(await accept(second, { ...json, source: { deviceName: 'other' } })).toMatchObject([
      200,
      { name: second, released: 1 },
    ])
  })

  it('merges them when the device is named, and from then on without naming it', async () => {
    await start(quarantine)
    for (const topic of ['zigbee2mqtt/kitchen', 'home/kitchen/temperature', 'home/kitchen/humidity'])
      await publish(topic, topic.startsWith('z') ? { linkquality: 1 } : '21')
    await accept('zigbee2mqtt/kitchen')
    const named = { source: { deviceName: 'kitchen' } }
    expect(await accept('home/kitchen/temperature', named)).toMatchObject([200, { released: 1 }])
    expect(await accept('home/kitchen/humidity')).toMatchObject([200, { released: 1 }])
  })

  it('is no conflict if the topics differ only after the name, or the other decision was withdrawn', async () => {
    await start()
    const sensor = { Time: '2026-03-01T10:00:00', A: { Temperature: 2 } }
    for (const topic of ['tele/cellar/SENSOR', 'tele/cellar/STATE']) await publish(topic, sensor)
    expect((await accept('tele/cellar/SENSOR'))[0]).toBe(200)
    expect((await accept('tele/cellar/STATE'))[0]).toBe(200)
    for (const name of ['tele/{device}/SENSOR', 'tele/{device}/STATE'])
      expect((await forget(name))[0]).toBe(204)
    await publish('home/cellar/temperature', '21')
    expect((await accept('home/cellar/temperature'))[0]).toBe(200)
  })

  it('is refused while the other device waits', async () => {
    await start(quarantine)
    await accept('logger/{device}', json)
    await publish('logger/a', '21')
    await publish('mach/a/data', '{"t":1}')
    expect(await accept('mach/a/data')).toEqual([409, containing('logger/a')])
  })
})

describe('accepting a topic that is mapped', () => {
  const local = { Time: '2026-03-01T11:14:52', DS18B20: { Temperature: 20.6 } }

  it('names the mapping that reads it, and accepts the devices waiting on it', async () => {
    await start(quarantine)
    await accept('home/{device}/{field}', { bridge: 'json' })
    await publish('home/kitchen/temperature', '21')
    expect(await accept('home/kitchen/temperature')).toMatchObject([
      200,
      { name: 'home/{device}/{field}', devices: ['kitchen'], released: 1 },
    ])
  })

  it('refuses a wildcard, which maps nothing by itself', async () => {
    await start()
    await accept('home/{device}/{field}', { bridge: 'json' })
    for (const name of ['home/+/temperature', 'home/{device}/temperature'])
      expect(await accept(name)).toEqual([400, containing('so "bridge" is required')])
    expect((await list()).choices.count).toBe(1)
    const source = { deviceName: 'house' }
    expect(await accept('home/+/temperature', { source })).toMatchObject([
      200,
      { name: 'home/+/temperature' },
    ])
    expect((await list()).choices.count).toBe(2)
  })

  it.each([{}, { bridge: 'json' }])('changes the options of its mapping, %o', async (bridge) => {
    await start()
    await publish('tele/cellar/SENSOR', local)
    await accept('tele/cellar/SENSOR')
    const source = { timeZone: 'Europe/Vienna' }
    expect(await accept('tele/cellar/SENSOR', { ...bridge, source })).toMatchObject([
      200,
      { name: 'tele/{device}/SENSOR', mapping: { source: { fields: 'auto', timeZone: 'Europe/Vienna' } } },
    ])
    await publish('tele/attic/SENSOR', local)
    expect(await observationOf('attic:DS18B20.Temperature')).toMatchObject({
      observedAt: '2026-03-01T10:14:52Z',
    })
  })

  it('keeps the pattern of a recognized firmware when options are given in the first request', async () => {
    await start()
    await publish('tele/cellar/SENSOR', local)
    expect(await accept('tele/cellar/SENSOR', { source: { timeZone: 'Europe/Vienna' } })).toMatchObject([
      200,
      { name: 'tele/{device}/SENSOR', released: 1 },
    ])
    expect(await observationOf('cellar:DS18B20.Temperature')).toMatchObject({
      observedAt: '2026-03-01T10:14:52Z',
    })
  })

  it('gives one topic of a pattern a device of its own', async () => {
    await start()
    await accept('tele/{device}/SENSOR', { bridge: 'json' })
    const source = { deviceName: 'boiler' }
    expect(await accept('tele/a/SENSOR', { source })).toMatchObject([200, { name: 'tele/a/SENSOR' }])
    for (const topic of ['tele/a/SENSOR', 'tele/b/SENSOR']) await publish(topic, local)
    for (const device of ['boiler', 'b'])
      expect(await observationOf(`${device}:DS18B20.Temperature`)).toBeDefined()
  })

  it('is shown by its topic, and withdrawn by the name of its pattern', async () => {
    await start()
    await publish('tele/cellar/SENSOR', local)
    await accept('tele/cellar/SENSOR')
    expect(await show('tele/cellar/SENSOR')).toMatchObject([
      200,
      { choices: [{ name: 'tele/{device}/SENSOR' }] },
    ])
    expect(await forget('tele/cellar/SENSOR')).toEqual([404, containing('tele/{device}/SENSOR')])
    expect(await forget('tele/{device}/SENSOR')).toEqual([204, undefined])
  })

  it('is refused if no mapping is needed', async () => {
    await start()
    expect(await accept('senml/x')).toEqual([
      409,
      containing('the bridge senml reads the topic senml/x without a mapping'),
    ])
  })
})

describe('accepting a topic that cannot be mapped', () => {
  it('states the reason: never seen, ignored, unreadable, a wrong source', async () => {
    await start()
    expect(await accept('never/seen')).toEqual([400, containing('nothing was published on never/seen')])
    await gateway.ask('POST', `${at('cmnd/#')}/ignore`)
    expect(await accept('cmnd/a/POWER')).toEqual([409, containing('the decision cmnd/# ignores')])
    await publish('chatter/x', 'hello there, all of you')
    expect(await accept('chatter/x')).toEqual([400, containing('neither JSON nor a value')])
    const source = { deviceNam: 'a', fields: 'auto' }
    for (const name of ['never/seen', 'chatter/x'])
      expect(await accept(name, { source })).toEqual([
        400,
        containing('deviceNam: expected one of topic, device'),
      ])
  })

  it('is not possible when the only value so far is invalid', async () => {
    await start()
    await publish('home/hall/temperature', 'nan')
    expect(await accept('home/hall/temperature')).toMatchObject([
      200,
      { mapping: { source: { deviceName: 'hall' } } },
    ])
    await publish('home/hall/temperature', '21.5')
    expect(await observationOf('hall:temperature')).toMatchObject({ value: 21.5 })
  })
})

it('reads the times of the examples in the guide', async () => {
  await start()
  const source = { timeZone: 'Europe/Vienna' }
  await accept('plant/{device}/env', { bridge: 'json', source })
  await publish('plant/p1/env', { time: '2026-03-01T18:19:00', t: 21.3 })
  expect(await observationOf('p1:t')).toMatchObject({ value: 21.3, observedAt: '2026-03-01T17:19:00Z' })
  const columns = ['time', 't', 'h']
  await accept('logger/a', { source: { deviceName: 'a', timeZone: '+01:00', columns } })
  await publish('logger/a', '2026-03-01 18:19:00;21,5;40')
  expect(await observationOf('a:t')).toMatchObject({ value: 21.5, observedAt: '2026-03-01T17:19:00Z' })
  await publish('logger/b', 'time,temperature,humidity\n2026-03-01T17:19:00Z,22,41')
  await accept('logger/b')
  expect(await observationOf('b:temperature')).toMatchObject({
    value: 22,
    observedAt: '2026-03-01T17:19:00Z',
  })
})
