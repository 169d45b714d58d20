/**
 * What was deleted in a cut and comes again while its history is still to go up is there as it is, without what it was before.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import type { GatewayInside } from '#test/kit/gateway-inside.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { timeout: 30_000, interval: 100 }
const pair = siteAndCentre()
const failing: Record<string, number> = {}
let broker: LesserBroker
beforeEach(async () => {
  broker = await createLesserBroker(pair.centre.httpPort!, failing)
})
afterEach(async () => {
  await broker.close()
  restoreLimits()
})

const property = (value: unknown): object => ({ type: 'Property', value })
const observed = (n: number): object => ({ ...property(n), observedAt: `2026-01-01T00:00:0${n}Z` })
/** Of what came again, as far as they were observed. */
const levels = async (of: GatewayInside): Promise<unknown> => {
  const path = `${v1}/temporal/entities/urn:tank:again?attrs=level&options=temporalValues`
  const { level } = (await of.get(path)).json() as { level: { values: [number, string][] } }
  return level.values.map(([value]) => value).filter((value) => value > 1)
}
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair.site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const there = async (id: string): Promise<object> =>
  (await pair.centre.get(`${v1}/entities/${id}?options=keyValues`)).json()
const status = async (): Promise<object> => (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()

it('is there without what it was', async () => {
  const [again, other] = ['urn:tank:again', 'urn:tank:other']
  setLimit('uplinkBehindMs', 0)
  await send('POST', `${v1}/subscriptions`, {
    ...{ id: 'urn:up', type: 'Subscription', entities: [{ type: 'Tank' }] },
    notification: {
      endpoint: { uri: `${broker.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
    },
  })
  for (const id of [again, other])
    await send('POST', `${v1}/entities`, { id, type: 'Tank', level: property(1), label: property('old') })
  await vi.waitFor(async () => {
    for (const id of [again, other]) expect(await there(id)).toMatchObject({ label: 'old' })
    expect(await status()).toMatchObject({ state: 'live' })
  }, withinMs)
  await send('POST', '/selvedge/v1/uplinks/urn:up/pause')
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(5) })
  await send('DELETE', `${v1}/entities/${again}`)
  await new Promise((resolve) => setTimeout(resolve, 30))
  await send('PATCH', `${v1}/entities/${other}/attrs`, { level: property(6) })
  failing[`${v1}/temporal`] = 503
  await send('POST', '/selvedge/v1/uplinks/urn:up/resume')
  await vi.waitFor(async () => {
    expect(await status()).toMatchObject({ historyTrouble: expect.stringContaining('503') as string })
    expect(await there(other)).toMatchObject({ level: 6 })
  }, withinMs)
  setLimit('uplinkBehindMs', 60_000)
  await send('POST', '/selvedge/v1/uplinks/urn:up/pause')
  await send('POST', `${v1}/entities`, { id: again, type: 'Tank', level: observed(2) })
  await send('PATCH', `${v1}/entities/${again}/attrs`, { level: observed(3) })
  await send('POST', '/selvedge/v1/uplinks/urn:up/resume')
  await vi.waitFor(async () => expect(await there(again)).toMatchObject({ level: 3 }), withinMs)
  delete failing[`${v1}/temporal`]
  await vi.waitFor(async () => expect(await status()).toMatchObject({ state: 'live' }), withinMs)
  expect(await there(again)).toEqual({ id: again, type: 'Tank', level: 3 })
  expect(await levels(pair.site)).toEqual([2, 3])
  expect(await levels(pair.centre)).toEqual([2, 3])
}, 90_000)
