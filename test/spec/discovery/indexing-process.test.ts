/**
 * The index in a real process: it sees observations that devices publish, survives a kill and disk errors,
 * and `selvedge index` rebuilds it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { failingDiskObstacle, makeFailingDisk } from '#test/kit/failing-disk.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { describeAllowed } from '#test/kit/peers.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'
import { sensor } from './site.ts'

let folder: string
let gateway: GatewayProcess
let client: HttpClient
const within = { interval: 50 }

const begin = async (): Promise<void> => {
  gateway = await startGatewayProcess({ dataFolder: join(folder, 'data') })
  client = httpClient(gateway.httpUrl)
  await vi.waitFor(async () => {
    const answer = await client.get('/indexing/api/health')
    expect((answer.json() as { position: number | null }).position).not.toBeNull()
  }, within)
}
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-indexing-'))
  await begin()
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const send = async (seconds: number): Promise<void> => {
  const sent = await client.ask('POST', '/senml', {
    headers: { 'Content-Type': 'application/senml+json' },
    body: [{ bn: 'boiler:', n: 'pressure', u: 'Pa', v: seconds % 100, t: seconds }],
  })
  expect(sent.status).toBe(204)
}
const isoOf = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** Streams that were seen after a time. */
async function seenAfter(seconds: number, type = 'IotStream'): Promise<string[]> {
  const query = new URLSearchParams({ type, timerel: 'after', timeAt: isoOf(seconds) })
  const answer = await client.get(`/indexing/ngsi-ld/v1/entities?${query}`, {
    'Selvedge-Index-Position': 'latest',
  })
  expect([answer.status, answer.headers['selvedge-answered-by']]).toEqual([200, 'index'])
  return (answer.json() as { id: string }[]).map(({ id }) => id)
}

it('lists its operations at its root', async () => {
  const answer = await client.get('/indexing/')
  expect([answer.status, answer.json()]).toMatchObject([
    200,
    {
      title: 'Indexing',
      openapi: 'openapi.json',
      operations: { 'GET api/broker': 'List the indexed brokers' },
    },
  ])
  const wrong = await client.ask('POST', '/indexing/')
  expect([wrong.status, wrong.headers['allow']]).toEqual([405, 'GET'])
})

it('records when a stream was last seen, from its values', async () => {
  const start = 1_750_000_000
  for (const at of [0, 10, 20]) await send(start + at)
  expect(await seenAfter(start + 19)).toEqual(['urn:ngsi-ld:IotStream:boiler:pressure'])
  expect(await seenAfter(start + 19, 'Sensor')).toEqual(['urn:ngsi-ld:Sensor:boiler:pressure'])
  expect(await seenAfter(start + 20)).toEqual([])
  await send(start + 30)
  expect(await seenAfter(start + 20)).toHaveLength(1)
})

it('keeps last-seen times after a kill', async () => {
  const start = 1_750_001_000
  await send(start)
  expect(await seenAfter(start - 1)).toHaveLength(1)
  await gateway.kill('SIGKILL')
  await begin()
  expect(await seenAfter(start - 1)).toHaveLength(1)
  expect(await seenAfter(start)).toEqual([])
})

it('is rebuilt by a command that returns when it is finished', async () => {
  const url = ['--url', gateway.httpUrl]
  const done = await runSelvedge(['index', 'rebuild', ...url, '--json'], { cwd: folder })
  expect([done.code, done.stderr]).toEqual([0, ''])
  const status = JSON.parse(done.stdout) as { position: number; brokers: { entities: object }[] }
  expect(status.brokers[0]!.entities).toMatchObject({ stream: 1, sensor: 1, platform: 1, observation: 1 })
  expect(await seenAfter(1_750_000_999)).toHaveLength(1)
  const output = await runSelvedge(['index', 'status', ...url], { cwd: folder })
  expect(output.stdout).toContain('following; stream 1, sensor 1')
  const wrong = await runSelvedge(['index', 'rebild', ...url], { cwd: folder })
  expect([wrong.code, wrong.stderr]).toEqual([64, expect.stringContaining('rebuild')])
})

describeAllowed(failingDiskObstacle(), 'a disk that fails while the index writes', () => {
  it('delays the index, and nothing is missing afterwards', async () => {
    const disk = makeFailingDisk('indexing.db')
    const site = await startGatewayProcess({ env: disk.env })
    const other = httpClient(site.httpUrl)
    const create = async (i: number): Promise<void> =>
      expect((await other.send('POST', '/ngsi-ld/v1/entities', sensor(i, [8, 50]))).status).toBe(201)
    const query = '/indexing/ngsi-ld/v1/entities?type=Sensor&georel=near;maxDistance==9'
    const find = (headers = {}) => other.get(`${query}&geometry=Point&coordinates=[8,50]`, headers)
    const found = async (headers = {}): Promise<number> => ((await find(headers)).json() as object[]).length
    try {
      await create(1)
      await vi.waitFor(async () => expect(await found()).toBe(1), within)
      disk.fail()
      await create(2)
      await site.event('indexing.disk')
      // The index takes back entries that are not on disk; the broker may respond until it has them again.
      expect((await find()).status).toBe(200)
      disk.heal()
      await create(3)
      await vi.waitFor(
        async () => expect(await found({ 'Selvedge-Index-Position': 'latest' })).toBe(3),
        within,
      )
    } finally {
      await site.stop()
      disk.remove()
    }
  })
})
