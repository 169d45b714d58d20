/**
 * Streams whose data is at a real Mosquitto: each message is counted once, whichever process is killed or
 * restarted in between.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createMosquitto, run } from '#test/kit/mosquitto.ts'
import type { PeerServer } from '#test/kit/peer-server.ts'
import { describePeer } from '#test/kit/peers.ts'
import { patience, sourceSite, streamAt } from './source-site.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const own = 'urn:selvedge:ns:'
const format = 'http://purl.org/dc/terms/format'

describePeer('mosquitto', 'streams with MQTT sources', (path) => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-mqtt-'))
  const site = sourceSite(join(folder, 'data'))
  let mosquitto: PeerServer
  const address = () => `mqtt://127.0.0.1:${mosquitto.port}`
  const publish = (topic: string, messages: readonly (string | number)[], ...more: string[]) =>
    run(
      'mosquitto_pub',
      ['-p', String(mosquitto.port), '-q', '1', '-t', topic, '-l', ...more],
      messages.join('\n'),
    )
  const counted = (name: string, count: number) => expect.poll(() => site.count(name), patience).toBe(count)
  const repeat = (count: number, message: string | number = 20) =>
    Array.from({ length: count }, () => message)

  beforeAll(async () => {
    mosquitto = await createMosquitto(path)
    await mosquitto.start()
    await site.start()
    await site.create([
      ...streamAt('plain', address(), { [`${own}topic`]: 'plant/plain' }),
      ...streamAt('json', address(), { [`${own}topic`]: 'plant/+/json', [`${own}field`]: 'humidity' }),
      ...streamAt('dev:temp', `${address()}/plant/senml`, { [format]: 'application/senml+json' }),
      ...streamAt('elsewhere', 'mqtt://broker.example', { [`${own}topic`]: 'x' }),
      ...streamAt('wrong', 'mqtt://user:secret@127.0.0.1', { [`${own}topic`]: 'x' }),
    ])
    await site.connected(address())
  })
  afterAll(async () => {
    await site.gateway().stop()
    await mosquitto.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('counts numbers, fields of JSON, and readings that a firmware bridge decodes', async () => {
    const begin = Date.now() - 100_000
    await publish('plant/plain', [20, 21, 99])
    const records = [0, 1, 2].map((i) =>
      JSON.stringify({ humidity: i, battery: 3, time: new Date(begin + i * 30_000).toISOString() }),
    )
    await publish('plant/7/json', records)
    const pack = (time: number) =>
      JSON.stringify([
        { bn: 'dev:', bt: time / 1000, n: 'temp', v: 20, u: 'Cel' },
        { n: 'temp', t: 10, v: 21, u: 'Cel' },
        { n: 'hum', v: 40, u: '%RH' },
      ])
    await publish('plant/senml', [pack(begin), pack(begin + 20_000)])
    await counted('plain', 3)
    await counted('json', 3)
    await counted('dev:temp', 4)
    await expect
      .poll(async () => (await site.quality('plain'))[`${qoi}plausibility`], patience)
      .toMatchObject({ [`${qoi}hasAbsoluteValue`]: { value: 0 }, [`${qoi}hasRatedValue`]: { value: 0.6 } })
    const json = await site.quality('json')
    expect(json[`${qoi}frequency`]).toMatchObject({
      [`${qoi}hasAbsoluteValue`]: { value: 30, unitCode: 'SEC' },
    })
  })

  it('reports what it does not follow, and why', async () => {
    await expect.poll(() => site.sources(), patience).toHaveLength(3)
    const sources = await site.sources()
    expect(sources).toContainEqual({
      source: 'mqtt://broker.example:1883',
      state: 'refused',
      reason: 'quality.sources.hosts does not allow this broker',
      streams: 1,
    })
    expect(sources).toContainEqual(
      expect.objectContaining({
        source: 'urn:ngsi-ld:IotStream:wrong',
        reason: 'the endpoint contains credentials; they belong in quality.sources.hosts',
      }),
    )
    expect(sources).toContainEqual(
      expect.objectContaining({
        source: address(),
        state: 'connected',
        streams: 3,
        places: 3,
        unreadable: 0,
      }),
    )
    const refusals = site
      .gateway()
      .logLines()
      .filter(({ event }) => event === 'quality.source-refused')
    expect(refusals).toHaveLength(2)
    expect(site.gateway().output()).not.toContain('secret')
  })

  it('counts what arrived while it was away, and through a restart of the broker', async () => {
    // Its records are not saved yet when the gateway is killed.
    await site.create(streamAt('new', address(), { [`${own}topic`]: 'plant/new' }))
    await expect
      .poll(() => site.sources(), patience)
      .toContainEqual(expect.objectContaining({ source: address(), places: 4 }))
    await publish('plant/new', repeat(2))
    await counted('new', 2)
    await site.gateway().kill()
    await publish('plant/plain', repeat(40))
    await mosquitto.kill()
    await mosquitto.start()
    await publish('plant/plain', repeat(40))
    await site.start()
    await counted('plain', 83)
    await counted('new', 2)
    await mosquitto.kill()
    await mosquitto.start()
    await site.connected(address())
    await publish('plant/plain', repeat(7))
    await counted('plain', 90)
  })

  it('counts a message once that was stored and not acknowledged when it was killed', async () => {
    await site.gateway().stop()
    await site.start('quality:stored=kill')
    await publish('plant/plain', repeat(30))
    await site.gateway().exited
    await site.start()
    await counted('plain', 120)
    await expect
      .poll(() => site.sources(), patience)
      .toContainEqual(
        expect.objectContaining({ source: address(), repeated: expect.toSatisfy((n) => n > 0) }),
      )
    await publish('plant/plain', repeat(1))
    await counted('plain', 121)
  })

  it('counts a stream here and no longer at its source once it has an observation entity', async () => {
    await site.create([
      {
        id: 'urn:ngsi-ld:StreamObservation:plain',
        type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation',
        'http://purl.org/iot/ontology/iot-stream#belongsTo': {
          type: 'Relationship',
          object: 'urn:ngsi-ld:IotStream:plain',
        },
      },
    ])
    await expect
      .poll(() => site.sources(), patience)
      .toContainEqual(expect.objectContaining({ source: address(), streams: 3, places: 3 }))
    await publish('plant/plain', repeat(3))
    await publish('plant/8/json', ['{"humidity": 3}'])
    await counted('json', 4)
    expect(await site.count('plain')).toBe(121)
  })
})
