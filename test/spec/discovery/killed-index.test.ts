/**
 * An index killed during a full read of a registered broker: the next start completes the read, and no
 * subscription is duplicated.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { iri, sensor, stream } from './site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-killed-'))
const patience = { interval: 200 }
const clientOf = ({ httpUrl }: GatewayProcess): HttpClient => httpClient(httpUrl)

let broker: GatewayProcess
let index: GatewayProcess

const startIndex = (pagesPerSecond: string): Promise<GatewayProcess> =>
  startGatewayProcess({
    dataFolder: join(folder, 'index'),
    env: { SELVEDGE_MQTT_PORT: 'off', SELVEDGE_INDEXING_PAGES_PER_SECOND: pagesPerSecond },
  })

beforeAll(async () => {
  ;[broker, index] = await Promise.all([
    startGatewayProcess({
      dataFolder: join(folder, 'broker'),
      env: {
        SELVEDGE_MQTT_PORT: 'off',
        SELVEDGE_INDEXING_ENABLED: 'false',
        SELVEDGE_RANKING_ENABLED: 'false',
      },
    }),
    startIndex('0.5'),
  ])
  const entities = Array.from({ length: 200 }, (_, i) => [stream(i), sensor(i, [8, 50])]).flat()
  const made = await clientOf(broker).send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
  expect(made.status).toBe(201)
})
afterAll(async () => {
  await Promise.all([broker.stop(), index.stop()])
  rmSync(folder, { recursive: true, force: true })
})

const state = async (): Promise<unknown> => {
  const answer = await clientOf(index).get('/indexing/api/broker')
  const { result } = answer.json() as { result: { host: string; state: string }[] }
  return result.find(({ host }) => host === broker.httpUrl)?.state
}
const idsAt = async (client: HttpClient, prefix: string): Promise<Set<string>> => {
  const answer = await client.get(
    `${prefix}/ngsi-ld/v1/entities?type=${encodeURIComponent(iri.Sensor)}&limit=1000`,
  )
  return new Set((answer.json() as { id: string }[]).map(({ id }) => id))
}

it('is read again after a kill', async () => {
  await vi.waitFor(async () => {
    const answer = await clientOf(index).send('POST', '/indexing/api/broker', { host: broker.httpUrl })
    expect(answer.status).toBe(201)
  }, patience)
  await vi.waitFor(async () => expect(await state()).toBe('loading'), patience)
  await index.kill()
  index = await startIndex('50')
  await vi.waitFor(async () => expect(await state()).toBe('following'), patience)
  const there = await idsAt(clientOf(broker), '')
  expect(there.size).toBe(200)
  expect(await idsAt(clientOf(index), '/indexing')).toEqual(there)
  const subscriptions = await clientOf(broker).get('/ngsi-ld/v1/subscriptions?limit=100')
  expect(subscriptions.json()).toHaveLength(6)
})
