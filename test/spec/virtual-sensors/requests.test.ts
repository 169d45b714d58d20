/** Requests to the virtual sensor creator of a whole gateway: forms, listeners, places, and each outcome. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import {
  courseOf,
  type Envelope,
  idOf,
  neighbourhoodOf,
  patience,
  type ShownState,
  slotMs,
  sosa,
} from './neighbourhood.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-virtual-requests-'))
let gateway: GatewayInside
const near = neighbourhoodOf(() => gateway)
const broken = idOf('Sensor', 'broken')
const faultBegin = Date.now() - 150 * slotMs

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {
    SELVEDGE_SEARCH_PORT: '0',
    SELVEDGE_VIRTUAL_SENSORS_PORT: '0',
  })
  const noise = createSeededRandom(5)
  await near.create('broken')
  await near.history('broken', 200, courseOf(9))
  await near.create('neighbour', { north: 0.01, label: 'Temperature' })
  await near.history('neighbour', 200, courseOf(1))
  await near.create('second', { north: -0.02 })
  await near.history('second', 200, courseOf(2))
  // Elsewhere, without a neighbour that helps.
  await near.create('lonely', { north: 10 })
  await near.history('lonely', 200, courseOf(9))
  await near.create('odd', { north: 20 })
  await near.history('odd', 200, courseOf(9))
  await near.create('random', { north: 20.01 })
  await near.history('random', 200, () => noise())
  await near.create('young', { north: 30 })
  await near.history('young', 20, courseOf(9))
  await near.create('old', { north: 30.01 })
  await near.history('old', 200, courseOf(9))
  // Correct until its fault began.
  await near.create('garbled', { north: 3 })
  const course = courseOf(9)
  await near.history('garbled', 250, (slot) => (slot * slotMs < faultBegin ? course(slot) : 50 * noise()))
  await near.create('clear', { north: 3.01 })
  await near.history('clear', 250, courseOf(1))
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id: idOf('Sensor', 'bare'), type: `${sosa}Sensor` })
})
afterAll(async () => {
  await gateway?.close()
  rmSync(folder, { recursive: true, force: true })
})

async function metric(name: string): Promise<number> {
  const { text } = await gateway.get('/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

const root = '/virtual-sensors'
type Answer = Awaited<ReturnType<GatewayInside['ask']>>
const envelopeOf = (answer: Answer): Envelope => answer.json() as Envelope

describe('a request', () => {
  const query = `sensorID=${encodeURIComponent(broken)}&maxDistance=5000&onlySameObservations=true&updateInterval=60`
  const body = { sensorID: broken, maxDistance: 5000, onlySameObservations: true, updateInterval: 60 }

  it.each([
    ['GET with a JSON body', 'GET', `${root}/api/replaceBrokenSensor/`, body],
    ['GET with a query', 'GET', `${root}/api/replaceBrokenSensor?${query}`, undefined],
    ['POST', 'POST', `${root}/api/replaceBrokenSensor`, body],
  ])('is a %s', async (_, method, path, given) => {
    const answer = await gateway.ask(method, path, { body: given })
    expect(answer.status).toBe(200)
    expect(envelopeOf(answer)).toMatchObject({ success: true, data: { id: `${broken}:VS` } })
    expect(answer.headers['content-type']).toContain('application/json')
  })

  it('is answered on the port of the search enabler and on a port of its own', async () => {
    for (const name of ['search', 'virtual-sensors']) {
      const client = httpClient(`http://127.0.0.1:${gateway.pluginPorts[name]}`)
      const { data } = envelopeOf(await client.get('/api/status/'))
      expect(data).toMatchObject({ running: true, virtualSensors: [{ id: `${broken}:VS` }] })
      const listed = envelopeOf(await client.get('/api/list'))
      expect(Object.keys(listed.data)).toEqual([`${broken}:VS`])
    }
    const search = httpClient(`http://127.0.0.1:${gateway.pluginPorts['search']}`)
    expect((await search.get('/version')).status).toBe(200)
    expect((await search.get('/api/else')).status).toBe(404)
  })

  it.each([
    ['replaceBrokenSensor', {}, 'sensorID: is required'],
    ['replaceBrokenSensor', { sensorID: 7 }, 'sensorID: must be the id of an entity'],
    ['replaceBrokenSensor', { sensorID: broken, maxDistance: -1 }, 'maxDistance: must be a number'],
    ['replaceBrokenSensor', { sensorID: broken, onlySameObservations: 'no' }, 'must be true or false'],
    ['replaceBrokenSensor', { sensorID: broken, limitSourceSensors: 1.5 }, 'limitSourceSensors: must be'],
    ['replaceBrokenSensor', { sensorID: broken, updateInterval: 0 }, 'must be a number from 1 to 86400'],
    ['replaceBrokenSensor', { sensorID: broken, updateInterval: 86_401 }, 'must be a number from 1 to 86400'],
    ['deployVirtualSensor', { propertyID: 'urn:p:1' }, 'location: is required'],
    ['deployVirtualSensor', { propertyID: 'urn:p:1', location: [120, 50] }, 'seem to be swapped'],
    ['deployVirtualSensor', { propertyID: 'urn:p:1', location: [50, 190] }, 'longitude 190 must be from'],
    ['deployVirtualSensor', { propertyID: 'urn:p:1', location: [50] }, '[latitude, longitude, altitude]'],
    ['stopVirtualSensor', {}, 'sensorID: is required'],
    ['stopVirtualSensor', '[1]', 'the body is not a JSON object'],
    ['stopVirtualSensor', '{', 'the body is not a JSON object'],
  ])('%s with %j is malformed', async (name, given, description) => {
    const answer = await gateway.ask('POST', `${root}/api/${name}`, { body: given })
    expect(answer.status).toBe(400)
    expect(envelopeOf(answer)).toEqual({
      status: 'error',
      success: false,
      description: expect.stringContaining(description) as string,
    })
  })

  it.each([
    ['replaceBrokenSensor', { sensorID: idOf('Sensor', 'nobody') }],
    ['deployVirtualSensor', { location: [56, 10, 0], propertyID: 'urn:p:nobody' }],
    ['stopVirtualSensor', { sensorID: idOf('Sensor', 'lonely') }],
    ['exportModel', { sensorID: idOf('Sensor', 'lonely') }],
    ['else', {}],
  ])('%s with an id that does not exist is answered with 404', async (name, given) => {
    const answer = await gateway.ask('POST', `${root}/api/${name}`, { body: given })
    expect(answer.status).toBe(404)
    expect(envelopeOf(answer)).toMatchObject({ status: 'error', success: false })
  })

  it('from a page of another origin is refused, also as GET', async () => {
    const path = `/api/stopVirtualSensor?sensorID=${encodeURIComponent(broken)}`
    const search = httpClient(`http://127.0.0.1:${gateway.pluginPorts['search']}`)
    for (const headers of [{ Origin: 'http://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
      expect((await gateway.get(root + path, headers)).status).toBe(403)
      expect((await search.get(path, headers)).status).toBe(403)
      expect((await search.get('/api/list', headers)).status).toBe(200)
    }
    expect(Object.keys(envelopeOf(await search.get('/api/list')).data)).toContain(`${broken}:VS`)
  })

  it('of another method is answered with 405', async () => {
    const answer = await gateway.ask('DELETE', `${root}/api/list`)
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD, POST'])
  })

  it.each([
    ['bare', 'no metadata for broken sensor'],
    ['lonely', 'no source within the distance'],
    ['odd', 'no correlating source'],
    ['garbled', 'no correlating source'],
    ['young', 'not enough data'],
  ])('for the sensor %s fails: %s', async (name, description) => {
    const sensorID = idOf('Sensor', name)
    const answer = await gateway.ask('GET', `${root}/api/replaceBrokenSensor/`, { body: { sensorID } })
    expect(answer.status).toBe(200)
    expect(envelopeOf(answer)).toEqual({
      status: 'error',
      success: false,
      description: expect.stringContaining(description) as string,
    })
    expect((await gateway.get(`/ngsi-ld/v1/entities/${sensorID}:VS`)).status).toBe(404)
  })
})

describe('a sensor with a known fault', () => {
  it('is replaced by what it reported before', async () => {
    const made = await gateway.send('POST', '/ngsi-ld/v1/entities', {
      id: 'urn:ngsi-ld:Fault:garbled:1',
      type: 'urn:selvedge:ns:Fault',
      'urn:selvedge:ns:stream': { type: 'Relationship', object: idOf('IotStream', 'garbled') },
      'urn:selvedge:ns:begin': {
        type: 'Property',
        value: { '@type': 'DateTime', '@value': new Date(faultBegin).toISOString() },
      },
    })
    expect(made.status).toBe(201)
    const sensorID = idOf('Sensor', 'garbled')
    const answer = await gateway.ask('GET', `${root}/api/replaceBrokenSensor/`, { body: { sensorID } })
    expect(envelopeOf(answer)).toMatchObject({ success: true })
    await near.published(`${sensorID}:VS`)
  })
})

describe('the end of a virtual sensor', () => {
  it('is one commit', async () => {
    const body = { sensorID: idOf('Sensor', 'second'), updateInterval: 86_400 }
    const counts: number[] = []
    // Upkeep of the gateway may commit at the same time, but not each time.
    while (counts.length < 5 && counts.at(-1) !== 1) {
      await gateway.ask('POST', `${root}/api/replaceBrokenSensor`, { body })
      await near.published(`${body.sensorID}:VS`)
      const before = await metric('selvedge_commits_total')
      await gateway.ask('POST', `${root}/api/stopVirtualSensor`, { body })
      counts.push((await metric('selvedge_commits_total')) - before)
    }
    expect(counts.at(-1)).toBe(1)
    expect((await gateway.get(`/ngsi-ld/v1/entities/${body.sensorID}:VS`)).status).toBe(404)
  })
})

describe('a place without a sensor', () => {
  it('gets a virtual sensor from its neighbours', async () => {
    const request = {
      location: [56.005, 10, 12],
      propertyID: idOf('ObservableProperty', 'broken'),
      updateInterval: 1,
    }
    const first = envelopeOf(await gateway.ask('GET', `${root}/api/deployVirtualSensor/`, { body: request }))
    expect(first).toMatchObject({
      success: true,
      data: {
        location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [10, 56.005, 12] } },
        [`${sosa}observes`]: { object: request.propertyID },
      },
    })
    const id = first.data['id'] as string
    expect(id).toMatch(/^urn:ngsi-ld:Sensor:[0-9a-f]+:VS$/)
    const query = `location=56.005,10,12&propertyID=${encodeURIComponent(request.propertyID)}&updateInterval=1`
    const second = envelopeOf(await gateway.get(`${root}/api/deployVirtualSensor?${query}`))
    expect(second.data['id']).toBe(id)
    await vi.waitFor(async () => {
      const { data } = envelopeOf(await gateway.get(`${root}/api/status`))
      const shown = (data['virtualSensors'] as ShownState[]).find((one) => one.id === id)
      expect(shown).toMatchObject({
        state: 'running',
        // The broken one is replaced, and no source.
        sources: [idOf('Sensor', 'neighbour'), idOf('Sensor', 'second')],
        error: null,
      })
    }, patience)
    const { observedAt } = await near.published(id)
    const before = await metric('selvedge_tail_observations')
    await near.published(id, (result) => result.observedAt > observedAt)
    // Stored as a value and its time, not as a change of the entity.
    await vi.waitFor(async () => {
      expect(await metric('selvedge_tail_observations')).toBeGreaterThan(before)
    }, patience)
    const stopped = envelopeOf(
      await gateway.ask('POST', `${root}/api/stopVirtualSensor`, { body: { sensorID: id } }),
    )
    expect(stopped.success).toBe(true)
  })
})
