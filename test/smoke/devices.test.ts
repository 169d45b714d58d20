/** From a real device to a value: mosquitto_pub, a gateway process, and `selvedge devices`. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { describePeer } from '#test/kit/peers.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const run = promisify(execFile)

/** Published payloads of devices, and the resulting channel, value and unit. */
const firmware: readonly (readonly [
  topic: string,
  payload: string,
  channel: string,
  value: unknown,
  unit?: string,
])[] = [
  [
    'tele/cellar/SENSOR',
    '{"Time":"2026-11-22T14:52:00","DS18B20":{"Id":"0316","Temperature":20.6},"TempUnit":"C"}',
    ...(['cellar:DS18B20.Temperature', 20.6, 'CEL'] as const),
  ],
  [
    'shellyplus1pm-a1/events/rpc',
    '{"src":"shellyplus1pm-a1","dst":"x","method":"NotifyStatus","params":{"ts":1763000000.5,"switch:0":{"id":0,"apower":8.9}}}',
    ...(['shellyplus1pm-a1:switch%3A0.apower', 8.9, 'WTT'] as const),
  ],
  ['shellies/shellyplug-1/relay/0', 'on', 'shellyplug-1:relay.0', true],
  ['zigbee2mqtt/kitchen', '{"battery":97,"linkquality":120}', 'kitchen:battery', 97, 'P1'],
  [
    'v3/farm@ttn/devices/soil-1/up',
    '{"end_device_ids":{"device_id":"soil-1"},"uplink_message":{"decoded_payload":{"BatV":3.31},"received_at":"2025-11-22T13:13:52.918273645Z"}}',
    ...(['soil-1:BatV', 3.31, 'VLT'] as const),
  ],
  ['logger', '21.5;40.2', 'logger:column2', 40.2],
  ['home/hall/temperature', '21.5', 'hall:temperature', 21.5],
  ['home/attic', 'temperature 19.5 °C', 'attic:temperature', 19.5, 'CEL'],
]

describePeer('mosquitto_pub', 'a device that publishes as its firmware does', (mosquittoPub) => {
  let gateway: GatewayProcess
  let client: HttpClient
  const devices = (...args: string[]) =>
    runSelvedge(['devices', ...args, '--url', gateway.httpUrl], {
      env: { SELVEDGE_DATA: gateway.dataFolder },
    })
  const publish = (topic: string, payload: string) =>
    run(mosquittoPub, ['-p', String(gateway.mqttPort), '-q', '1', '-t', topic, '-m', payload])

  beforeAll(async () => {
    gateway = await startGatewayProcess()
    client = httpClient(gateway.httpUrl)
    for (const [topic, payload] of firmware) await publish(topic, payload)
    await publish('evil', '\u009b2J\u202e')
  })
  afterAll(() => gateway.stop())

  it('is listed with the bridge that could read it, and logged', async () => {
    const { code, stdout } = await devices('ls')
    expect(code).toBe(0)
    for (const [topic] of firmware) {
      expect(stdout).toContain(`  ${topic}  1 frame, last `)
      expect(gateway.output()).toContain(`"event":"intake.unclaimed","topic":"${topic}"`)
    }
    expect(stdout.match(/the bridge json could read it/g)).toHaveLength(firmware.length)
    expect(stdout).toContain('\\u{9b}2J\\u{202e}')
  })

  it('has a value once its topic is accepted', async () => {
    const [[first], ...others] = firmware as typeof firmware & [(typeof firmware)[0]]
    const { stdout } = await devices('accept', first)
    expect(stdout).toBe('mapped topic tele/{device}/SENSOR to the bridge json; 1 held frame stored\n')
    for (const [topic] of others) {
      const path = `/selvedge/v1/devices/${encodeURIComponent(topic)}/accept`
      expect((await client.ask('POST', path)).json()).toMatchObject({ kind: 'topic', released: 1 })
    }
    for (const [, , channel, value, unitCode] of firmware) {
      const reply = await client.get(`/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${channel}`)
      expect([reply.status, reply.json()]).toEqual([
        200,
        expect.objectContaining({
          'http://www.w3.org/ns/sosa/hasSimpleResult': expect.objectContaining({
            value,
            ...(unitCode !== undefined && { unitCode }),
          }) as unknown,
        }),
      ])
    }
  })

  it('has the time of its payload, in its zone', async () => {
    const { stdout } = await devices(
      'accept',
      'plant/{device}/env',
      '--bridge',
      'json',
      '--time-zone',
      'Europe/Vienna',
    )
    expect(stdout).toMatch(
      /^mapped topic plant\/\{device\}\/env to the bridge json; 0 held frames stored\n {2}Europe\/Vienna applies to times/,
    )
    await publish('plant/p1/env', '{"time":"2026-03-01T18:19:00","t":21.3}')
    const reply = await client.get(
      '/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:p1:t?options=keyValues',
    )
    expect(reply.json()).toMatchObject({ 'http://www.w3.org/ns/sosa/resultTime': '2026-03-01T17:19:00Z' })
  })

  it('is rejected with a message that says what would be right', async () => {
    const wrong = async (...args: string[]) => {
      const { code, stderr } = await devices(...args)
      return [code, stderr.split('\n')[0]]
    }
    expect(await wrong('accept')).toEqual([64, 'selvedge devices: accept needs a device or topic'])
    expect(await wrong('lst')).toEqual([64, 'selvedge devices: unknown action lst; did you mean ls?'])
    expect(await wrong('accept', 'evil', '--field-map', 'x')).toEqual([
      64,
      'selvedge devices: --field-map expects PATH=NAME or PATH=NAME:UNIT, got x',
    ])
    const refused = async (...args: string[]) => (await devices(...args)).stderr
    expect((await wrong('show', 'unknown'))[0]).toBe(1)
    expect(await refused('accept', 'evil')).toMatch(
      /^selvedge devices: evil failed with status .* with --bridge and --source\n$/,
    )
    expect(await refused('accept', 'attic/hall/humidity')).toMatch(/or set its --bridge and --device\n$/)
    await publish('attic/hall/temperature', '21.5')
    expect(await refused('accept', 'attic/hall/temperature')).toMatch(
      /device hall, which is already read from home\/hall\/temperature; set --device to another name, or to hall to merge them\n$/,
    )
  })
})
