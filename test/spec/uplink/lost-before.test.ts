/**
 * Attributes that an entity lost before it was deleted are deleted at the centre, whether changes are
 * replayed or current state is sent first; attributes of other clients stay.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 100 }
const pair = siteAndCentre()
const property = (value: unknown): object => ({ type: 'Property', value })

const at = async (
  place: 'site' | 'centre',
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; json(): unknown }> => {
  const answer = await pair[place].send(method, `${v1}${path}`, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  return answer
}
const there = async (id: string): Promise<unknown> => {
  const answer = await pair.centre.get(`${v1}/entities/${id}?options=keyValues`)
  return answer.status === 404 ? undefined : answer.json()
}

describe.each([
  ['one by one', 60_000],
  ['after a cut', 0],
])('changes that are sent %s', (_, behindMs) => {
  afterEach(restoreLimits)

  it('leave nothing of the entity', async () => {
    setLimit('uplinkBehindMs', behindMs)
    await at('site', 'POST', '/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: {
          uri: `http://127.0.0.1:${pair.centre.httpPort}${v1}`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })
    const ids = ['gone', 'again', 'shared'].map((name) => `urn:tank:${name}`)
    const [gone, again, shared] = ids as [string, string, string]
    for (const id of ids)
      await at('site', 'POST', '/entities', { id, type: 'Tank', level: property(1), label: property('old') })
    await vi.waitFor(async () => {
      for (const id of ids) expect(await there(id)).toMatchObject({ level: 1, label: 'old' })
      const seen = (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()
      expect(seen).toMatchObject({ state: 'live' })
    }, withinMs)
    await at('centre', 'POST', `/entities/${shared}/attrs`, { owner: property('town') })

    await pair.site.send('POST', '/selvedge/v1/uplinks/urn:up/pause', undefined)
    for (const id of ids) {
      await at('site', 'DELETE', `/entities/${id}/attrs/label`)
      await at('site', 'DELETE', `/entities/${id}`)
    }
    await at('site', 'POST', '/entities', { id: again, type: 'Tank', level: property(2) })
    // Too long ago for a replay, where that is disabled.
    await new Promise((resolve) => setTimeout(resolve, 20))
    await at('site', 'POST', '/entities', { id: 'urn:tank:last', type: 'Tank', level: property(3) })
    await pair.site.send('POST', '/selvedge/v1/uplinks/urn:up/resume', undefined)

    await vi.waitFor(async () => {
      expect(await there('urn:tank:last')).toBeDefined()
      expect(await there(gone)).toBeUndefined()
      expect(await there(again)).toEqual({ id: again, type: 'Tank', level: 2 })
      expect(await there(shared)).toEqual({ id: shared, type: 'Tank', owner: 'town' })
    }, withinMs)
  })
})
