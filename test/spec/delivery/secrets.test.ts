/**
 * Secrets that clients store with subscriptions, registrations and snapshots. No response and no log line
 * contains them, an update with the placeholder keeps them, and they are sent only to the endpoint for which
 * they were stored.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const secret = 'S3cret-of-the-test'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-secrets-'))
const root = '/ngsi-ld/v1'
let gateway: GatewayInside
let receiver: Receiver
let other: Receiver
const secrets = [
  { key: 'Authorization', value: `Bearer ${secret}` },
  { key: 'X-Plant', value: 'north' },
  { key: 'X-Api-Key', value: secret },
]
const shown = [secrets[0]!, secrets[1]!, secrets[2]!].map((pair) =>
  pair.key === 'X-Plant' ? pair : { ...pair, value: '***' },
)
const withUser = (url: string): string => url.replace('://', `://user:${secret}@`)

beforeAll(async () => {
  receiver = await createReceiver()
  other = await createReceiver()
  gateway = await startGatewayInside(folder, noPlugins)
})

afterAll(async () => {
  await gateway.close()
  await receiver.down()
  await other.down()
  rmSync(folder, { recursive: true, force: true })
})

/** Reads a response and checks that it contains no secret. */
async function read(path: string): Promise<never> {
  const answer = await gateway.get(path)
  expect(answer.text).not.toContain(secret)
  expect(JSON.stringify(answer.headers)).not.toContain(secret)
  expect(answer.status).toBe(200)
  return answer.json()
}

describe('a subscription', () => {
  const path = `${root}/subscriptions/urn:s`
  const endpoint = () => ({ uri: withUser(receiver.url('/n?token=') + secret), receiverInfo: secrets })
  const shownEndpoint = () => ({
    uri: receiver.url('/n?token=***').replace('://', '://***@'),
    receiverInfo: shown,
  })
  const heads = () =>
    receiver.taken().map(({ path: at, headers }) => [at, headers['authorization'], headers['x-api-key']])

  it('shows that secrets are set, and sends them', async () => {
    const made = await gateway.send('POST', `${root}/subscriptions`, {
      id: 'urn:s',
      type: 'Subscription',
      entities: [{ type: 'T' }],
      notification: { endpoint: endpoint() },
    })
    expect(made.status).toBe(201)
    expect(await read(path)).toMatchObject({ notification: { endpoint: shownEndpoint() } })
    expect(await read(`${root}/subscriptions`)).toMatchObject([
      { notification: { endpoint: shownEndpoint() } },
    ])
    await gateway.send('POST', `${root}/entities`, {
      id: 'urn:t',
      type: 'T',
      p: { type: 'Property', value: 0 },
    })
    await vi.waitFor(
      () => expect(heads()).toEqual([[`/n?token=${secret}`, `Bearer ${secret}`, secret]]),
      20_000,
    )
  })

  it('keeps them if an update contains the placeholder, only for the same endpoint', async () => {
    const { notification } = (await read(path)) as { notification: object }
    expect((await gateway.send('PATCH', path, { notification })).status).toBe(204)
    const moved = { endpoint: { ...shownEndpoint(), uri: other.url() } }
    const refused = await gateway.send('PATCH', path, { notification: moved })
    expect([refused.status, (refused.json() as { detail: string }).detail]).toEqual([
      400,
      expect.stringContaining('notification.endpoint.receiverInfo.Authorization: *** stands for a secret'),
    ])
    const copy = { id: 'urn:copy', type: 'Subscription', entities: [{ type: 'T' }], notification }
    expect((await gateway.send('POST', `${root}/subscriptions`, copy)).status).toBe(400)
    await gateway.send('PATCH', `${root}/entities/urn:t`, { p: { type: 'Property', value: 1 } })
    await vi.waitFor(() => expect(heads()).toHaveLength(2))
    expect(heads()[1]).toEqual(heads()[0])
    expect(other.received).toEqual([])
  })

  it('shows no secret in its dead letters', async () => {
    receiver.answer(() => 400)
    await gateway.send('PATCH', `${root}/entities/urn:t`, { p: { type: 'Property', value: 2 } })
    await vi.waitFor(async () => expect(await read('/selvedge/v1/queue')).toMatchObject({ count: 1 }))
    const { items } = (await read('/selvedge/v1/queue')) as { items: { id: string; endpoint: string }[] }
    expect(items[0]!.endpoint).toBe(shownEndpoint().uri)
    await read(`/selvedge/v1/queue/${items[0]!.id}`)
    await read('/health/ready')
    await read('/selvedge/v1/info')
    expect((await gateway.get('/metrics')).text).not.toContain(secret)
    await gateway.ask('DELETE', path)
  })
})

