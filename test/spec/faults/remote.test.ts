/**
 * Fault detection of one gateway watches the streams of another over HTTP alone: what exists, what is reported,
 * and what was missed while it was killed.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createFaultSite, patience, streamId, yesterday } from './stuck-site.ts'

/** Holds the streams, and does not judge them. */
const site = createFaultSite({ SELVEDGE_FAULTS_ENABLED: 'false', SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true' })
let detector: GatewayProcess
/** The first start finds a free port, and later ones keep it. */
let port = 0

async function startDetector(): Promise<void> {
  detector = await startGatewayProcess({
    ...(port === 0 ? {} : { dataFolder: detector.dataFolder }),
    env: {
      NGSI_ADDRESS: site.gateway().httpUrl,
      SELVEDGE_FAULTS_ENABLED: 'true',
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_HTTP_PORT: String(port),
      SELVEDGE_LIMITS: 'followCheckMs=500',
    },
  })
  port = detector.httpPort
}

const minute = 60_000
const begin = yesterday()
const varying = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [begin + (from + i) * minute, 20 + ((from + i) % 7)] as const)
const equal = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [begin + (from + i) * minute, 25.5] as const)

beforeAll(async () => {
  await site.start()
  await site.publish('a', varying(0, 120))
  await startDetector()
})
afterAll(async () => {
  await detector?.stop()
  await site.end()
})

it('subscribes at the other broker, with a secret in each callback', async () => {
  await vi.waitFor(async () => {
    const answer = await site.client().get('/ngsi-ld/v1/subscriptions?limit=100')
    const all = answer.json() as { id: string; notification: { endpoint: { uri: string } } }[]
    const uris = all
      .filter(({ id }) => id.includes(':FD_'))
      .map(({ notification }) => notification.endpoint.uri)
    expect(uris).toHaveLength(6)
    for (const uri of uris) expect(uri).toMatch(/\/faults\/monitoring\/callback\/\w+\/[0-9a-f]{40}$/)
  }, patience)
  const here = httpClient(detector.httpUrl)
  const wrong = await here.send('POST', '/faults/monitoring/callback/sensor/0123', [])
  expect(wrong.status).toBe(401)
})

it('writes the fault of a stuck sensor to the other broker', async () => {
  await vi.waitFor(async () => expect(await site.state('a')).toBe('normal'), patience)
  await site.publish('a', equal(120, 9))
  await vi.waitFor(async () => expect(await site.state('a')).toBe('fault'), patience)
  expect((await site.faults('a')).map(({ id }) => id)).toEqual([
    `urn:ngsi-ld:Fault:a:temperature:${begin + 120 * minute}`,
  ])
  expect(await site.verdict('a')).toBe('faulty')
})

it('judges what it missed while it was killed', async () => {
  await detector.kill()
  await site.publish('a', varying(129, 200))
  await startDetector()
  await vi.waitFor(async () => expect(await site.state('a')).toBe('normal'), patience)
  const faults = await site.faults('a')
  const stuck = faults.filter((one) => one['urn:selvedge:ns:class']!['value'] === 'stuck')
  expect(stuck.map((one) => one['urn:selvedge:ns:stream']!['object'])).toEqual([streamId('a')])
  expect(stuck[0]).toHaveProperty(['urn:selvedge:ns:end'])
})
