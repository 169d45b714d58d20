/**
 * Responses merged from two brokers: this gateway's own and a remote one with TLS, a CA file, a token file
 * and a tenant. Checks what each is sent, what is merged, and what is rejected.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { certificate, key } from '#test/kit/certificate.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { findAt, latest } from '#test/kit/index-of-file.ts'
import { iri, property, sensor } from './site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-merged-'))
const patience = { interval: 50 }
let index: GatewayInside
let elsewhere: GatewayInside
let door: Server
let address: string

/** Accepts only requests with the token. */
function openDoor(port: number): Server {
  return createServer({ key, cert: certificate }, (incoming, response) => {
    const { method = 'GET', url = '/', headers } = incoming
    if (headers.authorization !== 'Bearer the-token-of-a-file') {
      response.writeHead(401).end()
      return
    }
    const passed = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    incoming.pipe(passed)
  })
}

const named = (i: number, name: string): object => ({
  ...sensor(i, [8 + i / 100, 50]),
  [iri.label]: { type: 'Property', value: name },
})

const observation = {
  id: 'urn:ngsi-ld:StreamObservation:3',
  type: iri.StreamObservation,
  [iri.hasSimpleResult]: { type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' },
}

beforeAll(async () => {
  elsewhere = await startGatewayInside(join(folder, 'elsewhere'), noPlugins)
  door = openDoor(elsewhere.httpPort!)
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  address = `https://localhost:${(door.address() as AddressInfo).port}`
  const [tokenFile, caFile] = [join(folder, 'token'), join(folder, 'ca.pem')]
  writeFileSync(tokenFile, 'the-token-of-a-file\n', { mode: 0o600 })
  writeFileSync(caFile, certificate)
  index = await startGatewayInside(join(folder, 'index'), {
    SELVEDGE_INDEXING_BROKERS: JSON.stringify([{ url: address, tenant: 'site7', tokenFile, caFile }]),
  })
  const create = '/ngsi-ld/v1/entityOperations/create'
  const own = [named(1, 'b'), named(2, 'd'), property('temperature')]
  expect((await index.send('POST', create, own)).status).toBe(201)
  const theirs = await elsewhere.send(
    'POST',
    create,
    [named(3, 'a'), named(4, 'c'), property('temperature'), observation],
    {
      'NGSILD-Tenant': 'site7',
    },
  )
  expect(theirs.status).toBe(201)
  await vi.waitFor(async () => expect(await found({ type: 'Sensor' })).toHaveLength(4), patience)
})
afterAll(async () => {
  await Promise.all([index.close(), elsewhere.close()])
  door.closeAllConnections()
  door.close()
  rmSync(folder, { recursive: true, force: true })
})

const ask = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  findAt(index, parameters, { ...latest, ...headers })
type Entity = { readonly id: string; readonly [name: string]: unknown }
const numbers = (entities: readonly Entity[]): number[] =>
  entities.map(({ id }) => Number(id.split(':').at(-1)))
async function found(parameters: Record<string, string>, headers = {}): Promise<number[]> {
  const answer = await ask(parameters, headers)
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  return numbers(answer.json())
}

it('trusts a TLS broker by its CA file, and sends it the token of its token file', async () => {
  await vi.waitFor(async () => {
    const { result } = (await index.get('/indexing/api/broker')).json() as { result: object[] }
    expect(result).toContainEqual(expect.objectContaining({ host: address, state: 'following' }))
  }, patience)
})

it('forwards to each broker with the tenant of its registration', async () => {
  const query = { type: 'Sensor', idPattern: '.*' }
  expect((await found(query)).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
  expect((await found(query, { 'NGSILD-Tenant': 'default' })).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
  const other = { 'NGSILD-Tenant': 'other' }
  expect((await index.send('POST', '/ngsi-ld/v1/entities', named(5, 'e'), other)).status).toBe(201)
  expect(await found(query, other)).toEqual([5])
})

it('forwards conditions on linked entities to both, and removes the linked entities', async () => {
  const query = { type: 'Sensor', q: 'sosa:observes.label~="temp.*"' }
  const answer = await ask(query)
  expect(answer.headers['ngsild-warning']).toBeUndefined()
  const sensors = answer.json() as Entity[]
  expect(numbers(sensors).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
  expect(sensors.map((one) => one[iri.observes])).toEqual(
    sensors.map(() => ({ type: 'Relationship', object: 'urn:ngsi-ld:ObservableProperty:temperature' })),
  )
})

it('local=true finds only local entities, in the index and at the broker', async () => {
  expect(await found({ type: 'Sensor', local: 'true' })).toEqual([1, 2])
  const near = { georel: 'near;maxDistance==100000', geometry: 'Point', coordinates: '[8,50]' }
  expect(await found({ type: 'Sensor', local: 'true', ...near })).toEqual([1, 2])
  expect(await found({ type: 'Sensor', local: 'true', idPattern: '.*' })).toEqual([1, 2])
})

it('orderBy expands names, and works with one broker only', async () => {
  const order = { type: 'Sensor', orderBy: 'rdfs:label;desc' }
  expect(await found({ ...order, local: 'true' })).toEqual([2, 1])
  const both = await ask(order)
  expect([both.status, both.text]).toEqual([422, expect.stringContaining('local=true')])
})

it('createdAt and modifiedAt are those of each broker', async () => {
  const answer = await ask({ type: 'Sensor', options: 'sysAttrs' })
  const entities = answer.json() as Entity[]
  expect(numbers(entities).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
  for (const one of entities) expect(one).toMatchObject({ createdAt: expect.any(String) })
})

it('warns as of when last-seen times of other brokers are', async () => {
  const warning = async (parameters: Record<string, string>, headers = {}): Promise<unknown> =>
    (await ask(parameters, headers)).headers['ngsild-warning']
  const seen = { type: 'Sensor', timerel: 'after', timeAt: '2020-01-01T00:00:00Z' }
  const expected = expect.stringMatching(/^110 localhost:\d+ "last-seen times of streams of .* are as of 20/)
  expect(await warning(seen)).toEqual(expected)
  expect(await warning({ type: 'Sensor' }, { 'Selvedge-Index-Derived': 'true' })).toEqual(expected)
  expect(await warning({ ...seen, local: 'true' })).toBeUndefined()
  expect(await warning({ type: 'Sensor' })).toBeUndefined()
})

it('merges features into one collection', async () => {
  const answer = await ask({ type: 'Platform,Sensor', idPattern: '.*' }, { Accept: 'application/geo+json' })
  expect([answer.status, answer.headers['content-type']]).toEqual([
    200,
    expect.stringContaining('application/geo+json'),
  ])
  const { type, features } = answer.json() as { type: string; features: Entity[] }
  expect([type, numbers(features).toSorted((a, b) => a - b)]).toEqual(['FeatureCollection', [1, 2, 3, 4]])
})

it.each(['entityMap', 'pageKey'])('rejects %s, which merged responses do not support', async (name) => {
  const answer = await ask({ type: 'Sensor', [name]: 'true' })
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(name)])
})
