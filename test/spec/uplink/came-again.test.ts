/**
 * An entity that was deleted in an outage and is re-created while its history is still pending: the centre
 * holds the new entity without anything of its earlier lives.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import type { GatewayInside } from '#test/kit/gateway-inside.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 100 }
const pair = siteAndCentre()
const failing: Record<string, number> = {}
const [again, other] = ['urn:tank:again', 'urn:tank:other']
let broker: LesserBroker
beforeEach(async () => {
  for (const path of Object.keys(failing)) delete failing[path]
  broker = await createLesserBroker(pair.centre.httpPort!, failing)
  await deletedInCut()
})
afterEach(async () => {
  await broker.close()
  restoreLimits()
})

const property = (value: unknown): object => ({ type: 'Property', value })
const observed = (n: number): object => ({ ...property(n), observedAt: `2026-01-01T00:00:0${n}Z` })
/** The observed attributes of the re-created entity. */
const levels = async (of: GatewayInside): Promise<unknown> => {
  const path = `${v1}/temporal/entities/${again}?attrs=level&options=temporalValues`
  const { level } = (await of.get(path)).json() as { level: { values: [number, string][] } }
  return level.values.map(([value]) => value).filter((value) => value > 1)
}
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair.site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const pause = (): Promise<void> => send('POST', '/selvedge/v1/uplinks/urn:up/pause')
const resume = (): Promise<void> => send('POST', '/selvedge/v1/uplinks/urn:up/resume')
const create = (attributes: object): Promise<void> =>
  send('POST', `${v1}/entities`, { id: again, type: 'Tank', ...attributes })
const there = async (id: string): Promise<object> =>
  (await pair.centre.get(`${v1}/entities/${id}?options=keyValues`)).json()
const status = async (): Promise<{ oldest?: string; state: string }> =>
  (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()
const isLive = async (): Promise<void> => expect(await status()).toMatchObject({ state: 'live' })

/** The entity is deleted in an outage; afterwards the centre accepts current values, but no history. */
async function deletedInCut(): Promise<void> {
  setLimit('uplinkBehindMs', 0)
  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: {
      endpoint: { uri: `${broker.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
    },
  })
  for (const id of [again, other])
    await send('POST', `${v1}/entities`, { id, type: 'Tank', level: property(1), label: property('old') })
  await vi.waitFor(async () => {
    for (const id of [again, other]) expect(await there(id)).toMatchObject({ label: 'old' })
    await isLive()
  }, withinMs)
  await pause()
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(5) })
  await send('DELETE', `${v1}/entities/${again}`)
  await new Promise((resolve) => setTimeout(resolve, 30))
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(6) })
  failing[`${v1}/temporal`] = 503
  await resume()
  await vi.waitFor(async () => {
    expect(await status()).toMatchObject({ historyTrouble: expect.stringContaining('503') as string })
    expect(await there(other)).toMatchObject({ level: 6 })
  }, withinMs)
  setLimit('uplinkBehindMs', 60_000)
}

it('holds the new entity when its creation is sent before the history', async () => {
  await pause()
  await create({ level: observed(2) })
  await send('PATCH', `${v1}/entities/${again}/attrs`, { level: observed(3) })
  await resume()
  await vi.waitFor(async () => expect(await there(again)).toMatchObject({ level: 3 }), withinMs)
  delete failing[`${v1}/temporal`]
  await vi.waitFor(isLive, withinMs)
  expect(await there(again)).toEqual({ id: again, type: 'Tank', level: 3 })
  for (const place of [pair.site, pair.centre]) expect(await levels(place)).toEqual([2, 3])
})

it('holds the new entity when its creation is sent after the history', async () => {
  const { oldest } = await status()
  failing[`${v1}/entityOperations`] = 503
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(7) })
  await vi.waitFor(async () => expect(await status()).toMatchObject({ state: 'offline' }), withinMs)
  await create({ level: property(2) })
  delete failing[`${v1}/temporal`]
  await vi.waitFor(async () => expect((await status()).oldest).not.toBe(oldest), withinMs)
  delete failing[`${v1}/entityOperations`]
  // It is live as soon as the change of the other entity is accepted.
  await vi.waitFor(async () => expect(await there(again)).toMatchObject({ level: 2 }), withinMs)
  await vi.waitFor(isLive, withinMs)
  expect(await there(again)).toEqual({ id: again, type: 'Tank', level: 2 })
})

it('holds the new entity when it was created in a second outage', async () => {
  await pause()
  await create({ level: property(2) })
  await new Promise((resolve) => setTimeout(resolve, 30))
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(7) })
  setLimit('uplinkBehindMs', 0)
  await resume()
  await vi.waitFor(async () => expect(await there(again)).toMatchObject({ level: 2 }), withinMs)
  delete failing[`${v1}/temporal`]
  await vi.waitFor(isLive, withinMs)
  expect(await there(again)).toEqual({ id: again, type: 'Tank', level: 2 })
})
