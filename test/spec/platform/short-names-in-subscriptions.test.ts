/** Short names of the platform in subscriptions without @context, in the standard profile. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const subscriptions = '/ngsi-ld/v1/subscriptions'
const entities = '/ngsi-ld/v1/entities'
const observation = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'
const endpoint = { uri: 'urn:selvedge:stream' }

let folder: string
let gateway: GatewayInside
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-short-names-'))
  gateway = await startGatewayInside(folder)
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

async function subscribe(id: string, parts: object) {
  const body = { id, type: 'Subscription', notification: { endpoint }, ...parts }
  const answer = await gateway.send('POST', subscriptions, body)
  expect(answer.status).toBe(201)
  const shown = (await gateway.get(`${subscriptions}/${id}`)).json() as object
  return { shown, warning: answer.headers['ngsild-warning'] }
}

/** The data of the first notification in a subscription's stream. */
async function firstNotified(id: string): Promise<unknown> {
  const url = `http://127.0.0.1:${gateway.httpPort}${subscriptions}/${id}/notifications`
  const { body } = await fetch(url, { headers: { Accept: 'text/event-stream' } })
  let text = ''
  for await (const chunk of body!) {
    text += Buffer.from(chunk).toString()
    const [, data] = /^data: (.*)$/m.exec(text) ?? []
    if (data !== undefined && text.includes('\n\n')) return (JSON.parse(data) as { data: unknown }).data
  }
  throw new Error(`the stream ended after ${text}`)
}

it('are expanded with the vocabulary of the platform, with a warning, and match', async () => {
  const { shown, warning } = await subscribe('urn:s:hot', {
    entities: [{ type: 'StreamObservation' }],
    watchedAttributes: ['hasSimpleResult'],
    q: 'hasSimpleResult>30',
    notification: { attributes: ['hasSimpleResult'], format: 'keyValues', endpoint },
  })
  expect(shown).toMatchObject({
    entities: [{ type: observation }],
    watchedAttributes: [result],
    notification: { attributes: [result] },
  })
  expect(warning).toBe(
    `199 - "the subscription reads hasSimpleResult as ${result}, StreamObservation as ${observation}: send a Link header with the @context if other names are meant"`,
  )
  const one = { id: 'urn:o:1', type: observation, [result]: { type: 'Property', value: 31 } }
  expect((await gateway.send('POST', entities, one)).status).toBe(201)
  expect(await firstNotified('urn:s:hot')).toEqual([{ id: 'urn:o:1', type: observation, [result]: 31 }])
})

it('are expanded with the vocabulary of the platform also in updates', async () => {
  await subscribe('urn:s:changed', { entities: [{ type: 'iot-stream:StreamObservation' }] })
  const changed = await gateway.send('PATCH', `${subscriptions}/urn:s:changed`, { q: 'hasSimpleResult>30' })
  expect([changed.status, changed.headers['ngsild-warning']]).toEqual([
    204,
    expect.stringContaining(`hasSimpleResult as ${result}`),
  ])
})

it('stay in the default context beside types of other vocabularies, and in filters of sources', async () => {
  const { shown, warning } = await subscribe('urn:s:building', {
    entities: [{ type: 'Building' }],
    watchedAttributes: ['name'],
    csf: 'name=="a"',
  })
  expect(shown).toMatchObject({ watchedAttributes: ['name'], csf: 'name=="a"' })
  expect(warning).toBeUndefined()
})

it('stay in the default context if the gateway has entities with that name', async () => {
  const concert = { id: 'urn:n:concert', type: 'Event' }
  expect((await gateway.send('POST', entities, concert)).status).toBe(201)
  const { shown, warning } = await subscribe('urn:s:event', { entities: [{ type: 'Event' }] })
  expect([shown, warning]).toMatchObject([{ entities: [{ type: 'Event' }] }, undefined])
})
