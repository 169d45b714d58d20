/**
 * A subscription that asks for a switch, in a real gateway process fed by MQTT: while its sensor fails it gets
 * the observations of the best alternative, each once, through kills, and until the sensor has healed.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  createFaultSite,
  observationId,
  patience,
  streamId,
  yesterday,
} from '#test/spec/faults/stuck-site.ts'

const interval = 600_000
const device = (metersEast: number) => ({
  location: [10 + metersEast / 62_000, 56],
  fields: { temperature: { label: 'temperature', updateInterval: interval / 1000 } },
})
const devices = { north: device(0), near: device(200), far: device(3000) }
// A virtual sensor would be the first alternative.
const site = createFaultSite({ SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false' }, { provisioning: { devices } })
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'dashboard' }
const begin = yesterday() - 86_400_000
const stuck = begin + 120 * interval
const varying = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [from + i * interval, 20 + (i % 7) + (i % 3) / 10] as const)
const equal = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [from + i * interval, 25.5] as const)

interface Message {
  readonly id: string
  readonly type: string
  readonly subscriptionId: string
  readonly stream?: string
  readonly switchedTo?: unknown
  readonly updates?: string
  readonly alternatives?: readonly { readonly stream: string }[]
  readonly data?: readonly { readonly id: string }[]
}

const onFailure = (value: string) => ({
  endpoint: { notifierInfo: [{ key: 'selvedge:onFailure', value }] },
})
const ask = (entity: object, value: string, more: Readonly<Record<string, string>> = {}) =>
  site.client().ask('POST', path, {
    body: {
      type: 'Subscription',
      entities: [entity],
      watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
      notification: onFailure(value),
    },
    headers: { ...headers, ...more },
  })

/**
 * All messages of a subscription so far, once one meets a condition. None is ever confirmed. After a kill the
 * broker repeats some, with the same id.
 */
async function messages(id: string, isLast: (one: Message) => boolean): Promise<Message[]> {
  const answer = await fetch(`${site.gateway().httpUrl}${path}/${id}/notifications`, {
    headers: { ...headers, Accept: 'text/event-stream' },
    signal: AbortSignal.timeout(patience.timeout),
  })
  expect(answer.status).toBe(200)
  let text = ''
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const all = [...text.matchAll(/\ndata: (.*)\n\n/g)].map(([, data]) => JSON.parse(data!) as Message)
    if (all.some(isLast)) return [...new Map(all.map((one) => [one.id, one])).values()]
  }
  expect.unreachable('the stream ended')
}

const valuesOf = (all: readonly Message[], name: string): unknown[] =>
  all
    .flatMap(({ data = [] }) => data)
    .filter(({ id }) => id === observationId(name))
    .flatMap((entity) =>
      Object.entries(entity as object).flatMap(([key, attribute]: [string, { value?: unknown }]) =>
        key.endsWith('hasSimpleResult') ? [attribute.value] : [],
      ),
    )
const hasValue = (name: string, value: number) => (one: Message) => valuesOf([one], name).includes(value)
const switchTo = (name: string) => ({ stream: streamId(name), entity: observationId(name) })
/** When each device sends next. */
const next = { near: begin + 120 * interval, far: begin + 3 * interval }
async function publish(name: 'near' | 'far', ...values: number[]): Promise<void> {
  await site.publish(
    name,
    values.map((value, i) => [next[name] + i * interval, value]),
  )
  next[name] += values.length * interval
}

/** Ids of the entities that the broker's subscription selects. */
async function selected(id: string): Promise<unknown[]> {
  const reply = await site.client().get(`/ngsi-ld/v1/subscriptions/${id}`)
  return (reply.json() as { entities: { id?: string }[] }).entities.map((one) => one.id)
}

beforeAll(async () => {
  await site.start()
  for (const name of ['north', 'near']) await site.publish(name, varying(begin, 120))
  await site.publish('far', varying(begin, 3))
  for (const name of ['north', 'near'])
    await vi.waitFor(async () => expect(await site.state(name)).toBe('normal'), patience)
  await vi.waitFor(async () => {
    const reply = await site.client().get('/ranking/ngsi-ld/v1/entities?type=iot-stream:IotStream')
    expect(reply.json()).toHaveLength(3)
  }, patience)
})
afterAll(site.end)

