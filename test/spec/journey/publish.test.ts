/**
 * The main job: a value that a device publishes with its own tools is readable in the very next request, and a
 * subscriber is told. Real mosquitto_pub, real process, real sockets.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { describePeer } from '#test/kit/peers.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { notifications, result, streamObservation, subscribe } from './observations.ts'

const run = promisify(execFile)

describePeer('mosquitto_pub', 'a value published by mosquitto_pub at QoS 1', (mosquittoPub) => {
  let gateway: GatewayProcess
  let client: HttpClient
  let receiver: Receiver
  const publish = (payload: string) =>
    run(mosquittoPub, ['-p', String(gateway.mqttPort), '-q', '1', '-t', 'senml/greenhouse', '-m', payload])
  const observations = async (): Promise<Record<string, unknown>[]> =>
    (await client.get(`/ngsi-ld/v1/entities?type=${encodeURIComponent(streamObservation)}`)).json()

  beforeAll(async () => {
    gateway = await startGatewayProcess()
    client = httpClient(gateway.httpUrl)
    receiver = await createReceiver()
    await subscribe(client, receiver.url())
  })
  afterAll(async () => {
    await gateway.stop()
    await receiver.down()
  })

  it('is readable in the next request, and the subscriber is told', async () => {
    await publish('[{"bn":"greenhouse:","n":"temperature","u":"Cel","v":21.5,"t":1700000000}]')
    expect(await observations()).toEqual([
      expect.objectContaining({
        id: 'urn:ngsi-ld:StreamObservation:greenhouse:temperature',
        [result]: expect.objectContaining({
          type: 'Property',
          value: 21.5,
          unitCode: 'CEL',
          observedAt: '2023-11-14T22:13:20Z',
        }),
      }),
    ])
    await vi.waitFor(() =>
      expect(notifications(receiver.taken())).toEqual([[21.5, 'greenhouse:temperature']]),
    )
  })

  it('is readable each time, the first as well as the twentieth', async () => {
    for (let value = 1; value <= 20; value++) {
      await publish(
        `[{"bn":"greenhouse:","n":"humidity","u":"%RH","v":${value},"t":${1_700_000_000 + value}}]`,
      )
      const humidity = (await observations()).find(({ id }) => String(id).endsWith(':humidity'))
      expect(humidity?.[result]).toMatchObject({ value })
    }
    const told = () => notifications(receiver.taken()).filter(([, name]) => name === 'greenhouse:humidity')
    await vi.waitFor(() => expect(told()).toHaveLength(20))
    expect(told().map(([value]) => value)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  })

  it('has made one device of sensors, streams and properties', async () => {
    const ids = async (type: string): Promise<string[]> => {
      const answer = await client.get(`/ngsi-ld/v1/entities?type=${encodeURIComponent(type)}`)
      return (answer.json() as { id: string }[]).map(({ id }) => id)
    }
    expect(await ids('http://www.w3.org/ns/sosa/Platform')).toEqual(['urn:ngsi-ld:Platform:greenhouse'])
    expect(await ids('http://www.w3.org/ns/sosa/Sensor')).toEqual([
      'urn:ngsi-ld:Sensor:greenhouse:temperature',
      'urn:ngsi-ld:Sensor:greenhouse:humidity',
    ])
    expect(await ids('http://purl.org/iot/ontology/iot-stream#IotStream')).toHaveLength(2)
    expect(await ids('http://www.w3.org/ns/sosa/ObservableProperty')).toHaveLength(2)
  })
})
