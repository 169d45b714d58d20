/**
 * Attributes that other clients wrote at the centre stay when everything is sent again, or deletions are sent
 * late, whether or not a deletion was sent before. A Selvedge reports foreign attributes; for any other
 * broker, modification times decide.
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
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: { uri: `${centre.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
      },
    })
  })
  afterEach(async () => {
    restoreLimits()
    await centre.close()
  })
  /** From now on the centre accepts no current values until allowed; it does accept past ones. */
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

  it('foreign attributes stay when an uplink selects more', async () => {
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
    // There is no sign of its start; the repeated history ends with the deleted entities.
    await pause(3000)
    await atRest()
    expect(await there()).toEqual(before)
  })

  it('foreign attributes stay when a deletion is sent late', async () => {
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

  it('attributes sent late and deleted meanwhile are deleted', async () => {
    await at('site', 'POST', '/entities', tank('told', { level: property(1) }))
    await arrive(1)
    const mend = cut()
    await at('site', 'POST', '/entities', tank('late', { level: property(1) }))
    await at('site', 'POST', '/entities/urn:tank:told/attrs', { label: property('late') })
    // Both are being sent when they are deleted.
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

  it('foreign attributes stay when the past of a deleted entity is sent late', async () => {
    const observed = (value: unknown, aheadMs = 0): object => ({
      ...property(value),
      observedAt: new Date(Date.now() + aheadMs).toISOString(),
    })
    await at('site', 'POST', '/entities', tank('shared', { level: property(1), label: observed('old') }))
    await at('site', 'POST', '/entities', tank('twice', { level: observed(1) }))
    await arrive(2)
    const mend = cut()
    await at('site', 'DELETE', '/entities/urn:tank:twice')
    // Requests pending now are all that is being sent; the rest is handled as past.
    await pause(700)
    await at('site', 'PATCH', '/entities/urn:tank:shared/attrs', { label: observed('last') })
    await at('site', 'DELETE', '/entities/urn:tank:shared/attrs/label')
    await at('site', 'POST', '/entities', tank('twice', { label: property('other') }))
    await at('site', 'DELETE', '/entities/urn:tank:twice')
    // An observation of a device whose clock is an hour ahead.
    await at('site', 'POST', '/entities', tank('early', { level: observed(1, 3_600_000) }))
    await at('site', 'DELETE', '/entities/urn:tank:early')
    await pause(2000)
    await at('centre', 'DELETE', '/entities/urn:tank:shared/attrs/label')
    await at('centre', 'POST', '/entities/urn:tank:shared/attrs', { label: observed('by another') })
    mend()
    await at('site', 'POST', '/entities', tank('last', {}))
    // What its past resurrects is deleted again.
    const all = [tank('shared', { level: 1, label: 'by another' }), tank('last', {})]
    await vi.waitFor(async () => expect(await there()).toEqual(all), withinMs)
    await atRest()
    await vi.waitFor(async () => expect(await there()).toEqual(all), withinMs)
  })
})
