/**
 * A gateway restored from a backup reports to its centre which period it lacks, and reconciles: data it no
 * longer knows stays there, and new changes are sent. A restored centre is noticed even if other clients
 * wrote to it since.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreFolder } from '#store/backup/restore.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 100 }
setLimit('reconcileNoteMs', 300)
setLimit('tailAgeMs', 300)
afterAll(restoreLimits)

describe('a gateway that was restored', () => {
  let folders: string
  let site: GatewayInside
  let centre: GatewayInside

  const send = async (method: string, path: string, body?: unknown): Promise<string> => {
    const answer = await site.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
    return answer.text
  }
  const tank = (id: string) => ({ id: `urn:tank:${id}`, type: 'Tank', name: { type: 'Property', value: id } })
  const there = async (type: string): Promise<Record<string, unknown>[]> =>
    (await centre.get(`${v1}/entities?type=${type}&options=keyValues`)).json()
  const ids = async (type: string): Promise<unknown[]> => (await there(type)).map(({ id }) => id)
  const subscribeUplink = (...wishes: readonly { key: string; value: string }[]): Promise<string> =>
    send('POST', `${v1}/subscriptions`, {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: {
          uri: `http://127.0.0.1:${centre.httpPort}${v1}`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }, ...wishes],
        },
      },
    })

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-restored-'))
    ;[site, centre] = await Promise.all(
      ['site', 'centre'].map((name) => startGatewayInside(join(folders, name))) as [
        Promise<GatewayInside>,
        Promise<GatewayInside>,
      ],
    )
  })
  afterEach(async () => {
    await Promise.all([site.close(), centre.close()])
    rmSync(folders, { recursive: true })
  })

  it('reports the missing period to the centre', async () => {
    await subscribeUplink({ key: 'selvedge:scope', value: '/site-1' })
    await send('POST', `${v1}/entities`, tank('before'))
    await vi.waitFor(async () => expect(await ids('Tank')).toEqual(['urn:tank:before']), withinMs)
    // The position of the uplink is on disk a second later.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    const { path, startedAt } = JSON.parse(await send('POST', '/selvedge/v1/backups')) as {
      path: string
      startedAt: string
    }
    await send('POST', `${v1}/entities`, tank('lost'))
    await vi.waitFor(async () => expect(await ids('Tank')).toHaveLength(2), withinMs)
    await site.close()

    const now = Date.now()
    restoreFolder(path, join(folders, 'again'), { now, onProgress: () => undefined })
    site = await startGatewayInside(join(folders, 'again'))
    await vi.waitFor(async () => expect(await there('HistoryGap')).toHaveLength(1), withinMs)
    const [gap] = await there('HistoryGap')
    const gapAt = (name: string): unknown => (gap![name] as { '@value': string })['@value']
    expect(gap).toMatchObject({
      scope: '/site-1',
      reason: 'restore',
      gateway: expect.stringMatching(/^selvedge-/),
    })
    expect(gap).not.toHaveProperty('gapOf')
    expect(gap).not.toHaveProperty('lost')
    expect(Date.parse(String(gapAt('gapFrom')))).toBe(Date.parse(startedAt))
    expect(Date.parse(String(gapAt('gapTo')))).toBe(now)
    await send('POST', `${v1}/entities`, tank('after'))
    await vi.waitFor(
      async () => expect(await ids('Tank')).toEqual(['urn:tank:before', 'urn:tank:lost', 'urn:tank:after']),
      withinMs,
    )
    await vi.waitFor(async () => {
      const seen: { reconcile?: object } = (await site.get('/selvedge/v1/uplinks/urn:up')).json()
      expect(seen.reconcile).toMatchObject({ reason: 'restored', phase: 'done', missing: 0, unknown: 1 })
    }, withinMs)
    // It is reported once.
    await site.close()
    site = await startGatewayInside(join(folders, 'again'))
    await send('PATCH', `${v1}/entities/urn:tank:after/attrs`, { name: { type: 'Property', value: 'more' } })
    await vi.waitFor(async () => expect(JSON.stringify(await there('Tank'))).toContain('more'), withinMs)
    expect(await there('HistoryGap')).toHaveLength(1)
  })

  it('notices a restored centre to which other clients wrote more than it lost', async () => {
    const { httpPort } = centre
    await subscribeUplink()
    await send('POST', `${v1}/entities`, tank('before'))
    await vi.waitFor(async () => expect(await ids('Tank')).toEqual(['urn:tank:before']), withinMs)
    const { path } = (await centre.send('POST', '/selvedge/v1/backups', undefined)).json() as { path: string }
    await send('POST', `${v1}/entities`, tank('lost'))
    await vi.waitFor(async () => expect(await ids('Tank')).toHaveLength(2), withinMs)
    await vi.waitFor(async () => {
      expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
    }, withinMs)
    // What the centre holds is noted.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await site.close()
    await centre.close()

    restoreFolder(path, join(folders, 'older'), { now: Date.now(), onProgress: () => undefined })
    centre = await startGatewayInside(join(folders, 'older'), { SELVEDGE_HTTP_PORT: String(httpPort) })
    expect(await ids('Tank')).toEqual(['urn:tank:before'])
    for (let n = 0; n < 40; n++) {
      const answer = await centre.send('POST', `${v1}/entities`, { id: `urn:other:${n}`, type: 'Other' })
      expect(answer.status).toBe(201)
    }
    site = await startGatewayInside(join(folders, 'site'))
    await vi.waitFor(async () => expect(await ids('Tank')).toHaveLength(2), withinMs)
    const seen: { reconcile?: object } = (await site.get('/selvedge/v1/uplinks/urn:up')).json()
    expect(seen.reconcile).toMatchObject({ reason: 'restored', missing: 1 })
  })

  it('deletes an entity again at a restored centre that had lost an attribute before', async () => {
    const { httpPort } = centre
    await subscribeUplink()
    for (const id of ['stays', 'lost-some'])
      await send('POST', `${v1}/entities`, { ...tank(id), label: { type: 'Property', value: 'old' } })
    await vi.waitFor(async () => expect(await ids('Tank')).toHaveLength(2), withinMs)
    const { path } = (await centre.send('POST', '/selvedge/v1/backups', undefined)).json() as { path: string }
    await send('DELETE', `${v1}/entities/urn:tank:lost-some/attrs/label`)
    await send('DELETE', `${v1}/entities/urn:tank:lost-some`)
    await vi.waitFor(async () => expect(await ids('Tank')).toEqual(['urn:tank:stays']), withinMs)
    // What the centre holds is noted.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await site.close()
    await centre.close()
    restoreFolder(path, join(folders, 'older'), { now: Date.now(), onProgress: () => undefined })
    centre = await startGatewayInside(join(folders, 'older'), { SELVEDGE_HTTP_PORT: String(httpPort) })
    expect(await ids('Tank')).toHaveLength(2)
    site = await startGatewayInside(join(folders, 'site'))
    await vi.waitFor(async () => expect(await ids('Tank')).toEqual(['urn:tank:stays']), withinMs)
  })

  it('reports earlier gaps again to a restored centre', async () => {
    const { httpPort } = centre
    const old = { SELVEDGE_HISTORY_MAX_AGE_DAYS: '1' }
    const level = (n: number) => ({
      level: { type: 'Property', value: n, observedAt: new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString() },
    })
    const metric = async (name: string): Promise<number> =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'm').exec((await site.get('/metrics')).text)?.[1])
    let works = 0
    // Each commit folds some records and evicts some.
    const untilSo = (name: string, isSo: (value: number) => boolean): Promise<void> =>
      vi.waitFor(async () => {
        await send('POST', `${v1}/entities`, { id: `urn:other:${works++}`, type: 'Other' })
        expect(await metric(name)).toSatisfy(isSo)
      }, withinMs)
    const caughtUp = (): Promise<void> =>
      vi.waitFor(async () => {
        expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
      }, withinMs)

    await send('POST', `${v1}/entities`, { ...tank('old'), ...level(0) })
    await subscribeUplink()
    await vi.waitFor(async () => expect(await ids('Tank')).toEqual(['urn:tank:old']), withinMs)
    await caughtUp()
    const { path } = (await centre.send('POST', '/selvedge/v1/backups', undefined)).json() as { path: string }
    await centre.close()
    for (let n = 1; n <= 20; n++) await send('PATCH', `${v1}/entities/urn:tank:old/attrs`, level(n))
    await untilSo('selvedge_tail_observations', (left) => left === 0)
    await site.close()
    site = await startGatewayInside(join(folders, 'site'), old)
    await untilSo('selvedge_history_evicted_total', (gone) => gone >= 20)
    centre = await startGatewayInside(join(folders, 'centre'), { SELVEDGE_HTTP_PORT: String(httpPort) })
    await vi.waitFor(async () => expect(await there('HistoryGap')).toHaveLength(1), withinMs)
    const [gap] = await there('HistoryGap')
    expect(gap).toMatchObject({ gapOf: 'urn:tank:old', reason: 'age' })
    await caughtUp()
    // What the centre holds is noted.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await site.close()
    await centre.close()

    restoreFolder(path, join(folders, 'older'), { now: Date.now(), onProgress: () => undefined })
    centre = await startGatewayInside(join(folders, 'older'), { SELVEDGE_HTTP_PORT: String(httpPort) })
    expect(await there('HistoryGap')).toEqual([])
    site = await startGatewayInside(join(folders, 'site'))
    await vi.waitFor(async () => expect(await there('HistoryGap')).toEqual([gap]), withinMs)
  })
})
