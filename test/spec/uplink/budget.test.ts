/**
 * The backlog of an uplink is bounded. Beyond its budget numbers are thinned and dropped, each loss is
 * reported to the centre as a HistoryGap, current values and states are still sent, and the rest adds up to
 * what was observed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const seconds = (n: number): string =>
  new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')
const withinMs = { interval: 200 }
const count = 100

interface GapView {
  readonly gapOf: string
  readonly gapAttribute: string
  readonly lost: number
  readonly reason: string
}

describe('the budget of an uplink', () => {
  let folder: string
  let site: GatewayProcess
  let centre: GatewayProcess

  const startCentre = (port = 0) =>
    startGatewayProcess({ dataFolder: join(folder, 'centre'), env: { SELVEDGE_HTTP_PORT: String(port) } })
  const here = () => httpClient(site.httpUrl)
  const there = () => httpClient(centre.httpUrl)
  const send = async (method: string, path: string, body: unknown): Promise<void> => {
    const answer = await here().send(method, path, body)
    expect(answer.status < 300 ? '' : answer.text).toBe('')
  }
  const observed = (value: unknown, at: number): object => ({
    type: 'Property',
    value,
    observedAt: seconds(at),
  })

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-budget-'))
    ;[site, centre] = await Promise.all([
      startGatewayProcess({
        dataFolder: join(folder, 'site'),
        env: { SELVEDGE_LIMITS: 'uplinkBudgetMs=2000,uplinkMeasureMs=500' },
      }),
      startCentre(),
    ])
  })
  afterEach(async () => {
    await Promise.all([site.stop(), centre.stop()])
    rmSync(folder, { recursive: true })
  })

  it('reports gaps that add up', async () => {
    await send('POST', entities, {
      id: 'urn:T:1',
      type: 'T',
      level: observed(0, 0),
      door: observed('open', 0),
    })
    await send('POST', '/ngsi-ld/v1/subscriptions', {
      type: 'Subscription',
      id: 'urn:up',
      entities: [{ type: 'T' }],
      notification: {
        endpoint: {
          uri: `${centre.httpUrl}/ngsi-ld/v1`,
          notifierInfo: [
            { key: 'selvedge:mode', value: 'uplink' },
            { key: 'selvedge:budget-observations', value: '60' },
            { key: 'selvedge:thin-seconds', value: '10' },
          ],
        },
      },
    })
    await vi.waitFor(
      async () => expect((await there().get(`${entities}/urn:T:1`)).status).toBe(200),
      withinMs,
    )
    const { httpPort } = centre
    await centre.stop()
    const observe = async (i: number): Promise<void> => {
      const door = i % 10 === 0 ? { door: observed(i % 20 === 0 ? 'open' : 'shut', i) } : {}
      await send('PATCH', `${entities}/urn:T:1/attrs`, { level: observed(i, i), ...door })
    }
    for (let i = 1; i < count; i++) await observe(i)
    await observe(count)
    const offline = await runSelvedge(['uplink', 'status', '--url', site.httpUrl])
    expect(offline.stdout).toMatch(/left at the current rate/)
    expect(offline.code).toBe(1)
    // The budget is applied at intervals, and decided and reported even while nothing can be sent.
    await vi.waitFor(
      async () => {
        expect(site.logLines().map(({ event }) => event)).toContain('uplink.over-budget')
        const [bounded] = (await here().get('/selvedge/v1/uplinks')).json() as {
          waitingObservations: number
          toBeLetGo: number
        }[]
        expect(bounded!.waitingObservations).toBeLessThanOrEqual(60)
        expect(bounded!.waitingObservations + bounded!.toBeLetGo).toBeGreaterThanOrEqual(count + 10)
      },
      { interval: 500 },
    )
    expect((await runSelvedge(['uplink', 'status', '--url', site.httpUrl])).stdout).toMatch(/Over budget/)

    centre = await startCentre(httpPort)
    // A busy machine applies the budget while data is still written, and again afterwards: then there are two
    // gaps.
    const gaps = await vi.waitFor(async () => {
      expect((await here().get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
      const told = (await there().get(`${entities}?type=HistoryGap&options=keyValues`)).json() as GapView[]
      expect(told.length).toBeGreaterThan(0)
      return told
    }, withinMs)
    for (const gap of gaps) {
      expect(gap).toMatchObject({ gapOf: 'urn:T:1', gapAttribute: 'level' })
      expect(['thinned', 'budget']).toContain(gap.reason)
    }
    const lost = gaps.reduce((sum, gap) => sum + gap.lost, 0)

    const path = '/ngsi-ld/v1/temporal/entities/urn:T:1?options=temporalValues'
    const { level, door } = (await there().get(path)).json() as Record<
      'level' | 'door',
      { values: unknown[] }
    >
    // The newest value was sent as the current value, before the rest; it is not lost, though its span counts
    // it.
    const missing = count + 1 - level.values.length
    expect(lost).toBeGreaterThanOrEqual(missing)
    expect(lost).toBeLessThanOrEqual(missing + 1)
    expect(missing).toBeGreaterThan(20)
    expect(door.values).toHaveLength(11)
    const { level: now } = (await there().get(`${entities}/urn:T:1?options=keyValues`)).json() as {
      level: number
    }
    expect(now).toBe(count)
    expect((await here().get('/metrics')).text).toMatch(
      /selvedge_uplink_evicted_total\{uplink="urn:up"\} [1-9]/,
    )
  })

  it.each([
    ['its types', { entities: [{ type: 'T' }] }, {}],
    ['its attributes', {}, { attributes: ['level'] }],
    ['its q', { entities: [{ type: 'T' }, { type: 'Other' }], q: 'counts=="yes"' }, {}],
  ])('counts only selected data, by %s', async (_, selection, picked) => {
    const counts = { type: 'Property', value: 'yes' }
    await send('POST', entities, { id: 'urn:T:1', type: 'T', counts, level: observed(0, 0) })
    await send('POST', entities, { id: 'urn:Other:1', type: 'Other', load: observed(0, 0) })
    await send('POST', '/ngsi-ld/v1/subscriptions', {
      type: 'Subscription',
      id: 'urn:up',
      entities: [{ type: 'T' }, { type: 'Other' }],
      ...selection,
      notification: {
        ...picked,
        endpoint: {
          uri: `${centre.httpUrl}/ngsi-ld/v1`,
          notifierInfo: [
            { key: 'selvedge:mode', value: 'uplink' },
            { key: 'selvedge:budget-observations', value: '60' },
          ],
        },
      },
    })
    await vi.waitFor(
      async () => expect((await there().get(`${entities}/urn:T:1`)).status).toBe(200),
      withinMs,
    )
    const status = async () =>
      (await here().get('/selvedge/v1/uplinks/urn:up')).json() as {
        readonly state: string
        readonly waitingObservations: number
        readonly toBeLetGo: number
        readonly roomSeconds: number
      }
    await vi.waitFor(async () => expect((await status()).state).toBe('live'), withinMs)
    await centre.stop()
    for (let i = 1; i <= 10; i++) await send('PATCH', `${entities}/urn:T:1/attrs`, { level: observed(i, i) })
    // Selected data is pending, and everything else comes after it.
    await vi.waitFor(async () => expect((await status()).state).toBe('offline'), withinMs)
    for (let i = 1; i <= count; i++)
      await send('PATCH', `${entities}/urn:Other:1/attrs`, { load: observed(i, i) })
    // The backlog is checked every two seconds, and reported at most half a second old.
    await new Promise((resolve) => setTimeout(resolve, 5000))
    const { waitingObservations, toBeLetGo, roomSeconds } = await status()
    expect(site.logLines().map(({ event }) => event)).not.toContain('uplink.over-budget')
    expect(toBeLetGo).toBe(0)
    expect(waitingObservations).toBeGreaterThanOrEqual(10)
    expect(waitingObservations).toBeLessThanOrEqual(15)
    // 50 more at 11 in ten minutes, and not none.
    expect(roomSeconds).toBeGreaterThan(600)
  })
})
