/**
 * Thousands of gaps are sent one request at a time: through a centre that fails half way and a gateway that
 * is killed there, each is reported once, and none is lost.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 200 }
const dayMs = 86_400_000
const perBatch = 500
const perEntity = 2
const startMs = Date.now() - 20 * dayMs

interface GapView {
  readonly gapOf: string
  readonly gapFrom: { readonly '@value': string }
  readonly gapTo: { readonly '@value': string }
  readonly reason: string
  readonly lost?: number
  readonly lostAtMost?: number
}

describe('thousands of gaps', () => {
  let folder: string
  let centre: GatewayInside
  let proxy: FaultProxy
  let site: GatewayProcess
  let count: number

  const startSite = async (env: Readonly<Record<string, string>> = {}): Promise<void> => {
    const ceilings = { SELVEDGE_LIMITS: 'uplinkBudgetMs=500,uplinkMeasureMs=100,tailAgeMs=300' }
    site = await startGatewayProcess({ dataFolder: join(folder, 'site'), env: { ...ceilings, ...env } })
  }
  const send = async (method: string, path: string, body: unknown): Promise<void> => {
    const answer = await httpClient(site.httpUrl).send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const status = async () =>
    (await httpClient(site.httpUrl).get('/selvedge/v1/uplinks/urn:up')).json() as {
      state: string
      toBeLetGo: number
    }
  const metric = async (name: string): Promise<number> => {
    const { text } = await httpClient(site.httpUrl).get('/metrics')
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'm').exec(text)?.[1])
  }
  /** Writes one value of each entity. */
  const observe = async (n: number): Promise<void> => {
    for (let from = 0; from < count; from += perBatch) {
      const observedAt = new Date(startMs + n * 1000).toISOString()
      const some = Array.from({ length: perBatch }, (_, i) => ({
        id: `urn:T:${from + i}`,
        type: 'T',
        level: { type: 'Property', value: n, observedAt },
      }))
      await send('POST', `${v1}/entityOperations/upsert?options=update`, some)
    }
  }
  const countThere = async (type: string): Promise<number> => {
    const answer = await centre.get(`${v1}/entities?type=${type}&count=true&limit=0`)
    return Number(answer.headers['ngsild-results-count'])
  }
  const gapsThere = async (): Promise<readonly GapView[]> => {
    const all: GapView[] = []
    for (;;) {
      const answer = await centre.get(
        `${v1}/entities?type=HistoryGap&options=keyValues&limit=1000&offset=${all.length}`,
      )
      const some = answer.json() as GapView[]
      all.push(...some)
      if (some.length < 1000) return all
    }
  }

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-many-gaps-'))
    centre = await startGatewayInside(join(folder, 'centre'))
    proxy = await createFaultProxy({ target: { host: '127.0.0.1', port: centre.httpPort! } })
  })
  afterEach(async () => {
    await Promise.all([site.stop(), centre.close()])
    await proxy.close()
    rmSync(folder, { recursive: true })
  })

  /** Creates an uplink so slow that gaps take seconds; everything is sent. */
  async function begin(entities: number, ...more: readonly object[]): Promise<void> {
    count = entities
    await startSite()
    await observe(0)
    const notifierInfo = [
      { key: 'selvedge:mode', value: 'uplink' },
      { key: 'selvedge:rate', value: '1500' },
      ...more,
    ]
    await send('POST', `${v1}/subscriptions`, {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'T' }],
      notification: { endpoint: { uri: `${proxy.url}${v1}`, notifierInfo } },
    })
    await vi.waitFor(async () => {
      expect(await status()).toMatchObject({ state: 'live' })
      expect(await countThere('T')).toBe(count)
    }, withinMs)
    await proxy.set('refused')
    // The live lane retries what it sent first, so this is not lost; all later values are.
    await send('POST', `${v1}/entities`, { id: 'urn:T:first', type: 'T' })
    await vi.waitFor(async () => expect(await status()).toMatchObject({ state: 'offline' }), withinMs)
    for (let n = 1; n <= perEntity; n++) await observe(n)
  }

  /**
   * The centre fails and the gateway is killed while gaps are sent; then everything works. Returns the gaps
   * of the earlier losses.
   */
  async function failHalfWay(): Promise<readonly GapView[]> {
    await proxy.set('none')
    const isBegun = async () => expect(await countThere('HistoryGap')).toBeGreaterThanOrEqual(200)
    await vi.waitFor(isBegun, { ...withinMs, interval: 20 })
    await proxy.set(503)
    expect(await countThere('HistoryGap')).toBeLessThan(count)
    await site.kill()
    await startSite()
    // Later data belongs to another outage.
    await observe(100)
    await proxy.set('none')
    await vi.waitFor(async () => expect(await status()).toMatchObject({ state: 'live' }), withinMs)
    const lastMs = startMs + perEntity * 1000
    return (await gapsThere()).filter(({ gapTo }) => Date.parse(gapTo['@value']) <= lastMs)
  }

  function eachOnce(gaps: readonly GapView[], reason: string): void {
    expect(new Set(gaps.map(({ gapOf }) => gapOf)).size).toBe(count)
    // Both values of an entity may be in one span, or in two.
    const byStart = Map.groupBy(gaps, ({ gapOf, gapFrom }) => `${gapOf} ${gapFrom['@value']}`)
    expect([...byStart.values()].filter(({ length }) => length > 1).slice(0, 2)).toEqual([])
    expect(new Set(gaps.map((gap) => gap.reason))).toEqual(new Set([reason]))
    const lostIn = (some: readonly GapView[]): number =>
      some.reduce((sum, gap) => sum + (gap.lost ?? gap.lostAtMost ?? 0), 0)
    const byEntity = [...Map.groupBy(gaps, ({ gapOf }) => gapOf).values()]
    expect(byEntity.filter((some) => lostIn(some) !== perEntity).slice(0, 2)).toEqual([])
  }

  it('of a budget are reported once, through a failing centre and a crash', async () => {
    await begin(1000, { key: 'selvedge:budget-observations', value: '1' })
    await vi.waitFor(
      async () => expect((await status()).toBeLetGo).toBeGreaterThanOrEqual(count * perEntity - 1),
      withinMs,
    )
    eachOnce(await failHalfWay(), 'budget')
  })

  it('of evicted history are reported once, through a failing centre and a crash', async () => {
    await begin(1000)
    let works = 0
    // Each commit folds some records and evicts some.
    const untilSo = (name: string, isSo: (value: number) => boolean): Promise<void> =>
      vi.waitFor(
        async () => {
          await send('POST', `${v1}/entities`, { id: `urn:U:${works++}`, type: 'U' })
          expect(await metric(name)).toSatisfy(isSo)
        },
        { ...withinMs, interval: 20 },
      )
    await untilSo('selvedge_tail_observations', (left) => left === 0)
    await site.kill()
    await startSite({ SELVEDGE_HISTORY_MAX_AGE_DAYS: '1' })
    await untilSo('selvedge_history_evicted_total', (gone) => gone >= count * perEntity)
    eachOnce(await failHalfWay(), 'age')
  })
})
