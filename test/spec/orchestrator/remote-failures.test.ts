/** Notices of failed streams at another broker: a fault there, and the broker unreachable and back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freePort } from '#test/kit/ports.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-remote-failures-'))
const port = await freePort()
const stream = 'urn:ngsi-ld:IotStream:a:t'
const observation = 'urn:ngsi-ld:StreamObservation:a:t'
const sensor = 'urn:ngsi-ld:Sensor:a:t'
const sosa = 'http://www.w3.org/ns/sosa/'
const state = 'urn:selvedge:ns:state'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'a' }
let site: GatewayInside
let gateway: GatewayInside

const startSite = async (): Promise<void> => {
  site = await startGatewayInside(join(folder, 'site'), {
    SELVEDGE_HTTP_PORT: String(port),
    SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
  })
}
const setState = async (value: string): Promise<void> => {
  const attributes = { [state]: { type: 'Property', value, observedAt: '2026-11-23T10:00:00Z' } }
  expect((await site.send('POST', `/ngsi-ld/v1/entities/${stream}/attrs`, attributes)).status).toBe(204)
}

const create = async (entity: object): Promise<void> => {
  expect((await site.send('POST', '/ngsi-ld/v1/entities', entity)).status).toBe(201)
}

/** The entities of the virtual sensor, as its creator writes them. */
async function replace(): Promise<void> {
  const link = (object: string) => ({ type: 'Relationship', object })
  await create({
    id: `${sensor}:VS`,
    type: `${sosa}Sensor`,
    [`${sosa}madeObservation`]: link(`${observation}:VS`),
  })
  await create({
    id: `${observation}:VS`,
    type: `${iotStream}StreamObservation`,
    [`${iotStream}belongsTo`]: link(`${stream}:VS`),
    [`${sosa}hasSimpleResult`]: { type: 'Property', value: 21 },
  })
  await create({
    id: `${stream}:VS`,
    type: `${iotStream}IotStream`,
    [`${iotStream}generatedBy`]: link(`${sensor}:VS`),
  })
}

/** The notices so far, without the notifications. */
async function notices(id: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}/${id}/notifications`, {
    headers: { ...headers, Accept: 'text/event-stream' },
  })
  let text = ''
  const ended = new AbortController()
  const silent = setTimeout(() => ended.abort(), 300)
  try {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream(), { signal: ended.signal }))
      text += chunk
  } catch {
    // It has no more.
  }
  clearTimeout(silent)
  return [...text.matchAll(/\ndata: (.*)\n\n/g)]
    .map(([, data]) => JSON.parse(data!) as Readonly<Record<string, unknown>>)
    .filter(({ type }) => type !== 'Notification')
}

beforeAll(async () => {
  setLimit('followCheckMs', 300)
  await startSite()
  await site.send('POST', '/ngsi-ld/v1/entities', {
    id: stream,
    type: `${iotStream}IotStream`,
    [`${iotStream}generatedBy`]: { type: 'Relationship', object: sensor },
  })
  await site.send('POST', '/ngsi-ld/v1/entities', {
    id: observation,
    type: `${iotStream}StreamObservation`,
    [`${iotStream}belongsTo`]: { type: 'Relationship', object: stream },
  })
  gateway = await startGatewayInside(join(folder, 'gateway'), {
    NGSILD_BROKER_URL: `http://127.0.0.1:${port}`,
  })
  await vi.waitFor(async () => {
    expect((await gateway.get('/orchestrator/version')).status).toBe(200)
  }, patience)
})
afterAll(async () => {
  await gateway.close()
  await site.close()
  restoreLimits()
  rmSync(folder, { recursive: true, force: true })
})

/** Ids of the entities that a subscription selects at the broker. */
async function selected(id: string): Promise<unknown[]> {
  const { entities } = (await site.get(`/ngsi-ld/v1/subscriptions/${id}`)).json() as {
    entities: { id: string }[]
  }
  return entities.map((one) => one.id)
}

it('are sent for a fault, for its virtual sensor, and while the broker is away', async () => {
  const body = {
    type: 'Subscription',
    entities: [{ id: observation, type: `${iotStream}StreamObservation` }],
    notification: { endpoint: { notifierInfo: [{ key: 'selvedge:onFailure', value: 'switch' }] } },
  }
  const id = (await gateway.ask('POST', path, { body, headers })).text
  await setState('fault')
  await expect
    .poll(() => notices(id), patience)
    .toMatchObject([
      { type: 'StreamFailure', reason: 'fault', stream, at: '2026-11-23T10:00:00Z', alternatives: [] },
    ])
  const [{ id: first }] = (await notices(id)) as [{ id: unknown }]
  await replace()
  await expect
    .poll(async () => (await notices(id))[1], patience)
    .toMatchObject({
      type: 'StreamFailure',
      reason: 'fault',
      updates: first,
      alternatives: [{ stream: `${stream}:VS`, sensor: `${sensor}:VS`, isVirtual: true }],
      switchedTo: { stream: `${stream}:VS`, entity: `${observation}:VS` },
    })
  await expect.poll(() => selected(id), patience).toEqual([observation, `${observation}:VS`])
  await setState('normal')
  await expect
    .poll(() => notices(id), patience)
    .toMatchObject([
      { type: 'StreamFailure' },
      { type: 'StreamFailure' },
      { type: 'StreamRecovery', failure: first, detail: 'normal' },
    ])
  await expect.poll(() => selected(id), patience).toEqual([observation])
  await site.close()
  await expect
    .poll(async () => (await notices(id))[3], patience)
    .toMatchObject({
      type: 'StreamFailure',
      reason: 'source-unreachable',
      stream,
      alternatives: [],
    })
  await startSite()
  await expect.poll(async () => (await notices(id))[4], patience).toMatchObject({ type: 'StreamRecovery' })
})
