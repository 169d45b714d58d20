/**
 * A stream fails while the ranking does not answer, or while the index behind it is being built: its alternatives
 * follow in a second notice.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { iotStream, patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-failed-search-'))
const sosa = 'http://www.w3.org/ns/sosa/'
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'a' }
const stream = (name: string) => `urn:ngsi-ld:IotStream:${name}`
const link = (object: string) => ({ type: 'Relationship', object })
const found = [{ id: stream('b'), type: `${iotStream}IotStream` }]
const fromIndex = { 'Content-Type': 'application/json', 'Selvedge-Answered-By': 'index' }
const states = {
  down: { status: 503, headers: {}, body: {} },
  building: { status: 200, headers: fromIndex, body: [] },
  up: { status: 200, headers: { ...fromIndex, 'Selvedge-Index-Position': '7' }, body: found },
}
let state: keyof typeof states = 'down'
let searches = 0
const ranking = createServer((_, response) => {
  searches++
  const { status, headers, body } = states[state]
  response.writeHead(status, headers).end(JSON.stringify(body))
})
let gateway: GatewayInside

beforeAll(async () => {
  setLimit('orchestratorRecheckMs', 200)
  await new Promise<void>((resolve) => ranking.listen(0, '127.0.0.1', resolve))
  gateway = await startGatewayInside(folder, {
    RANKING_COMPONENT_URL: `http://127.0.0.1:${(ranking.address() as AddressInfo).port}`,
    SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
  })
  for (const name of ['a', 'b'])
    for (const entity of [
      {
        id: `urn:ngsi-ld:Sensor:${name}`,
        type: `${sosa}Sensor`,
        [`${sosa}observes`]: link('urn:ngsi-ld:ObservableProperty:t'),
      },
      {
        id: stream(name),
        type: `${iotStream}IotStream`,
        [`${iotStream}generatedBy`]: link(`urn:ngsi-ld:Sensor:${name}`),
      },
    ])
      expect((await gateway.send('POST', '/ngsi-ld/v1/entities', entity)).status).toBe(201)
})
afterAll(async () => {
  await gateway.close()
  ranking.close()
  restoreLimits()
  rmSync(folder, { recursive: true, force: true })
})

it.each([
  ['the ranking answers', 'down'],
  ['the index is built', 'building'],
] as const)('has no alternatives at first, and those of the ranking once %s', async (_, first) => {
  state = first
  const body = { type: 'Subscription', entities: [{ id: stream('a'), type: `${iotStream}IotStream` }] }
  await expect.poll(async () => (await gateway.get('/orchestrator/version')).status, patience).toBe(200)
  const id = (await gateway.ask('POST', path, { body, headers })).text
  const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}/${id}/notifications`, {
    headers: { ...headers, Accept: 'text/event-stream' },
  })
  const notices: Readonly<Record<string, unknown>>[] = []
  const reading = (async () => {
    let text = ''
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const all = [...text.matchAll(/\ndata: (.*)\n\n/g)]
      const parsed = all.map(([, data]) => JSON.parse(data!) as (typeof notices)[0])
      notices.splice(0, Infinity, ...parsed.filter(({ type }) => type !== 'Notification'))
      if (notices.length === 2) return
    }
  })()
  const attributes = { 'urn:selvedge:ns:state': { type: 'Property', value: 'fault' } }
  await gateway.send('POST', `/ngsi-ld/v1/entities/${stream('a')}/attrs`, attributes)
  await expect.poll(() => notices, patience).toMatchObject([{ type: 'StreamFailure', alternatives: [] }])
  const before = searches
  await expect.poll(() => searches, patience).toBeGreaterThan(before + 1)
  expect(notices).toHaveLength(1)
  state = 'up'
  await reading
  expect(notices[1]).toMatchObject({
    type: 'StreamFailure',
    updates: notices[0]!['id'],
    alternatives: [{ stream: stream('b'), isVirtual: false }],
  })
  expect((await gateway.ask('DELETE', `${path}/${id}`, { headers })).status).toBe(204)
  const works = { 'urn:selvedge:ns:state': { type: 'Property', value: 'available' } }
  await gateway.send('POST', `/ngsi-ld/v1/entities/${stream('a')}/attrs`, works)
})
