/**
 * Requests to a source (GS CIM 009, 4.3.6.1, 5.6.7 to 5.6.10, 6.3.17), recorded by that source. They contain
 * only the registered ids and places. A batch is sent entity by entity if the source offers no batches. The
 * endpoint may include the path of the API. The test also checks the codes of warnings about answers.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'
const registrations = '/ngsi-ld/v1/csourceRegistrations'

interface Asked {
  readonly method: string
  readonly path: string
  readonly rawHeaders: readonly string[]
  readonly body: unknown
}
type Answer = (asked: Asked) => { readonly status: number; readonly text?: string } | 'none'

let here: HttpGateway
let endpoint = ''
let asked: Asked[] = []
let answer: Answer = () => ({ status: 200, text: '[]' })
let registered: string[] = []

const source = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString()
    const { method = '', url = '', rawHeaders } = request
    const one = {
      method,
      path: decodeURIComponent(url),
      rawHeaders,
      body: text === '' ? undefined : JSON.parse(text),
    }
    asked.push(one)
    const told = answer(one)
    if (told === 'none') return
    const { status, text: body } = told
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(body)
  })
})
beforeAll(async () => {
  here = await startHttpGateway({ alias: 'here' })
  await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(source.address() as AddressInfo).port}`
})
afterAll(async () => {
  source.close()
  source.closeAllConnections()
  await here.close()
})
afterEach(async () => {
  for (const path of registered) await here.ask('DELETE', path)
  registered = []
  asked = []
  answer = () => ({ status: 200, text: '[]' })
})

async function register(members: object): Promise<void> {
  const made = await here.send('POST', registrations, {
    type: 'ContextSourceRegistration',
    information: [{ entities: [{ type: 'Pump' }] }],
    operations: ['redirectionOps'],
    endpoint,
    ...members,
  })
  expect([made.status, made.text]).toEqual([201, ''])
  registered.push(made.headers['location']!)
}
const query = async (text: string): Promise<string[]> => {
  asked = []
  expect((await here.get(`${entities}?${text}`)).status).toBe(200)
  return asked.map(({ path }) => path.replace('?options=sysAttrs&', '?').replace('&options=sysAttrs', ''))
}
const claims = (...all: readonly object[]) => ({
  information: [{ entities: all.map((one) => ({ type: 'Pump', ...one })) }],
})

it('a source is queried only for its registered ids', async () => {
  await register(claims({ id: 'urn:p:1' }, { id: 'urn:p:2' }))
  expect(await query('type=Pump')).toEqual([`${entities}?id=urn:p:1,urn:p:2&type=Pump`])
  expect(await query('type=Pump&id=urn:p:2,urn:p:3')).toEqual([`${entities}?id=urn:p:2&type=Pump`])
  expect(await query('type=Pump&id=urn:p:3')).toEqual([])
  expect((await query('type=Pump&idPattern=.*2'))[0]).toMatch(/[?&]id=urn:p:2(&|$)/)
})

it('a source is queried only for its registered id pattern', async () => {
  await register(claims({ idPattern: '^urn:p:' }))
  expect(await query('type=Pump')).toEqual([`${entities}?idPattern=^urn:p:&type=Pump`])
  expect(await query('type=Pump&id=urn:p:1,urn:q:1')).toEqual([`${entities}?id=urn:p:1&type=Pump`])
})

it('a source is not queried for a place outside its registration', async () => {
  const ring = [
    [
      [0, 0],
      [10, 0],
      [10, 10],
      [0, 10],
      [0, 0],
    ],
  ]
  await register({ location: { type: 'Polygon', coordinates: ring } })
  const near = (lon: number) =>
    `type=Pump&georel=near;maxDistance==1000&geometry=Point&coordinates=[${lon},5]`
  expect(await query(near(5))).toHaveLength(1)
  expect(await query(near(50))).toEqual([])
  const box = (from: number) =>
    `type=Pump&georel=within&geometry=Polygon&coordinates=${JSON.stringify([
      [
        [from, 1],
        [from + 2, 1],
        [from + 2, 2],
        [from, 2],
        [from, 1],
      ],
    ])}`
  // The source may have entities within a box that does not contain its whole space.
  expect(await query(box(1))).toHaveLength(1)
  expect(await query(box(20))).toEqual([])
})

it('an endpoint may end with the path of the API; Via is written as Via', async () => {
  await register({ endpoint: `${endpoint}/ngsi-ld/v1/` })
  expect(await query('type=Pump')).toEqual([`${entities}?type=Pump`])
  expect(asked[0]!.rawHeaders).toContain('Via')
})

it('a batch is sent entity by entity to a source that offers only single operations', async () => {
  await register({ mode: 'redirect', information: [{ entities: [{ type: 'Pump', idPattern: '.*' }] }] })
  const pumps = [1, 2, 3].map((n) => ({
    id: `urn:p:${n}`,
    type: 'Pump',
    flow: { type: 'Property', value: n },
  }))
  const seen = () => asked.map(({ method, path }) => `${method} ${path}`).toSorted()
  answer = () => ({ status: 201 })
  const created = await here.send('POST', `${operations}/create`, pumps, { Prefer: 'ngsi-ld=1.8' })
  expect([created.status, created.json()]).toEqual([201, ['urn:p:1', 'urn:p:2', 'urn:p:3']])
  expect(created.headers['preference-applied']).toBe('ngsi-ld=1.8')
  expect(seen()).toEqual(Array.from({ length: 3 }, () => `POST ${entities}`))
  expect(asked.map(({ body }) => body)).toEqual(expect.arrayContaining(pumps))

  asked = []
  answer = ({ method, body }) => ({
    status: method === 'PUT' ? 204 : (body as { id: string }).id === 'urn:p:1' ? 201 : 409,
  })
  const upserted = await here.send('POST', `${operations}/upsert`, pumps)
  expect([upserted.status, upserted.json()]).toEqual([201, ['urn:p:1']])
  expect(seen().slice(3)).toEqual([`PUT ${entities}/urn:p:2`, `PUT ${entities}/urn:p:3`])

  asked = []
  answer = ({ path }) =>
    path.endsWith('2') ? { status: 404, text: '{"type":"x","title":"not there"}' } : { status: 204 }
  const deleted = await here.send(
    'POST',
    `${operations}/delete`,
    pumps.map(({ id }) => id),
  )
  expect([deleted.status, deleted.json()]).toMatchObject([
    207,
    { success: ['urn:p:1', 'urn:p:3'], errors: [{ entityId: 'urn:p:2' }] },
  ])
  expect(seen()).toEqual([1, 2, 3].map((n) => `DELETE ${entities}/urn:p:${n}`))

  asked = []
  answer = () => ({ status: 204 })
  expect((await here.send('POST', `${operations}/merge`, pumps)).status).toBe(204)
  expect((await here.send('POST', `${operations}/update?options=noOverwrite`, pumps)).status).toBe(204)
  expect(seen()).toEqual([
    ...[1, 2, 3].map((n) => `PATCH ${entities}/urn:p:${n}`),
    ...[1, 2, 3].map((n) => `POST ${entities}/urn:p:${n}/attrs?options=noOverwrite`),
  ])
})

it.each([
  ['invalid', { status: 200, text: 'no JSON' }, 111],
  ['no entities', { status: 200, text: '[{"id":"urn:p:1"}]' }, 111],
  ['an error', { status: 500, text: '{}' }, 299],
  ['a refusal', { status: 403, text: '{}' }, 299],
  ['a loop', { status: 508, text: '{}' }, 199],
])('an answer that is %s causes a warning', async (_, told, code) => {
  await register({})
  answer = () => told
  const reply = await here.get(`${entities}?type=Pump`)
  expect([reply.status, reply.json()]).toEqual([200, []])
  expect(String(reply.headers['ngsild-warning'])).toMatch(new RegExp(`^${code} `))
})

it('a source that times out or is unreachable causes warning 199', async () => {
  await register({ management: { timeout: 100 } })
  answer = () => 'none'
  expect((await here.get(`${entities}?type=Pump`)).headers['ngsild-warning']).toMatch(/^199 /)
  await here.send('PATCH', registered[0]!, { endpoint: 'http://127.0.0.1:9' })
  expect((await here.get(`${entities}?type=Pump`)).headers['ngsild-warning']).toMatch(/^199 /)
})
