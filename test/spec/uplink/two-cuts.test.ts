/**
 * Consecutive outages: what was sent or dropped with the first is no part of the second.
 */
import { afterAll, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const tank = 'urn:tank:1'
const withinMs = { interval: 100 }
const pair = siteAndCentre()
setLimit('uplinkBudgetMs', 300)
setLimit('uplinkMeasureMs', 100)
setLimit('uplinkBehindMs', 300)
setLimit('uplinkBudgetPartMs', 100)
afterAll(restoreLimits)

const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair.site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const timeOf = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString()
const level = (n: number): object => ({
  level: { type: 'Property', value: n, observedAt: timeOf(n) },
})
interface GapView {
  readonly id: string
  readonly gapFrom: { readonly '@value': string }
}
const gapsThere = async (): Promise<readonly GapView[]> =>
  (await pair.centre.get(`${v1}/entities?type=HistoryGap&options=keyValues`)).json()
const status = async (): Promise<{ state: string; toBeLetGo: number }> =>
  (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()

it('losses of a budget are reported with their own outage', async () => {
  let n = 0
  await send('POST', `${v1}/entities`, { id: tank, type: 'Tank', ...level(n) })
  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${pair.centre.httpPort}${v1}`,
        notifierInfo: [
          { key: 'selvedge:mode', value: 'uplink' },
          { key: 'selvedge:budget-observations', value: '1' },
        ],
      },
    },
  })
  const isLive = async () => {
    expect((await pair.centre.get(`${v1}/entities/${tank}`)).json()).toMatchObject({ level: { value: n } })
    expect(await status()).toMatchObject({ state: 'live' })
  }
  await vi.waitFor(isLive, withinMs)
  let before: readonly string[] = []
  for (let cut = 0; cut < 2; cut++) {
    const first = n + 1
    await send('POST', '/selvedge/v1/uplinks/urn:up/pause')
    for (let i = 0; i < 10; i++) await send('PATCH', `${v1}/entities/${tank}/attrs`, level(++n))
    await vi.waitFor(async () => {
      const { state, toBeLetGo } = await status()
      expect(state).toBe('paused')
      expect(toBeLetGo).toBeGreaterThan(5)
    }, withinMs)
    await send('POST', '/selvedge/v1/uplinks/urn:up/resume')
    let gaps: readonly GapView[] = []
    await vi.waitFor(async () => {
      gaps = await gapsThere()
      expect(gaps.length).toBeGreaterThan(before.length)
      await isLive()
      expect(await gapsThere()).toHaveLength(gaps.length)
    }, withinMs)
    const told = gaps.filter(({ id }) => !before.includes(id))
    before = gaps.map(({ id }) => id)
    for (const { gapFrom } of told)
      expect(Date.parse(gapFrom['@value'])).toBeGreaterThanOrEqual(Date.parse(timeOf(first)))
  }
})
