/**
 * What somebody else wrote at the centre stays there when all is told anew, or late: that an entity was deleted here, or lost an
 * attribute, was told long before, or not yet. A gateway like this one says whose it is; of any other broker it is told by times.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 100 }
const pair = siteAndCentre()
const property = (value: unknown): object => ({ type: 'Property', value })
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const at = async (place: 'site' | 'centre', method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair[place].send(method, `${v1}${path}`, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const there = async (): Promise<readonly object[]> =>
  (await pair.centre.get(`${v1}/entities?type=Tank&options=keyValues`)).json()
const arrive = (count: number): Promise<void> =>
  vi.waitFor(async () => expect(await there()).toHaveLength(count), withinMs)
const status = async (): Promise<{ state: string }> =>
  (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()
const atRest = async (): Promise<void> => {
  await vi.waitFor(async () => expect((await status()).state).toBe('live'), withinMs)
  await pause(500)
}

describe.each([
  ['one like this', {}],
  ['another broker', { '/selvedge': 404 }],
])('at a centre that is %s', (_, unknown: Readonly<Record<string, number>>) => {
  let centre: LesserBroker
  let known: Record<string, number>
  beforeEach(async () => {
    known = { ...unknown }
    centre = await createLesserBroker(pair.centre.httpPort!, known)
    setLimit('uplinkArrivalMs', 1000)
    setLimit('uplinkBehindMs', 500)
    await at('site', 'POST', '/subscriptions', {
      ...{ id: 'urn:up', type: 'Subscription', entities: [{ type: 'Tank' }] },
      notification: {
        endpoint: { uri: `${centre.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
      },
    })
  })
  afterEach(async () => {
    restoreLimits()
    await centre.close()
  })
  /** From now on it takes nothing, until it is let; what it takes of the past it does. */
  const cut = (): (() => void) => {
    for (const path of ['/entityOperations', '/entities']) known[`${v1}${path}`] = 503
    return () => {
      for (const path of ['/entityOperations', '/entities']) delete known[`${v1}${path}`]
    }
  }
  const tank = (name: string, members: object): object => ({
    id: `urn:tank:${name}`,
    type: 'Tank',
    ...members,
  })

  it('what others wrote stays with an uplink that comes to select more', async () => {
    for (const name of ['moved', 'again'])
      await at('site', 'POST', '/entities', tank(name, { level: property(1), label: property('old') }))
    await arrive(2)
    await at('site', 'DELETE', '/entities/urn:tank:again/attrs/label')
    for (const name of ['moved', 'again']) await at('site', 'DELETE', `/entities/urn:tank:${name}`)
    await arrive(0)
    await at('site', 'POST', '/entities', tank('again', { level: property(2) }))
    await arrive(1)
    await pause(1500)
    await at(
      'centre',
      'POST',
      '/entities',
      tank('moved', { level: property(7), label: property('by another') }),
    )
    await at('centre', 'POST', '/entities/urn:tank:again/attrs', { label: property('town') })
    await atRest()
    const before = await there()
    await at('site', 'PATCH', '/subscriptions/urn:up', { entities: [{ type: 'Tank' }, { type: 'Pump' }] })
    // Nothing tells when it begins; the history that goes up anew ends with what was deleted.
    await pause(3000)
    await atRest()
    expect(await there()).toEqual(before)
  })

  it('what others wrote stays where it is told late what went', async () => {
    for (const name of ['moved', 'shared', 'bare'])
      await at('site', 'POST', '/entities', tank(name, { level: property(1), label: property('old') }))
    await at('site', 'POST', '/entities', tank('gone', { level: property(1) }))
    await arrive(4)
    const mend = cut()
    for (const name of ['moved', 'gone', 'bare']) await at('site', 'DELETE', `/entities/urn:tank:${name}`)
    await at('site', 'DELETE', '/entities/urn:tank:shared/attrs/label')
    await at('site', 'DELETE', '/entities/urn:tank:shared/attrs/level')
    await pause(1500)
    for (const name of ['moved', 'bare']) await at('centre', 'DELETE', `/entities/urn:tank:${name}`)
    await at(
      'centre',
      'POST',
      '/entities',
      tank('moved', { level: property(7), label: property('by another') }),
    )
    await at('centre', 'POST', '/entities', tank('bare', {}))
    await at('centre', 'POST', '/entities/urn:tank:shared/attrs', { label: property('by another') })
    mend()
    await arrive(3)
    await atRest()
    const byId = Object.fromEntries((await there()).map((one) => [(one as { id: string }).id, one]))
    expect(byId).toEqual({
      'urn:tank:moved': tank('moved', { level: 7, label: 'by another' }),
      'urn:tank:shared': tank('shared', { label: 'by another' }),
      'urn:tank:bare': tank('bare', {}),
    })
  })

  it('what was told late, and went meanwhile, goes', async () => {
    await at('site', 'POST', '/entities', tank('told', { level: property(1) }))
    await arrive(1)
    const mend = cut()
    await at('site', 'POST', '/entities', tank('late', { level: property(1) }))
    await at('site', 'POST', '/entities/urn:tank:told/attrs', { label: property('late') })
    // Both are on their way when they go.
    await pause(700)
    await at('site', 'DELETE', '/entities/urn:tank:late')
    await at('site', 'DELETE', '/entities/urn:tank:told/attrs/label')
    await pause(2000)
    mend()
    await at('site', 'POST', '/entities', tank('last', {}))
    await vi.waitFor(async () => expect(await there()).toContainEqual(tank('last', {})), withinMs)
    await atRest()
    expect(await there()).toEqual([tank('told', { level: 1 }), tank('last', {})])
  })

  it('what others wrote stays where the past of what went is told late', async () => {
    const observed = (value: unknown, aheadMs = 0): object => ({
      ...{ ...property(value), observedAt: new Date(Date.now() + aheadMs).toISOString() },
    })
    await at('site', 'POST', '/entities', tank('shared', { level: property(1), label: observed('old') }))
    await at('site', 'POST', '/entities', tank('twice', { level: observed(1) }))
    await arrive(2)
    const mend = cut()
    await at('site', 'DELETE', '/entities/urn:tank:twice')
    // What waits now is all that is on its way; the rest is found as past.
    await pause(700)
    await at('site', 'PATCH', '/entities/urn:tank:shared/attrs', { label: observed('last') })
    await at('site', 'DELETE', '/entities/urn:tank:shared/attrs/label')
    await at('site', 'POST', '/entities', tank('twice', { label: property('other') }))
    await at('site', 'DELETE', '/entities/urn:tank:twice')
    // Of a device whose clock is an hour ahead.
    await at('site', 'POST', '/entities', tank('early', { level: observed(1, 3_600_000) }))
    await at('site', 'DELETE', '/entities/urn:tank:early')
    await pause(2000)
    await at('centre', 'DELETE', '/entities/urn:tank:shared/attrs/label')
    await at('centre', 'POST', '/entities/urn:tank:shared/attrs', { label: observed('by another') })
    mend()
    await at('site', 'POST', '/entities', tank('last', {}))
    // What its past brings back goes again.
    const all = [tank('shared', { level: 1, label: 'by another' }), tank('last', {})]
    await vi.waitFor(async () => expect(await there()).toEqual(all), withinMs)
    await atRest()
    await vi.waitFor(async () => expect(await there()).toEqual(all), withinMs)
  })
})
