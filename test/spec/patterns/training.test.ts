/**
 * Training in a real gateway process: days of two streams from its history, with and without labels; the trained
 * model is registered as it is. Also cancelling, and the limits.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { featuresOf } from '#plugins/patterns/models/features.ts'
import { parseModel } from '#plugins/patterns/models/pattern-model.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-training-'))
const patience = { interval: 100 }
const hourMs = 3_600_000
const firstDay = Date.UTC(2026, 2, 2)
const dayCount = 20
const path = '/patterns/api/model/train'

let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)

const iso = (time: number): string => new Date(time).toISOString().replace('.000Z', 'Z')
const midnight = (day: number): number => firstDay + day * 24 * hourMs
/** A Monday is day 0. */
const isWeekend = (day: number): boolean => day % 7 >= 5

/** A course with a peak at noon on working days. */
function valuesOf(name: string): { time: number; value: number }[] {
  return Array.from({ length: dayCount * 24 }, (_, i) => {
    const [day, hour] = [Math.floor(i / 24), i % 24]
    const peak = (isWeekend(day) ? 20 : 80) * Math.exp(-((hour - 12) ** 2) / 18)
    return { time: midnight(day) + hour * hourMs, value: peak + ((i * 7 + name.length) % 5) }
  })
}

async function start(): Promise<void> {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: { SELVEDGE_MQTT_PORT: 'off', SELVEDGE_PATTERNS_ENABLED: 'true', TZ: 'UTC' },
  })
}

beforeAll(async () => {
  await start()
  for (const name of ['flow', 'speed']) {
    const [stream, observation] = [`urn:ngsi-ld:IotStream:${name}`, `urn:ngsi-ld:StreamObservation:${name}`]
    const to = (object: string) => ({ type: 'Relationship', object })
    const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', [
      {
        id: stream,
        type: `${iotStream}IotStream`,
        [`${sosa}observes`]: to(`urn:ngsi-ld:ObservableProperty:${name}`),
        location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [10, 56] } },
      },
      { id: observation, type: `${iotStream}StreamObservation`, [`${iotStream}belongsTo`]: to(stream) },
    ])
    expect(made.status).toBe(201)
    const instances = valuesOf(name).map(({ time, value }) => ({
      type: 'Property',
      value,
      observedAt: iso(time),
    }))
    const written = await client().send('POST', `/ngsi-ld/v1/temporal/entities/${observation}/attrs`, {
      [`${sosa}hasSimpleResult`]: instances,
    })
    expect(written.status).toBeLessThan(300)
  }
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const request = {
  observableProperties: ['urn:ngsi-ld:ObservableProperty:flow', 'urn:ngsi-ld:ObservableProperty:speed'],
  streams: ['urn:ngsi-ld:IotStream:flow', 'urn:ngsi-ld:IotStream:speed'],
  from: iso(firstDay),
  to: iso(midnight(dayCount)),
  temporal: { window: 24, step: 24, hours: '00:00-24:00' },
}

interface Training {
  readonly id: string
  readonly state: string
  readonly progress: number
  readonly values: number
  readonly windows: number
  readonly message?: string
  readonly document: { readonly labels?: readonly string[] }
}

async function started(body: object): Promise<Training> {
  const answer = await client().send('POST', path, body)
  expect(answer.status).toBe(202)
  const training = answer.json() as Training
  expect(answer.headers['location']).toBe(`${path}/${training.id}`)
  return training
}

const ended = async (body: object): Promise<Training> => endOf((await started(body)).id)

function endOf(id: string): Promise<Training> {
  return vi.waitFor(async () => {
    const training = (await client().get(`${path}/${id}`)).json() as Training
    expect(['trained', 'failed']).toContain(training.state)
    return training
  }, patience)
}

