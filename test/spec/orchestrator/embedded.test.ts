/**
 * Notifications of a gateway without an AMQP server: by MQTT, and as a stream for each client that survives a
 * restart of the gateway.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-orchestrator-embedded-'))
const env = { SELVEDGE_MQTT_PORT: '0' }
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const entity = 'urn:ngsi-ld:Tank:1'
let gateway: GatewayInside

const as = (client: string) => ({ 'Content-Type': 'application/json', 'Selvedge-Client': client })
const write = async (level: number): Promise<void> => {
  const body = { level: { type: 'Property', value: level } }
  expect((await gateway.send('POST', `/ngsi-ld/v1/entities/${entity}/attrs`, body)).status).toBe(204)
}
const subscribe = async (client: string): Promise<string> => {
  const body = { type: 'Subscription', entities: [{ id: entity, type: 'Tank' }] }
  const answer = await gateway.ask('POST', path, { body, headers: as(client) })
  expect(answer.status).toBe(200)
  return answer.text
}
const levelOf = (notification: string): unknown =>
  (JSON.parse(notification) as { data: [Readonly<Record<string, { value: unknown }>>] }).data
    .flatMap((one) => Object.entries(one))
    .find(([name]) => name.endsWith('level'))?.[1].value

beforeAll(async () => {
  gateway = await startGatewayInside(folder, env)
  const level = { type: 'Property', value: 0 }
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id: entity, type: 'Tank', level })
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

it('publishes to the MQTT topic of the subscription', async () => {
  const id = await subscribe('mqtt')
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
  const levels: unknown[] = []
  client.on('message', (topic, payload) => levels.push([topic, levelOf(payload.toString())]))
  await client.subscribeAsync(`notifications/${id}`, { qos: 1 })
  await write(1)
  await expect.poll(() => levels, patience).toEqual([[`notifications/${id}`, 1]])
  await client.endAsync()
  expect((await gateway.ask('DELETE', `${path}/${id}`, { headers: as('mqtt') })).status).toBe(204)
})

it('streams to each client what it has not confirmed, also after a restart', async () => {
  const id = await subscribe('a')
  await subscribe('b')
  await write(2)
  await write(3)
  const first = await events(id, 'a', 2)
  expect(first.map(({ level }) => level)).toEqual([2, 3])
  const until = first[0]!.id
  expect(
    (await gateway.ask('DELETE', `${path}/${id}/notifications?until=${until}`, { headers: as('a') })).status,
  ).toBe(204)
  await gateway.close()
  gateway = await startGatewayInside(folder, env)
  expect((await events(id, 'a', 1)).map(({ level }) => level)).toEqual([3])
  expect(
    (await gateway.get(`${path}/${id}/notifications`, { Accept: 'text/event-stream', ...as('c') })).status,
  ).toBe(404)
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}${path}/${id}/notifications`, {
    headers: as('b'),
  })
  const received: { id: string; notification: object }[] = []
  socket.on('message', (data: Buffer) => received.push(JSON.parse(data.toString()) as (typeof received)[0]))
  await expect
    .poll(() => received.map(({ notification }) => levelOf(JSON.stringify(notification))), patience)
    .toEqual([2, 3])
  socket.send(JSON.stringify({ confirmed: received[1]!.id }))
  await write(4)
  await expect.poll(() => received.length, patience).toBe(3)
  socket.close()
  await once(socket, 'close')
  const after = await events(id, 'b', 1)
  expect(after.map(({ level }) => level)).toEqual([4])
})

/** The first events of the stream of a client. */
async function events(id: string, client: string, count: number): Promise<{ id: string; level: unknown }[]> {
  const abort = new AbortController()
  const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}/${id}/notifications`, {
    headers: { ...as(client), Accept: 'text/event-stream' },
    signal: abort.signal,
  })
  expect(answer.status).toBe(200)
  let text = ''
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const found = [...text.matchAll(/id: (\d+)\nevent: notification\ndata: (.*)\n\n/g)]
    if (found.length >= count) {
      abort.abort()
      return found.map(([, event, data]) => ({ id: event!, level: levelOf(data!) }))
    }
  }
  expect.unreachable('the stream ended')
}
