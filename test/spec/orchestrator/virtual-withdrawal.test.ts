/**
 * A sensor that an application subscribed to is replaced by a virtual one until it has healed, in a real gateway
 * process fed by MQTT. The withdrawal of the virtual sensor is a failure only for those who subscribed to it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { observationId, patience, sensorId, streamId } from '#test/spec/faults/stuck-site.ts'
import { createNeighbourSite, type Message, neighbours, observed, valuesOf } from './neighbour-site.ts'

const site = createNeighbourSite({}, { intervalMs: 10_000 })
const virtual = { stream: `${streamId('north')}:VS`, entity: `${observationId('north')}:VS` }

/** A course that all share, with a little of each device. */
const valueAt = (device: number, n: number): number =>
  Number((15 + 4 * Math.sin(n / 11) + 2 * Math.sin(n / 3.7) + 0.2 * Math.sin(n * (device + 2))).toFixed(2))

/** Sends a value of each device again and again, of its present time, until the work has settled. */
async function whileSending<T>(from: number, isStuck: boolean, work: () => Promise<T>): Promise<T> {
  let isOver = false
  const sending = (async () => {
    for (let n = from; !isOver; n++) {
      for (const [i, name] of neighbours.entries())
        await site.publish(name, [[Date.now(), i === 0 && isStuck ? 15.5 : valueAt(i, n)]])
      await pause(50)
    }
  })()
  try {
    return await work()
  } finally {
    isOver = true
    await sending
  }
}

beforeAll(async () => {
  await site.start()
  const begin = Date.now() - 200 * 10_000
  for (const [i, name] of neighbours.entries())
    await site.publish(
      name,
      Array.from({ length: 200 }, (_, n) => [begin + n * 10_000, valueAt(i, n)] as const),
    )
  await vi.waitFor(async () => expect(await site.state('north')).toBe('normal'), patience)
})
afterAll(site.end)

it('is a failure for subscribers of the virtual sensor, not for those of the sensor that it replaced', async () => {
  const ids = {
    real: await site.subscribe({ entities: [observed('north')], onFailure: 'switch' }),
    wide: await site.subscribe({ entities: [{ type: 'StreamObservation', idPattern: ':north:' }] }),
    virtual: '',
  }
  const isReplaced = ({ alternatives = [] }: Message) => alternatives[0]?.isVirtual === true
  await whileSending(200, true, async () => {
    const all = await site.messages(ids.real, isReplaced)
    expect(all.find(isReplaced)).toMatchObject({
      stream: streamId('north'),
      alternatives: [{ stream: virtual.stream }, {}, {}],
    })
  })
  ids.virtual = await site.subscribe({ entities: [{ ...observed('north'), id: virtual.entity }] })
  // The second one selects both.
  await expect.poll(site.watched, patience).toBe(4)

  await whileSending(1000, false, () =>
    vi.waitFor(async () => {
      expect((await site.client().get(`/ngsi-ld/v1/entities/${sensorId('north')}:VS`)).status).toBe(404)
    }, patience),
  )
  const isFailure = ({ type }: Message) => type === 'StreamFailure'
  const [failure, ...further] = (await site.messages(ids.virtual, isFailure)).filter(isFailure)
  expect(failure).toMatchObject({ reason: 'deleted', stream: virtual.stream })
  expect(failure!.alternatives!.map(({ stream }) => stream)).toContain(streamId('north'))
  expect(further).toEqual([])

  await expect.poll(site.watched, patience).toBe(3)
  for (const id of [ids.real, ids.wide]) await site.messages(id, ({ type }) => type === 'StreamRecovery')
  await site.publish('north', [[Date.now(), 16.25]])
  for (const id of [ids.real, ids.wide]) {
    const all = await site.messages(id, (one) => valuesOf([one], observationId('north')).includes(16.25))
    const notices = all.filter(({ type }) => type !== 'Notification')
    expect(new Set(notices.map(({ stream }) => stream))).toEqual(new Set([streamId('north')]))
    expect(new Set(notices.filter(isFailure).map(({ reason }) => reason))).toEqual(new Set(['fault']))
  }
})