describe('a registration', () => {
  const path = `${root}/csourceRegistrations/urn:r`
  const registration = () => ({
    id: 'urn:r',
    type: 'ContextSourceRegistration',
    information: [{ entities: [{ type: 'Far' }] }],
    endpoint: withUser(other.url('')).replace(/\/$/, ''),
    contextSourceInfo: secrets,
  })

  it('shows only that secrets are set, also in notifications about it, and queries cannot match them', async () => {
    receiver.answer(() => 204)
    const subscribed = await gateway.send('POST', `${root}/csourceSubscriptions`, {
      id: 'urn:cs',
      type: 'Subscription',
      entities: [{ type: 'Far' }],
      notification: { endpoint: { uri: receiver.url('/sources'), receiverInfo: secrets } },
    })
    expect(subscribed.status).toBe(201)
    expect((await gateway.send('POST', `${root}/csourceRegistrations`, registration())).status).toBe(201)
    expect(await read(path)).toMatchObject({
      contextSourceInfo: shown,
      endpoint: expect.stringContaining('//***@'),
    })
    expect(await read(`${root}/csourceSubscriptions/urn:cs`)).toMatchObject({
      notification: { endpoint: { receiverInfo: shown } },
    })
    const notifications = () => receiver.received.filter((one) => one.path === '/sources')
    await vi.waitFor(() => expect(notifications()).toHaveLength(1))
    expect(notifications()[0]!.body).toContain('***')
    expect(notifications()[0]!.body).not.toContain(secret)
    const searched = (q: string) => read(`${root}/csourceRegistrations?type=Far&csf=${encodeURIComponent(q)}`)
    expect(await searched(`endpoint~="${secret}"`)).toEqual([])
    expect(await searched('endpoint~="[*]{3}"')).toHaveLength(1)
  })

  it('sends them, keeps them for its address, and does not send them to another one', async () => {
    const asked = () => other.received.map(({ headers }) => headers['authorization'])
    await gateway.get(`${root}/entities?type=Far`)
    expect(asked()).toEqual([`Bearer ${secret}`])
    const { endpoint, contextSourceInfo } = (await read(path)) as {
      endpoint: string
      contextSourceInfo: object
    }
    const patch = (body: object) => gateway.send('PATCH', path, body).then(({ status }) => status)
    expect(await patch({ endpoint, contextSourceInfo })).toBe(204)
    expect(await patch({ endpoint })).toBe(204)
    expect(await patch({ contextSourceInfo })).toBe(204)
    await gateway.get(`${root}/entities?type=Far`)
    expect(asked()).toEqual([`Bearer ${secret}`, `Bearer ${secret}`])
    const elsewhere = receiver.url('').replace(/\/$/, '')
    expect(await patch({ endpoint: elsewhere })).toBe(400)
    expect(await patch({ endpoint: elsewhere, contextSourceInfo })).toBe(400)
    expect(
      await patch({ endpoint: elsewhere, contextSourceInfo: [{ key: 'X-Plant', value: 'south' }] }),
    ).toBe(204)
    await gateway.ask('DELETE', path)
  })
})

it('a snapshot shows only that secrets are set, and keeps them if an update contains the placeholder', async () => {
  const path = `${root}/snapshots/urn:snap`
  const made = await gateway.send('POST', `${root}/snapshots`, {
    id: 'urn:snap',
    type: 'Snapshot',
    snapshotQueries: [{ type: 'Query', entities: [{ type: 'T' }] }],
    endpoint: withUser(receiver.url('/snap')),
    receiverInfo: secrets,
  })
  expect(made.status).toBe(201)
  const { endpoint, receiverInfo } = (await read(path)) as { endpoint: string; receiverInfo: object }
  expect([endpoint, receiverInfo]).toEqual([receiver.url('/snap').replace('://', '://***@'), shown])
  expect((await gateway.send('PATCH', path, { endpoint, receiverInfo })).status).toBe(200)
  expect((await gateway.send('PATCH', path, { endpoint: other.url(), receiverInfo })).status).toBe(400)
  await gateway.ask('DELETE', path)
  const notifications = () => receiver.received.filter((one) => one.path === '/snap')
  await vi.waitFor(() => expect(notifications().length).toBeGreaterThan(1))
  for (const { headers } of notifications()) expect(headers['x-api-key']).toBe(secret)
})

it('an uplink created by a client shows no secret', async () => {
  const made = await gateway.send('POST', `${root}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'T' }],
    localOnly: true,
    notification: {
      endpoint: {
        uri: receiver.url('').replace(/\/$/, ''),
        receiverInfo: secrets,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })
  expect(made.status).toBe(201)
  await read(`${root}/subscriptions/urn:up`)
  await read('/selvedge/v1/uplinks')
  await read('/selvedge/v1/uplinks/urn:up')
  await vi.waitFor(
    () =>
      expect(
        receiver.received.some(({ path }) => path.startsWith('/ngsi-ld') || path.startsWith('/selvedge')),
      ).toBe(true),
    20_000,
  )
  expect(receiver.received.at(-1)!.headers['x-api-key']).toBe(secret)
})