describe('a subscription that switches', () => {
  const ids = { observation: '', type: '' }

  it('gets the observations of the best alternative while its sensor fails, each once', async () => {
    ids.observation = (await ask({ id: observationId('north'), type: 'StreamObservation' }, 'switch')).text
    ids.type = (await ask({ type: 'StreamObservation', idPattern: ':(north|near):' }, 'switch')).text
    await site.publish('north', equal(stuck, 10))
    for (const id of Object.values(ids)) {
      const all = await messages(id, ({ type }) => type === 'StreamFailure')
      expect(all.find(({ type }) => type === 'StreamFailure')).toMatchObject({
        subscriptionId: id,
        stream: streamId('north'),
        switchedTo: switchTo('near'),
        alternatives: [{ stream: streamId('near') }, { stream: streamId('far') }],
      })
      await expect.poll(() => selected(id), patience).toContain(observationId('near'))
    }
    await publish('near', 21.1, 22.1)
    for (const id of Object.values(ids)) {
      const all = await messages(id, hasValue('near', 22.1))
      expect(valuesOf(all, 'near')).toEqual([21.1, 22.1])
      expect(new Set(all.map(({ subscriptionId }) => subscriptionId))).toEqual(new Set([id]))
    }
  })

  it('goes on after a kill, also after one before the broker had the switch', async () => {
    await site.killAndStart()
    await publish('near', 23.1)
    for (const id of Object.values(ids))
      expect(valuesOf(await messages(id, hasValue('near', 23.1)), 'near')).toEqual([21.1, 22.1, 23.1])
    const type = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
    const entities = [{ id: observationId('north'), type }]
    const at = `/ngsi-ld/v1/subscriptions/${ids.observation}`
    const reply = await site.client().ask('PATCH', at, { body: { entities }, headers })
    expect(reply.status).toBe(204)
    await site.killAndStart()
    await expect
      .poll(() => selected(ids.observation), patience)
      .toEqual([observationId('north'), observationId('near')])
  })

  it('moves on when the alternative fails too', async () => {
    await publish('near', ...equal(0, 10).map(([, value]) => value))
    const isMoved = ({ updates }: Message) => updates !== undefined
    const all = await messages(ids.observation, isMoved)
    expect(all.find(isMoved)).toMatchObject({
      stream: streamId('north'),
      switchedTo: switchTo('far'),
      alternatives: [{ stream: streamId('far') }],
    })
    await expect
      .poll(() => selected(ids.observation), patience)
      .toEqual([observationId('north'), observationId('far')])
    await publish('far', 21.5)
    expect(valuesOf(await messages(ids.observation, hasValue('far', 21.5)), 'far')).toEqual([21.5])
  })

  it('ends when its sensor is normal again', async () => {
    await site.publish('north', varying(stuck + 12 * interval, 70))
    await messages(ids.observation, ({ type }) => type === 'StreamRecovery')
    await expect.poll(() => selected(ids.observation), patience).toEqual([observationId('north')])
    await publish('far', 22.5)
    await site.publish('north', [[stuck + 82 * interval, 22.9]])
    const all = await messages(ids.observation, hasValue('north', 22.9))
    expect(valuesOf(all, 'far')).toEqual([21.5])
    expect(all.filter(({ type }) => type === 'StreamFailure')).toHaveLength(2)
  })

  it('ends with its subscription', async () => {
    const one = `${path}/${ids.observation}`
    expect((await site.client().ask('DELETE', one, { headers })).status).toBe(204)
    expect((await site.client().get(`/ngsi-ld/v1/subscriptions/${ids.observation}`)).status).toBe(404)
  })
})

it('refuses a value that it does not know, and a tenant whose streams are not watched', async () => {
  const entity = { id: observationId('north'), type: 'StreamObservation' }
  const unknown = await ask(entity, 'wait')
  expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining('must be switch')])
  const other = await ask(entity, 'switch', { 'NGSILD-Tenant': 'city' })
  expect([other.status, other.text]).toEqual([400, expect.stringContaining('default tenant')])
})
