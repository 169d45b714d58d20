/** Counters of /metrics count each thing once: what one frame, request or notification adds to them, and nothing else. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { MetricName } from '#base/register/metrics.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-counters-'))
let gateway: GatewayInside
let client: MqttClient
let receiver: Receiver

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {
    SELVEDGE_MQTT_PORT: '0',
    SELVEDGE_BRIDGES_JSON: '[{"topic":"counted/{device}","fields":"auto"}]',
    ...noPlugins,
  })
  client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
  receiver = await createReceiver()
})
afterAll(async () => {
  await client.endAsync(true)
  await gateway.close()
  await receiver.down()
  rmSync(folder, { recursive: true })
})

const counted = [
  'selvedge_mqtt_publishes_total',
  'selvedge_frames_total',
  'selvedge_frames_unclaimed_total',
  'selvedge_frames_quarantined_total',
  'selvedge_readings_skipped_total',
  'selvedge_readings_rejected_total',
  'selvedge_observations_total',
  'selvedge_observations_late_total',
  'selvedge_observations_duplicate_total',
  'selvedge_commit_works_refused_total',
  'selvedge_deliveries_sent_total',
  'selvedge_deliveries_failed_total',
  'selvedge_backups_total',
  'selvedge_backups_failed_total',
] as const satisfies readonly MetricName[]
type Counts = Partial<Record<(typeof counted)[number], number>>

async function counts(): Promise<Counts> {
  const { text } = await gateway.get('/metrics')
  const countOf = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
  return Object.fromEntries(counted.map((name) => [name, countOf(name)]))
}

const start = Date.now() - 60_000
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString()
const publish = (topic: string, payload: object | string) => () =>
  client.publishAsync(topic, typeof payload === 'string' ? payload : JSON.stringify(payload), { qos: 1 })
const frame = (payload: object | string) => publish('counted/a', payload)
const patch = (name: string) => () =>
  gateway.send('PATCH', `/ngsi-ld/v1/entities/urn:x:${name}/attrs`, { v: { type: 'Property', value: 1 } })
/** A change that is notified; the receiver answers the first attempt with a status, and later ones with 204. */
const notify = (first: number) => () => {
  let status = first
  receiver.answer(() => {
    const answer = status
    status = 204
    return answer
  })
  const v = { type: 'Property', value: 1 }
  return gateway.send('POST', '/ngsi-ld/v1/entities', { id: `urn:x:answered-${first}`, type: 'Counted', v })
}
const subscribe = () =>
  gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
    id: 'urn:s:counted',
    type: 'Subscription',
    entities: [{ type: 'Counted' }],
    notification: { endpoint: { uri: receiver.url() } },
  })

const published = { selvedge_mqtt_publishes_total: 1 }
const read = { ...published, selvedge_frames_total: 1 }
const skipping = { time: at(2), t: 2, h: 'nan', u: 'unknown', v: null }

const rows: readonly (readonly [string, () => Promise<unknown>, Counts])[] = [
  [
    'the first frame of a device',
    frame({ time: at(1), t: 1, h: 1 }),
    { ...read, selvedge_observations_total: 2 },
  ],
  [
    'a frame with missing values',
    frame(skipping),
    { ...read, selvedge_observations_total: 1, selvedge_readings_skipped_total: 3 },
  ],
  [
    'the same frame again',
    frame(skipping),
    { ...read, selvedge_observations_duplicate_total: 1, selvedge_readings_skipped_total: 3 },
  ],
  [
    'a frame with fewer missing values',
    frame({ time: at(3), t: 3, h: 'nan' }),
    { ...read, selvedge_observations_total: 1, selvedge_readings_skipped_total: 1 },
  ],
  ['a late frame', frame({ time: at(0), t: 9, h: 9 }), { ...read, selvedge_observations_late_total: 2 }],
  ['a frame without a time', frame({ t: 4, h: 4 }), { ...read, selvedge_observations_total: 2 }],
  ['the same one again', frame({ t: 4, h: 4 }), { ...read, selvedge_observations_duplicate_total: 2 }],
  [
    'a frame from the future',
    frame({ time: '2099-01-01T00:00:00Z', t: 5, h: 5 }),
    { ...read, selvedge_readings_rejected_total: 2, selvedge_frames_quarantined_total: 1 },
  ],
  ['a frame that cannot be decoded', frame('{"t":'), { ...read, selvedge_frames_quarantined_total: 1 }],
  [
    'a topic that no bridge reads',
    publish('elsewhere', 'x'),
    { ...published, selvedge_frames_unclaimed_total: 1 },
  ],
  ['a write that is refused', patch('missing'), { selvedge_commit_works_refused_total: 1 }],
  ['a subscription without a match', subscribe, {}],
  ['a notification', notify(204), { selvedge_deliveries_sent_total: 1 }],
  [
    'a notification that fails once',
    notify(503),
    { selvedge_deliveries_failed_total: 1, selvedge_deliveries_sent_total: 1 },
  ],
  ['a backup', () => gateway.send('POST', '/selvedge/v1/backups', undefined), { selvedge_backups_total: 1 }],
]

it.each(rows)('%s is counted', async (_, act, expected) => {
  const before = await counts()
  await act()
  const added = async (): Promise<Counts> => {
    const after = await counts()
    return Object.fromEntries(
      counted.map((name) => [name, after[name]! - before[name]!]).filter(([, value]) => value !== 0),
    )
  }
  await expect.poll(added).toEqual(expected)
})
