/** States of the platform and the requests and findings that change them. */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { stickFor } from './faulty-sensor.ts'
import { prove } from './prove.ts'

let gateway: GatewayProcess
let client: HttpClient
const patience = 60_000
const state = 'urn:selvedge:ns:state'

beforeAll(async () => {
  gateway = await startGatewayProcess({ env: { SELVEDGE_MQTT_PORT: 'off', SELVEDGE_FAULTS_ENABLED: 'true' } })
  client = httpClient(gateway.httpUrl)
  // Values that are sent before are learned as history.
  await gateway.event('faults.read')
})
afterAll(() => gateway.stop())

const stateOf = async (stream: string): Promise<unknown> =>
  ((await client.get(`/ngsi-ld/v1/entities/${stream}`)).json() as Record<string, { value: unknown }>)[state]
    ?.value

async function request(action: string, device: string): Promise<Record<string, unknown>> {
  const answer = await client.get(`/faults/api/${action}?sensorID=urn:ngsi-ld:Sensor:${device}:temperature`)
  expect(answer.status).toBe(200)
  return (answer.json() as { data: Record<string, unknown> }).data
}

prove('States', {
  async faultsStopped() {
    const stream = await stickFor(client, 'stopped')
    await vi.waitFor(async () => expect(await stateOf(stream)).toBe('fault'), patience)
    expect(await request('stopFaultDetection', 'stopped')).toMatchObject({ state: 'stopped' })
    await vi.waitFor(async () => expect(await stateOf(stream)).toBe('stopped'), patience)
  },

  async faultsRunning() {
    const stream = await stickFor(client, 'restarted')
    await vi.waitFor(async () => expect(await stateOf(stream)).toBe('fault'), patience)
    for (const action of ['stopFaultDetection', 'restartFaultDetection', 'restartFaultDetection'])
      await request(action, 'restarted')
    await vi.waitFor(
      async () =>
        expect(await request('status', 'restarted')).toMatchObject({
          state: expect.not.stringContaining('stopped') as string,
          method: 'dirichlet-process',
        }),
      patience,
    )
  },

  async definiteFault() {
    const stream = await stickFor(client, 'definite')
    await vi.waitFor(async () => expect(await stateOf(stream)).toBe('fault'), patience)
  },
})
