/**
 * A subscription that asks for a switch, in a real gateway process fed by MQTT: while its sensor fails it gets
 * the observations of the best alternative, each once, through kills, and until the sensor has healed.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { observationId, patience, streamId } from '#test/spec/faults/stuck-site.ts'
import {
  createNeighbourSite,
  type Message,
  type Neighbour,
  observed,
  stuck,
  valuesOf,
  varying,
} from './neighbour-site.ts'

// A virtual sensor would be the first alternative.
const site = createNeighbourSite({ SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false' })
const hasValue = (name: Neighbour, value: number) => (one: Message) =>
  valuesOf([one], observationId(name)).includes(value)
const switchTo = (name: Neighbour) => ({ stream: streamId(name), entity: observationId(name) })

/** Ids of the entities that the broker's subscription selects. */
async function selected(id: string): Promise<unknown[]> {
  const reply = await site.client().get(`/ngsi-ld/v1/subscriptions/${id}`)
  return (reply.json() as { entities: { id?: string }[] }).entities.map((one) => one.id)
}

beforeAll(site.begin)
afterAll(site.end)

describe('a subscription that switches', () => {
  const ids = { observation: '', type: '' }

  it('gets the observations of the best alternative while its sensor fails, each once', async () => {
    ids.observation = await site.subscribe({ entities: [observed('north')], onFailure: 'switch' })
    const wide = { type: 'StreamObservation', idPattern: ':(north|near):' }
    ids.type = await site.subscribe({ entities: [wide], onFailure: 'switch' })
    await site.send('north', stuck(10))
    for (const id of Object.values(ids)) {
      const all = await site.messages(id, ({ type }) => type === 'StreamFailure')
      expect(all.find(({ type }) => type === 'StreamFailure')).toMatchObject({
        subscriptionId: id,
        stream: streamId('north'),
        switchedTo: switchTo('near'),
        alternatives: [{ stream: streamId('near') }, { stream: streamId('far') }],
      })
      await expect.poll(() => selected(id), patience).toContain(observationId('near'))
    }
    await site.send('near', [21.1, 22.1])
    for (const id of Object.values(ids)) {
      const all = await site.messages(id, hasValue('near', 22.1))
      expect(valuesOf(all, observationId('near'))).toEqual([21.1, 22.1])
      expect(new Set(all.map(({ subscriptionId }) => subscriptionId))).toEqual(new Set([id]))
    }
  })

  it('goes on after a kill, also after one before the broker had the switch', async () => {
    await site.killAndStart()
    await site.send('near', [23.1])
    for (const id of Object.values(ids)) {
      const all = await site.messages(id, hasValue('near', 23.1))
      expect(valuesOf(all, observationId('near'))).toEqual([21.1, 22.1, 23.1])
    }
    const entities = [
      { ...observed('north'), type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation' },
    ]
    const reply = await site.client().ask('PATCH', `/ngsi-ld/v1/subscriptions/${ids.observation}`, {
      body: { entities },
      headers: { 'Content-Type': 'application/json' },
    })
    expect(reply.status).toBe(204)
    await site.killAndStart()
    await expect
      .poll(() => selected(ids.observation), patience)
      .toEqual([observationId('north'), observationId('near')])
  })

  it('moves on when the alternative fails too', async () => {
    await site.send('near', stuck(10))
    const isMoved = ({ updates }: Message) => updates !== undefined
    const all = await site.messages(ids.observation, isMoved)
    expect(all.find(isMoved)).toMatchObject({
      stream: streamId('north'),
      switchedTo: switchTo('far'),
      alternatives: [{ stream: streamId('far') }],
    })
    await expect
      .poll(() => selected(ids.observation), patience)
      .toEqual([observationId('north'), observationId('far')])
    await site.send('far', [21.5])
    const later = await site.messages(ids.observation, hasValue('far', 21.5))
    expect(valuesOf(later, observationId('far'))).toEqual([21.5])
  })

  it('ends when its sensor is normal again', async () => {
    await site.send('north', varying(70))
    await site.messages(ids.observation, ({ type }) => type === 'StreamRecovery')
    await expect.poll(() => selected(ids.observation), patience).toEqual([observationId('north')])
    await site.send('far', [22.5])
    await site.send('north', [22.9])
    const all = await site.messages(ids.observation, hasValue('north', 22.9))
    expect(valuesOf(all, observationId('far'))).toEqual([21.5])
    expect(all.filter(({ type }) => type === 'StreamFailure')).toHaveLength(2)
  })

  it('ends with its subscription', async () => {
    expect(await site.unsubscribe(ids.observation)).toBe(204)
    expect((await site.client().get(`/ngsi-ld/v1/subscriptions/${ids.observation}`)).status).toBe(404)
  })
})

it('refuses a value that it does not know, and a tenant whose streams are not watched', async () => {
  const unknown = await site.ask({ entities: [observed('north')], onFailure: 'wait' })
  expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining('must be switch')])
  const other = await site.ask({ entities: [observed('north')], onFailure: 'switch', tenant: 'city' })
  expect([other.status, other.text]).toEqual([400, expect.stringContaining('default tenant')])
})
