/**
 * What somebody else wrote at the centre stays there when all is told anew: that an entity was deleted here, or lost an attribute,
 * was told long before.
 */
import { expect, it, vi } from 'vitest'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { timeout: 20_000, interval: 100 }
const pair = siteAndCentre()
const property = (value: unknown): object => ({ type: 'Property', value })

const at = async (place: 'site' | 'centre', method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair[place].send(method, `${v1}${path}`, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const there = async (): Promise<readonly object[]> =>
  (await pair.centre.get(`${v1}/entities?type=Tank&options=keyValues`)).json()
const arrive = (count: number): Promise<void> =>
  vi.waitFor(async () => expect(await there()).toHaveLength(count), withinMs)
const subscribe = (): Promise<void> =>
  at('site', 'POST', '/subscriptions', {
    ...{ id: 'urn:up', type: 'Subscription', entities: [{ type: 'Tank' }] },
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${pair.centre.httpPort}${v1}`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })
const status = async (): Promise<{ state: string }> =>
  (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()

it('what others wrote stays with an uplink that comes to select more', async () => {
  await subscribe()
  for (const name of ['moved', 'again'])
    await at('site', 'POST', '/entities', {
      ...{ id: `urn:tank:${name}`, type: 'Tank', level: property(1), label: property('old') },
    })
  await arrive(2)
  await at('site', 'DELETE', '/entities/urn:tank:again/attrs/label')
  for (const name of ['moved', 'again']) await at('site', 'DELETE', `/entities/urn:tank:${name}`)
  await arrive(0)
  await at('site', 'POST', '/entities', { id: 'urn:tank:again', type: 'Tank', level: property(2) })
  await arrive(1)
  await at('centre', 'POST', '/entities', {
    ...{ id: 'urn:tank:moved', type: 'Tank', level: property(7), label: property('by another gateway') },
  })
  await at('centre', 'POST', '/entities/urn:tank:again/attrs', { label: property('town') })
  await vi.waitFor(async () => expect((await status()).state).toBe('live'), withinMs)
  const before = await there()
  await at('site', 'PATCH', '/subscriptions/urn:up', { entities: [{ type: 'Tank' }, { type: 'Pump' }] })
  // Nothing tells when it begins; the history that goes up anew ends with what was deleted.
  await new Promise((resolve) => setTimeout(resolve, 3000))
  await vi.waitFor(async () => expect((await status()).state).toBe('live'), withinMs)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(await there()).toEqual(before)
}, 60_000)
