/**
 * From readings to observations: accepted readings, their times, duplicates, and the learnt update interval.
 * The file uses one gateway; each test uses devices of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import type { Reply } from '#test/kit/http-gateway.ts'
import { connectRaw, publishPacket } from '#test/kit/mqtt.ts'

const qoi = (name: string): string => `https://w3id.org/iot/qoi#${name}`
const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'
const noon = Date.UTC(2026, 2, 1, 12) / 1000
const json = JSON.stringify([
  {
    topic: 'site/{device}/telemetry',
    time: { path: 'meta.time', format: 'iso' },
    fields: [
      { path: 'env.temp', name: 'temperature', unit: '°C', scale: 0.1 },
      { path: 'raw[1]', name: 'count', invalid: [65535] },
    ],
  },
])

const folders: string[] = []
let gateway: GatewayInside

function folder(): string {
  folders.push(mkdtempSync(join(tmpdir(), 'selvedge-test-')))
  return folders.at(-1)!
}

beforeAll(async () => {
  gateway = await startGatewayInside(folder(), { SELVEDGE_MQTT_PORT: '0', SELVEDGE_BRIDGES_JSON: json })
})
afterAll(async () => {
  await gateway.close()
  for (const each of folders) rmSync(each, { recursive: true, force: true })
})

const push = (records: readonly object[]): Promise<Reply> =>
  gateway.ask('POST', '/senml', { body: records, headers: { 'Content-Type': 'application/senml+json' } })

async function publish(to: GatewayInside, topic: string, payload: unknown, retain = false): Promise<void> {
  const client = await connectRaw(to.mqttPort!, `readings-${topic}`)
  client.send(publishPacket(topic, JSON.stringify(payload), { qos: 1, retain, messageId: 1 }))
  expect(await client.next()).toMatchObject({ cmd: 'puback' })
  client.end()
}

async function entity(id: string, of = gateway): Promise<Record<string, Record<string, unknown>>> {
  return (await of.get(`/ngsi-ld/v1/entities/urn:ngsi-ld:${id}`)).json()
}

/** Value and time of each observation. */
async function history(name: string, of = gateway): Promise<[value: unknown, at: string][]> {
  const path = `/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:StreamObservation:${name}?options=temporalValues`
  const evolution = (await of.get(path)).json() as Record<string, { values: [unknown, string][] } | undefined>
  return evolution[result]?.values ?? []
}

describe('the time of a reading', () => {
  it('is that of the device, or relative to the reception, or the reception', async () => {
    const before = Date.now()
    await push([
      { bn: 'clock:', n: 'own', v: 1, t: noon },
      { n: 'ago', v: 1, t: -60 },
      { n: 'none', v: 1 },
    ])
    expect(await history('clock:own')).toEqual([[1, '2026-03-01T12:00:00Z']])
    const [[, ago] = []] = await history('clock:ago')
    const [[, none] = []] = await history('clock:none')
    expect(Date.parse(none!) - Date.parse(ago!)).toBe(60_000)
    expect(Date.parse(none!)).toBeGreaterThanOrEqual(before)
    const sources = await Promise.all(
      ['own', 'ago', 'none'].map((n) => entity(`StreamObservation:clock:${n}`)),
    )
    expect(sources.map((one) => one[result]!['urn:selvedge:ns:timeSource'])).toEqual(
      ['device', 'gateway', 'gateway'].map((value) => ({ type: 'Property', value })),
    )
  })

  it('must be between 2000 and tomorrow, otherwise the reading is refused by name', async () => {
    const tomorrow = Date.now() / 1000 + 86_400
    const early = await push([{ bn: 'window:', n: 't', v: 1, t: Date.UTC(1999, 11, 31) / 1000 }])
    expect([early.status, early.text]).toEqual([400, expect.stringMatching(/t: the time 1999.* outside/)])
    expect((await push([{ bn: 'window:', n: 't', v: 2, t: tomorrow + 60 }])).status).toBe(400)
    expect((await push([{ bn: 'window:', n: 't', v: 3, t: tomorrow - 60 }])).status).toBe(204)
    expect((await push([{ bn: 'window:', n: 't', v: 4, t: Date.UTC(2000, 0, 1) / 1000 }])).status).toBe(204)
    expect((await history('window:t')).map(([value]) => value)).toEqual([4, 3])
  })
})

describe('a repeat', () => {
  it('with a time counts once, however often and late it arrives', async () => {
    const records = [2, 0, 1].map((i) => ({ n: 'repeat:t', v: i, t: noon + i }))
    for (const pack of [records, records, [records[1]!]]) expect((await push(pack)).status).toBe(204)
    expect((await history('repeat:t')).map(([value]) => value)).toEqual([0, 1, 2])
    expect((await entity('StreamObservation:repeat:t'))[result]).toMatchObject({ value: 2 })
  })

  it('without a time counts once within a minute, and again when another value arrived in between', async () => {
    for (const v of [1, 1, 2, 2, 1, 1]) expect((await push([{ n: 'untimed:t', v }])).status).toBe(204)
    expect((await history('untimed:t')).map(([value]) => value)).toEqual([1, 2, 1])
  })
})

