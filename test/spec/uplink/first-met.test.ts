/**
 * A centre that was away when its uplink started is asked for its log position before anything is sent: then
 * it is known that nothing was sent before, and nothing is reconciled.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { createLesserBroker } from '#test/kit/lesser-broker.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const entities = '/ngsi-ld/v1/entities'
const withinMs = { interval: 100 }

describe('an uplink that starts while the centre is away', () => {
  const pair = siteAndCentre()
  let proxy: FaultProxy

  const uplink = async (): Promise<{
    trouble?: string
    sent: number
    histories: number
    reconcile?: object
  }> => (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()

  const begin = (url: string): Promise<unknown> =>
    pair.site.send('POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: { uri: `${url}/ngsi-ld/v1`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
      },
    })
  const isThere = (): Promise<void> =>
    vi.waitFor(
      async () => expect((await pair.centre.get(`${entities}/urn:tank:1`)).status).toBe(200),
      withinMs,
    )
  const comparesNothing = async (): Promise<void> => {
    // It reports its log position several times in between.
    await new Promise((resolve) => setTimeout(resolve, 2000))
    expect(await uplink()).toMatchObject({ state: 'live' })
    expect((await uplink()).reconcile).toBeUndefined()
  }

  beforeEach(async () => {
    setLimit('reconcileNoteMs', 300)
    proxy = await createFaultProxy({ target: { host: '127.0.0.1', port: pair.centre.httpPort! } })
  })
  afterEach(async () => {
    restoreLimits()
    await proxy.close()
  })

  it('reconciles nothing when the centre is available', async () => {
    await proxy.set('refused')
    const level = { type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' }
    await pair.site.send('POST', entities, { id: 'urn:tank:1', type: 'Tank', level })
    await begin(proxy.url)
    await vi.waitFor(async () => expect((await uplink()).trouble).toBeDefined(), withinMs)
    await proxy.set('none')
    await isThere()
    await comparesNothing()
  })

  it('asks for the position before the first request, even if that is past', async () => {
    // No scheduled check happens in between, and one scan sees creation and deletion.
    setLimit('reconcileNoteMs', 10_000)
    setLimit('uplinkPollMs', 1000)
    const away: Record<string, number> = { '/selvedge/v1/digests': 503 }
    const way = await createLesserBroker(pair.centre.httpPort!, away)
    await begin(way.url)
    await vi.waitFor(async () => expect(await uplink()).toMatchObject({ state: 'live' }), withinMs)
    expect(way.asked().join()).toContain('/selvedge/v1/digests')
    delete away['/selvedge/v1/digests']
    const level = { type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' }
    // On a busy machine the uplink may scan between creation and deletion; then there is another entity.
    let tanks = 0
    const createAndDelete = async (): Promise<void> => {
      const id = `urn:tank:${++tanks}`
      await pair.site.send('POST', entities, { id, type: 'Tank', level })
      await pair.site.send('DELETE', `${entities}/${id}`, undefined)
    }
    await vi.waitFor(
      async () => {
        await createAndDelete()
        expect((await uplink()).histories).toBeGreaterThan(0)
      },
      { interval: 2000 },
    )
    const asked = way.asked()
    const isQuestion = (one: string): boolean => one.startsWith('GET /selvedge/v1/digests')
    expect(asked.findIndex(isQuestion)).toBeGreaterThanOrEqual(0)
    expect(asked.findIndex(isQuestion)).toBeLessThan(asked.findIndex((one) => one.startsWith('POST')))
    await way.close()
  })
})
