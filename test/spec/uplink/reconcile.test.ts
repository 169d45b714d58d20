/**
 * Reconciling with the centre: after a restore from an older copy, or after the loss of single entities and
 * days of history, it holds everything again, and nothing else is sent.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createLesserBroker } from '#test/kit/lesser-broker.ts'

const entities = '/ngsi-ld/v1/entities'
const temporal = '/ngsi-ld/v1/temporal/entities'
const up = '/selvedge/v1/uplinks/urn:up'
const withinMs = { interval: 100 }
const day = (n: number, hour: number): string => new Date(Date.UTC(2026, 0, n, hour)).toISOString()

interface Report {
  readonly phase: string
  readonly isDry: boolean
  readonly reason: string
  readonly compared: number
  readonly missing: number
  readonly different: number
  readonly surplus: number
  readonly days: number
  readonly observations: number
}

describe('an uplink that reconciles', () => {
  let folders: string
  let site: GatewayInside
  let centre: GatewayInside
  let port: number

  const startCentre = (folder: string) =>
    startGatewayInside(join(folders, folder), { SELVEDGE_HTTP_PORT: String(port) })
  const send = async (to: GatewayInside, method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await to.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const level = (value: number, n: number, hour = value): object => ({
    level: { type: 'Property', value, observedAt: day(n, hour).replace('.000', '') },
  })
  const tanks = async (of: GatewayInside): Promise<readonly { id: string }[]> => {
    const all: { id: string }[] = (await of.get(`${entities}?type=Tank&limit=1000`)).json()
    return all.toSorted((a, b) => a.id.localeCompare(b.id))
  }
  /** The history of an attribute, whenever either side deleted the entity. */
  const levels = async (of: GatewayInside, id: string): Promise<unknown> => {
    const told: object = (await of.get(`${temporal}/${id}?attrs=level&options=temporalValues`)).json()
    return { ...told, deletedAt: undefined }
  }
  const endpoint = (url = `http://127.0.0.1:${port}`): object => ({
    uri: `${url}/ngsi-ld/v1`,
    notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
  })
  const ids = Array.from({ length: 12 }, (_, i) => `urn:tank:${i}`)
  /** An entity deleted and re-created at the centre has its history in two lives. */
  const expectSame = (except = ''): Promise<void> =>
    vi.waitFor(async () => {
      expect(await tanks(centre)).toEqual(await tanks(site))
      for (const { id } of (await tanks(site)).filter((one) => one.id !== except))
        expect(await levels(centre, id)).toEqual(await levels(site, id))
    }, withinMs)
  const report = async (): Promise<Report | undefined> =>
    ((await site.get(up)).json() as { reconcile?: Report }).reconcile
  const reconcile = async (query = ''): Promise<Report> => {
    await send(site, 'POST', `${up}/reconcile${query}`)
    return vi.waitFor(async () => {
      const found = await report()
      expect(found?.phase).toBe('done')
      return found!
    }, withinMs)
  }

  beforeEach(async () => {
    setLimit('reconcileNoteMs', 300)
    // An uplink that rests notes the position of the centre when it wakes.
    setLimit('uplinkRestMs', 100)
    folders = mkdtempSync(join(tmpdir(), 'selvedge-reconcile-'))
    port = 0
    ;[site, centre] = await Promise.all([startGatewayInside(join(folders, 'site')), startCentre('centre')])
    port = centre.httpPort!
    for (const id of ids)
      await send(site, 'POST', entities, {
        id,
        type: 'Tank',
        name: { type: 'Property', value: id },
        ...level(0, 1),
      })
    for (let n = 2; n <= 4; n++)
      for (let hour = 0; hour < 5; hour++)
        await send(site, 'PATCH', `${entities}/urn:tank:1/attrs`, level(hour, n))
    await send(site, 'POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: { endpoint: endpoint() },
    })
    await expectSame()
  })
  afterEach(async () => {
    restoreLimits()
    await Promise.all([site.close(), centre.close()])
    rmSync(folders, { recursive: true })
  })

  it('finds nothing if nothing is missing, and sends only what is', async () => {
    // Earlier scopes are not sent: the centre has the current one.
    const scope = ['/a', '/b'].map((value, n) => ({ type: 'Property', value, observedAt: day(n + 1, 0) }))
    await send(site, 'POST', `${temporal}/urn:tank:11/attrs`, { scope })
    await expectSame()
    expect((await centre.get(`${entities}/urn:tank:11`)).json()).toMatchObject({ scope: '/b' })
    const first = await reconcile()
    expect(first).toMatchObject({
      compared: 12,
      missing: 0,
      different: 0,
      surplus: 0,
      days: 0,
      observations: 0,
    })

    await send(centre, 'DELETE', `${entities}/urn:tank:5`)
    await send(centre, 'DELETE', `${entities}/urn:tank:7/attrs/name`)
    await send(centre, 'POST', entities, { id: 'urn:other:1', type: 'Tank' })
    await send(centre, 'DELETE', `${temporal}/urn:tank:1/attrs/level`)

    const looked = await reconcile('?dryRun=true')
    expect(looked).toMatchObject({ isDry: true, missing: 1, different: 1, days: 4, observations: 0 })
    expect((await centre.get(`${entities}/urn:tank:5`)).status).toBe(404)
    const second = await reconcile()
    expect(second).toMatchObject({ isDry: false, missing: 1, different: 1, surplus: 0 })
    await send(centre, 'DELETE', `${entities}/urn:other:1`)
    await expectSame('urn:tank:5')
    expect(await reconcile()).toMatchObject({ missing: 0, different: 0, days: 0 })
  })

  it('can be cancelled and started again', async () => {
    await send(site, 'POST', `${up}/pause`)
    await send(site, 'POST', `${up}/reconcile`)
    expect((await site.send('POST', `${up}/reconcile`, undefined)).status).toBe(409)
    await send(site, 'DELETE', `${up}/reconcile`)
    expect(await report()).toMatchObject({ phase: 'cancelled', compared: 0, endedAt: expect.any(String) })
    expect((await site.send('DELETE', `${up}/reconcile`, undefined)).status).toBe(409)
    await send(site, 'POST', `${up}/resume`)
    expect(await reconcile()).toMatchObject({ compared: 12 })
  })

  it('asks which attributes are foreign, and uses no clock for what came from here', async () => {
    const told = await centre.get(`/selvedge/v1/digests?others=urn:tank:7,urn:none&through=nobody`)
    expect(told.json()).toMatchObject({ others: { 'urn:tank:7': ['name', 'level'], 'urn:none': [] } })
    expect((await centre.get('/selvedge/v1/digests?others=urn:tank:7')).status).toBe(400)
    const { contextSourceAlias: alias }: { contextSourceAlias: string } = (
      await site.get('/ngsi-ld/v1/info/sourceIdentity')
    ).json()
    const mine = async (): Promise<unknown> =>
      (await centre.get(`/selvedge/v1/digests?others=urn:tank:7&through=${alias}`)).json()
    expect(await mine()).toMatchObject({ others: { 'urn:tank:7': [] } })
    await send(centre, 'PATCH', `${entities}/urn:tank:7/attrs`, { name: { type: 'Property', value: 'x' } })
    expect(await mine()).toMatchObject({ others: { 'urn:tank:7': ['name'] } })
  })

  it('keeps later writes at the centre', async () => {
    const mine = { name: { type: 'Property', value: 'of the centre' } }
    await send(centre, 'PATCH', `${entities}/urn:tank:7/attrs`, mine)
    expect(await reconcile()).toMatchObject({ missing: 0, different: 0, newer: 1 })
    expect((await centre.get(`${entities}/urn:tank:7`)).json()).toMatchObject(mine)
    // Later local writes are sent as usual.
    await send(site, 'PATCH', `${entities}/urn:tank:7/attrs`, { name: { type: 'Property', value: 'here' } })
    await expectSame()
    expect(await reconcile()).toMatchObject({ different: 0, newer: 0 })
  })

  it('compares large entities in smaller parts, and skips one beyond the response limit', async () => {
    setLimit('sourceAnswerBytesMax', 100_000)
    const large = (id: string, bytes: number): object => ({
      id,
      type: 'Tank',
      text: { type: 'Property', value: 'x'.repeat(bytes) },
    })
    for (let n = 0; n < 8; n++) await send(site, 'POST', entities, large(`urn:tank:large:${n}`, 40_000))
    await send(site, 'POST', entities, large('urn:tank:huge', 120_000))
    await expectSame()
    await send(centre, 'DELETE', `${entities}/urn:tank:large:3`)
    await send(centre, 'DELETE', `${entities}/urn:tank:huge/attrs/text`)
    await send(centre, 'POST', `${entities}/urn:tank:huge/attrs`, large('urn:tank:huge', 110_000))
    for (const n of [4, 5]) await send(centre, 'DELETE', `${entities}/urn:tank:large:${n}/attrs/text`)
    expect(await reconcile()).toMatchObject({ missing: 1, different: 2, tooLarge: 1 })
    expect((await centre.get(`${entities}/urn:tank:large:3`)).status).toBe(200)
  })

  it('compares histories of deleted entities without resurrecting them', async () => {
    for (let hour = 5; hour < 8; hour++)
      await send(site, 'PATCH', `${entities}/urn:tank:6/attrs`, level(hour, 2))
    await send(site, 'DELETE', `${entities}/urn:tank:6`)
    await send(site, 'DELETE', `${entities}/urn:tank:8/attrs/level`)
    await expectSame()
    const gone = await levels(site, 'urn:tank:6')
    expect(gone).toMatchObject({ level: { values: { length: 4 } } })
    await vi.waitFor(async () => expect(await levels(centre, 'urn:tank:6')).toEqual(gone), withinMs)
    expect(await reconcile()).toMatchObject({ compared: 11, missing: 0, different: 0, surplus: 0, days: 0 })

    await send(centre, 'DELETE', `${temporal}/urn:tank:6`)
    await send(centre, 'DELETE', `${temporal}/urn:tank:8/attrs/level`)
    expect(await reconcile('?dryRun=true')).toMatchObject({ days: 3, observations: 0 })
    expect(await reconcile()).toMatchObject({ missing: 0, different: 0, days: 3, observations: 5 })
    await vi.waitFor(async () => expect(await levels(centre, 'urn:tank:6')).toEqual(gone), withinMs)
    await expectSame()
    expect(await reconcile()).toMatchObject({ missing: 0, different: 0, surplus: 0, days: 0 })
  })

  it('compares histories of deleted entities after one that is not selected', async () => {
    await send(site, 'PATCH', '/ngsi-ld/v1/subscriptions/urn:up', {
      notification: { attributes: ['name', 'level'], endpoint: endpoint() },
    })
    // The centre uses that clock from its start.
    await site.close()
    site = await startGatewayInside(join(folders, 'site'))
    const inner = { type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' }
    await send(site, 'POST', entities, { id: 'urn:tank:mute', type: 'Tank', inner })
    for (const id of ['urn:tank:mute', 'urn:tank:6']) await send(site, 'DELETE', `${entities}/${id}`)
    await expectSame()
    const kept = await levels(site, 'urn:tank:6')
    await vi.waitFor(async () => expect(await levels(centre, 'urn:tank:6')).toEqual(kept), withinMs)
    await send(centre, 'DELETE', `${temporal}/urn:tank:6`)
    expect(await reconcile()).toMatchObject({ missing: 0, different: 0, days: 1, observations: 1 })
    expect(await levels(centre, 'urn:tank:6')).toEqual(await levels(site, 'urn:tank:6'))
  })

  it('compares fewer long histories at a time, and skips one beyond the response limit', async () => {
    setLimit('sourceAnswerBytesMax', 20_000)
    const daily = (count: number): object => ({
      level: Array.from({ length: count }, (_, n) => ({
        type: 'Property',
        value: n,
        observedAt: day(n - 1000, 0),
      })),
    })
    for (const id of ids)
      await send(site, 'POST', `${temporal}/${id}/attrs`, daily(id.endsWith(':2') ? 700 : 60))
    await expectSame()
    for (const n of [3, 9]) await send(centre, 'DELETE', `${temporal}/urn:tank:${n}/attrs/level`)
    expect(await reconcile()).toMatchObject({ different: 0, tooLarge: 1, days: 122, observations: 122 })
    await expectSame()
  })

  it.each([
    ['keeps histories', {}],
    ['keeps none', { '/ngsi-ld/v1/temporal': 501 }],
  ])('compares page by page with a broker without digests that %s', async (_, unknown) => {
    const other = await createLesserBroker(port, { '/selvedge': 404, '/ngsi-ld/v1/info': 404, ...unknown })
    await send(site, 'PATCH', '/ngsi-ld/v1/subscriptions/urn:up', {
      notification: { endpoint: endpoint(other.url) },
    })
    await vi.waitFor(() => expect(other.asked().length).toBeGreaterThan(0), withinMs)
    // Everything is sent to another address.
    await vi.waitFor(
      async () => expect((await site.get(up)).json()).toMatchObject({ state: 'live' }),
      withinMs,
    )
    await send(centre, 'DELETE', `${entities}/urn:tank:5`)
    await send(centre, 'DELETE', `${entities}/urn:tank:9/attrs/name`)
    await send(centre, 'DELETE', `${entities}/urn:tank:7/attrs/name`)
    // Newer at the centre, and foreign: both stay.
    await send(centre, 'PATCH', `${entities}/urn:tank:3/attrs`, level(9, 9))
    await send(centre, 'POST', entities, { id: 'urn:other:1', type: 'Tank' })

    expect(await reconcile('?dryRun=true')).toMatchObject({ compared: 12, missing: 1, different: 2 })
    expect((await centre.get(`${entities}/urn:tank:5`)).status).toBe(404)
    const found = { reason: 'asked', compared: 12, missing: 1, different: 2, surplus: 0, days: 0 }
    expect(await reconcile()).toMatchObject(found)
    await send(centre, 'DELETE', `${entities}/urn:other:1`)
    const [there, here] = [await tanks(centre), await tanks(site)]
    const isOther = ({ id }: { id: string }): boolean => id === 'urn:tank:3'
    expect(there.filter((one) => !isOther(one))).toEqual(here.filter((one) => !isOther(one)))
    expect(there.find(isOther)).toMatchObject({ level: { value: 9 } })

    // It sends no periodic requests that only a Selvedge supports.
    expect(other.asked().filter((one) => one.includes('position='))).toEqual([])
    expect(await reconcile()).toMatchObject({ compared: 12, missing: 0, different: 0 })
    const asked = other.asked()
    expect(asked.filter((one) => one.startsWith('POST'))).toEqual([])
    // It was checked once for being a Selvedge; then only entities were requested.
    const [digests, probe] = ['GET /selvedge/v1/digests', 'GET /ngsi-ld/v1/entities?type=SelvedgeProbe']
    expect(
      asked.filter((one) => !one.startsWith('GET /ngsi-ld/v1/entities?id=') && !one.startsWith(probe)),
    ).toEqual(asked.filter((one) => one.startsWith(digests)))
    await site.close()
    await other.close()
    site = await startGatewayInside(join(folders, 'site'))
  })

  it('reconciles with a centre that reported no position until it was restored', async () => {
    await centre.close()
    cpSync(join(folders, 'centre'), join(folders, 'older'), { recursive: true })
    centre = await startCentre('centre')
    const unknown: Record<string, number> = { '/selvedge/v1/digests': 503 }
    const way = await createLesserBroker(port, unknown)
    await send(site, 'PATCH', '/ngsi-ld/v1/subscriptions/urn:up', {
      notification: { endpoint: endpoint(way.url) },
    })
    await vi.waitFor(() => expect(way.asked().length).toBeGreaterThan(0), withinMs)
    await send(site, 'POST', entities, {
      id: 'urn:tank:new',
      type: 'Tank',
      name: { type: 'Property', value: 'new' },
      ...level(1, 6),
    })
    await vi.waitFor(async () => {
      expect((await site.get(up)).json()).toMatchObject({ state: 'live' })
      expect((await centre.get(`${entities}/urn:tank:new`)).status).toBe(200)
    }, withinMs)
    await centre.close()
    centre = await startCentre('older')
    delete unknown['/selvedge/v1/digests']
    await expectSame()
    await site.close()
    await way.close()
    site = await startGatewayInside(join(folders, 'site'))
  })

  it.each([
    ['by buckets', 32],
    ['page by page where many differ', 2],
  ])('notices a centre that was restored from an older copy, and reconciles %s', async (_, most) => {
    setLimit('reconcileBucketsMax', most)
    await centre.close()
    cpSync(join(folders, 'centre'), join(folders, 'older'), { recursive: true })
    centre = await startCentre('centre')
    for (let hour = 5; hour < 10; hour++)
      await send(site, 'PATCH', `${entities}/urn:tank:2/attrs`, level(hour, 5))
    await send(site, 'POST', entities, { id: 'urn:tank:new', type: 'Tank', ...level(1, 6) })
    await send(site, 'DELETE', `${entities}/urn:tank:3`)
    await send(site, 'DELETE', `${entities}/urn:tank:6/attrs/name`)
    await send(site, 'DELETE', `${entities}/urn:tank:8`)
    await send(site, 'POST', entities, { id: 'urn:tank:8', type: 'Tank', ...level(1, 6) })
    await expectSame()
    // The centre's position is noted.
    await new Promise((resolve) => setTimeout(resolve, 1000))
    await centre.close()
    // Long enough to be missed.
    await send(site, 'PATCH', `${entities}/urn:tank:4/attrs`, level(3, 7))
    await new Promise((resolve) => setTimeout(resolve, 1500))
    centre = await startCentre('older')
    await expectSame()
    await vi.waitFor(
      async () => expect(await report()).toMatchObject({ reason: 'restored', surplus: 1 }),
      withinMs,
    )
  })

  it('keeps foreign attributes of entities deleted here, also page by page', async () => {
    setLimit('reconcileBucketsMax', 0)
    for (const n of [3, 4, 5]) await send(site, 'DELETE', `${entities}/urn:tank:${n}`)
    await expectSame()
    await send(centre, 'POST', entities, { id: 'urn:tank:3', type: 'Tank', ...level(9, 9) })
    await send(centre, 'POST', entities, { id: 'urn:tank:4', type: 'Tank' })
    await send(centre, 'DELETE', `${entities}/urn:tank:7/attrs/name`)
    expect(await reconcile()).toMatchObject({ compared: 9, missing: 0, different: 1, surplus: 0 })
    const ofOthers = async (n: number) => (await centre.get(`${entities}/urn:tank:${n}`)).status
    expect([await ofOthers(3), await ofOthers(4), await ofOthers(5)]).toEqual([200, 200, 404])
  })

  it('compares histories even if the kind of centre is unknown for a while', async () => {
    setLimit('reconcileBucketsMax', 0)
    const failing: Record<string, number> = {}
    const way = await createLesserBroker(port, failing)
    await send(site, 'PATCH', '/ngsi-ld/v1/subscriptions/urn:up', {
      notification: { endpoint: endpoint(way.url) },
    })
    await vi.waitFor(() => expect(way.asked().length).toBeGreaterThan(0), withinMs)
    await vi.waitFor(
      async () => expect((await site.get(up)).json()).toMatchObject({ state: 'live' }),
      withinMs,
    )
    await site.close()
    failing['/selvedge/v1/info'] = 503
    site = await startGatewayInside(join(folders, 'site'))
    await send(centre, 'DELETE', `${entities}/urn:tank:7/attrs/name`)
    await send(centre, 'DELETE', `${temporal}/urn:tank:1/attrs/level`)
    await send(site, 'POST', `${up}/reconcile`)
    await vi.waitFor(
      async () =>
        expect((await site.get(up)).json()).toMatchObject({
          reconcile: { phase: 'deleted' },
          historyTrouble: expect.stringContaining('what it is'),
        }),
      withinMs,
    )
    delete failing['/selvedge/v1/info']
    await expectSame()
    await site.close()
    await way.close()
    site = await startGatewayInside(join(folders, 'site'))
  })
})