describe('a retained message', () => {
  it('is live when it is published, and only history when it is delivered as retained', async () => {
    await publish(gateway, 'senml/old', [{ bn: 'old:', n: 'untimed', v: 1 }], true)
    await publish(gateway, 'senml/older', [{ bn: 'old:', n: 'timed', v: 2, t: noon }], true)
    expect((await history('old:untimed')).map(([value]) => value)).toEqual([1])

    const url = `mqtt://127.0.0.1:${gateway.mqttPort}`
    const behind = await startGatewayInside(folder(), {
      SELVEDGE_BRIDGE_IN: JSON.stringify([{ url, topics: ['senml/#'] }]),
    })
    try {
      await expect.poll(() => history('old:timed', behind)).toEqual([[2, '2026-03-01T12:00:00Z']])
      await publish(gateway, 'senml/old', [{ bn: 'old:', n: 'untimed', v: 3 }])
      await expect.poll(() => history('old:untimed', behind)).toEqual([[3, expect.any(String)]])
      const service = await entity(`Service:old:${encodeURIComponent('senml/old')}`, behind)
      expect(service['http://purl.oclc.org/NET/UNIS/fiware/iot-lite#endpoint']).toMatchObject({ value: url })
    } finally {
      await behind.close()
    }
  })
})

describe('the update interval', () => {
  const interval = async (name: string) => (await entity(`Sensor:${name}`))[qoi('updateinterval')]
  const series = (n: string, times: readonly number[], more: object = {}) =>
    push(times.map((t, v) => ({ n, v, t: noon + t, ...more })))
  const regular = Array.from({ length: 20 }, (_, i) => i * 30)

  it('is unknown until the observations are regular, and then marked as learnt', async () => {
    await series('rhythm:t', regular.slice(0, 5))
    expect(await interval('rhythm:t')).toEqual({ type: 'Property', value: 'NA' })
    await series('rhythm:t', regular.slice(5))
    await expect
      .poll(() => interval('rhythm:t'))
      .toMatchObject({
        value: 30,
        [qoi('unit')]: { value: 'seconds' },
        'urn:selvedge:ns:basis': { value: 'learnt' },
      })
  })

  it('is the one that the device declares, and is never overwritten by a learnt one', async () => {
    await series('told:t', regular, { ut: 60 })
    expect(await interval('told:t')).toMatchObject({
      value: 60,
      'urn:selvedge:ns:basis': { value: 'declared' },
    })
  })

  it('stays unknown for irregular observations', async () => {
    await series(
      'whim:t',
      Array.from({ length: 40 }, (_, i) => i ** 3),
    )
    expect(await interval('whim:t')).toEqual({ type: 'Property', value: 'NA' })
  })
})

describe('a frame with many fields', () => {
  it('creates the entities of a device in one commit, however many fields are new', async () => {
    const hosts = 'http://www.w3.org/ns/sosa/hosts'
    const fields = (from: number, to: number, t: number) =>
      Array.from({ length: to - from }, (_, i) => ({ n: `wide:f${from + i}`, v: from + i, t }))
    const written = async () => {
      const path = '/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:Platform:wide?timeproperty=modifiedAt'
      const evolution = (await gateway.get(path)).json() as Record<string, { object: string[] }[]>
      return evolution[hosts]!.map(({ object }) => object.length)
    }
    expect((await push(fields(0, 200, noon))).status).toBe(204)
    expect(await written()).toEqual([200])
    expect((await push([...fields(150, 300, noon + 1), { n: 'other:f', v: 1 }])).status).toBe(204)
    expect(await written()).toEqual([200, 300])
    expect((await history('wide:f299')).map(([value]) => value)).toEqual([299])
    expect((await history('wide:f160')).map(([value]) => value)).toEqual([160, 160])
    expect((await history('other:f')).map(([value]) => value)).toEqual([1])
  })
})

describe('plain JSON', () => {
  it('becomes observations by the declared mapping, and values that do not fit are counted', async () => {
    const at = (time: string, more: object) =>
      publish(gateway, 'site/A1/telemetry', { meta: { time }, ...more })
    await at('2026-03-01T13:00:00+01:00', { env: { temp: '215' }, raw: [0, 7] })
    await at('2026-03-01T13:01:00+01:00', { env: { temp: 'nan' }, raw: [0, 65535] })
    await publish(gateway, 'site/A1/telemetry', 'no telemetry')
    expect(await history('A1:temperature')).toEqual([[21.5, '2026-03-01T12:00:00Z']])
    expect(await history('A1:count')).toEqual([[7, '2026-03-01T12:00:00Z']])
    expect((await entity('StreamObservation:A1:temperature'))[result]).toMatchObject({ unitCode: 'CEL' })
    const { text } = await gateway.get('/metrics')
    expect(text).toMatch(/^selvedge_frames_quarantined_total [2-9]$/m)
  })
})