describe('a training', () => {
  it('finds kinds of days without labels, and makes a model that can be registered', async () => {
    const training = await ended({ ...request, method: 'gaussian-mixture', components: 2 })
    expect(training).toMatchObject({
      state: 'trained',
      progress: 1,
      windows: dayCount,
      values: 2 * dayCount * 24,
    })
    expect(training.document).toMatchObject({
      observableProperties: request.observableProperties,
      labels: ['pattern-1', 'pattern-2'],
      features: 'segments',
      temporal: request.temporal,
    })
    const registered = await client().send('POST', '/patterns/api/model', training.document)
    expect(registered.status).toBe(201)
  })

  it('learns labels from examples', async () => {
    const examples = Array.from({ length: 14 }, (_, day) => ({
      from: iso(midnight(day)),
      to: iso(midnight(day + 1)),
      label: isWeekend(day) ? 'weekend' : 'workday',
    }))
    const training = await ended({ ...request, method: 'nearest-neighbour', examples })
    expect(training).toMatchObject({ state: 'trained', windows: 14 })
    const model = parseModel((training.document as { model?: unknown }).model)
    const [flow, speed] = [valuesOf('flow'), valuesOf('speed')]
    const found = [14, 15, 16, 17, 18, 19].map((day) => {
      const window = [flow, speed].map((all) =>
        Float64Array.from(all.slice(day * 24, day * 24 + 24), ({ value }) => value),
      )
      return model.classify(featuresOf('segments', window))
    })
    const expected = ['workday', 'workday', 'workday', 'workday', 'workday', 'weekend']
    expect(found).toEqual(expected.map((label) => ({ label, confidence: 1 })))
  })

  it('reports why it failed', async () => {
    const streams = ['urn:ngsi-ld:IotStream:none', 'urn:ngsi-ld:IotStream:flow']
    const nowhere = { ...request, streams, method: 'k-means' }
    expect(await ended(nowhere)).toMatchObject({
      state: 'failed',
      message: 'streams[0]: has no numeric values in this span',
    })
    const short = { ...request, to: iso(midnight(1)), method: 'k-means' }
    expect(await ended(short)).toMatchObject({
      state: 'failed',
      message: expect.stringMatching(/1 windows/) as string,
    })
  })

  it('runs alone, is cancelled by DELETE, and leaves the gateway free', async () => {
    // Many overlapping windows, and many numbers of components to try.
    const long = {
      ...request,
      temporal: { window: 12, step: 1 },
      method: 'gaussian-mixture',
      levels: 'removed',
    }
    const { id } = await started(long)
    const refused = await client().send('POST', path, long)
    expect(refused.status).toBe(503)
    expect((await client().send('DELETE', `${path}/${id}`, undefined)).status).toBe(204)
    expect((await client().get(`${path}/${id}`)).status).toBe(404)
    const next = await ended({ ...request, method: 'k-means', components: 2 })
    expect(next.state).toBe('trained')
    const all = (await client().get(path)).json() as { count: number; result: Training[] }
    expect(all.result.map((one) => one.id)).toContain(next.id)
  })

  it('survives a kill: an interrupted one runs again, and a result stays', async () => {
    const body = { ...request, method: 'k-means', components: 2 }
    const before = await ended(body)
    const { id } = await started({ ...body, seed: 2, temporal: { window: 12, step: 1 } })
    await gateway.kill()
    await start()
    expect(await endOf(id)).toMatchObject({ id, state: 'trained', progress: 1 })
    expect(await endOf(before.id)).toEqual(before)
    expect((await client().send('DELETE', `${path}/${id}`, undefined)).status).toBe(204)
    expect((await client().get(`${path}/${id}`)).status).toBe(404)
  })

  it.each([
    [{ method: 'svm' }, 'method: must be one of'],
    [{ observableProperties: ['urn:p:1'] }, 'observableProperties: must have one id for each of the 2'],
    [{ streams: [] }, 'streams: must have 1 to'],
    [{ from: 'yesterday' }, 'from: must be a time'],
    [{ to: '2020-01-01T00:00:00Z' }, 'to: must be after from'],
    [{ components: 0 }, 'components: must be a whole number'],
    [{ method: 'nearest-neighbour' }, 'examples: must be a list of examples'],
    [{ windows: 3 }, 'body.windows: is not known here'],
    [{ levels: 'some' }, 'levels: must be one of kept, removed'],
  ])('rejects %j', async (wrong, message) => {
    const answer = await client().send('POST', path, { ...request, ...wrong })
    expect(answer.json()).toMatchObject({ status: 400, message: expect.stringContaining(message) as string })
  })
})
