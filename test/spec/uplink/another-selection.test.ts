/** An uplink with a wider selection also reports which newly selected history was evicted here before. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 100 }
const perEntity = 20
/** The last value stays. */
const gone = perEntity - 1
setLimit('tailAgeMs', 300)
afterAll(restoreLimits)

let folder: string
let site: GatewayInside
let centre: GatewayInside
let works = 0

const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const level = (n: number) => ({
  level: { type: 'Property', value: n, observedAt: new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString() },
})
const metric = async (name: string): Promise<number> =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'm').exec((await site.get('/metrics')).text)?.[1])
/** Each commit folds some records and evicts some. */
const untilSo = (name: string, isSo: (value: number) => boolean): Promise<void> =>
  vi.waitFor(async () => {
    await send('POST', `${v1}/entities`, { id: `urn:other:${works++}`, type: 'Other' })
    expect(await metric(name)).toSatisfy(isSo)
  }, withinMs)
const there = async (type: string): Promise<Record<string, unknown>[]> =>
  (await centre.get(`${v1}/entities?type=${type}&options=keyValues`)).json()
const caughtUp = (type: string): Promise<void> =>
  vi.waitFor(async () => {
    expect(await there(type)).toHaveLength(1)
    expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
  }, withinMs)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-selection-'))
  site = await startGatewayInside(join(folder, 'site'))
  centre = await startGatewayInside(join(folder, 'centre'))
})
afterEach(async () => {
  await Promise.all([site.close(), centre.close()])
  rmSync(folder, { recursive: true })
})

it('reports each gap once', async () => {
  for (const type of ['Tank', 'Pump']) {
    await send('POST', `${v1}/entities`, { id: `urn:${type}`, type, ...level(0) })
    for (let n = 1; n < perEntity; n++) await send('PATCH', `${v1}/entities/urn:${type}/attrs`, level(n))
  }
  await untilSo('selvedge_tail_observations', (left) => left === 0)
  await site.close()
  site = await startGatewayInside(join(folder, 'site'), { SELVEDGE_HISTORY_MAX_AGE_DAYS: '1' })
  await untilSo('selvedge_history_evicted_total', (evicted) => evicted >= 2 * gone)

  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${centre.httpPort}${v1}`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })
  await caughtUp('Tank')
  const before = await there('HistoryGap')
  expect(before).toMatchObject([{ gapOf: 'urn:Tank', lostAtMost: gone, reason: 'age' }])
  await send('PATCH', `${v1}/subscriptions/urn:up`, { entities: [{ type: 'Tank' }, { type: 'Pump' }] })
  await vi.waitFor(async () => expect(await there('HistoryGap')).toHaveLength(2), withinMs)
  await caughtUp('Pump')
  expect(await there('HistoryGap')).toEqual([
    ...before,
    expect.objectContaining({ gapOf: 'urn:Pump', lostAtMost: gone, reason: 'age' }),
  ])
})
