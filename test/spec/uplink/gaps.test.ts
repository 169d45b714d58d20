/**
 * History that is evicted here before it was sent is reported to the centre, outage by outage: every observed
 * value is there, or within a gap that reports at least as many, and entities that are not selected are not
 * mentioned.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 200 }
const perRequest = 5000
/** More than the history and its tail may hold. */
const heldMost = 200_000
setLimit('tailAgeMs', 300)
setLimit('uplinkBehindMs', 500)
afterAll(restoreLimits)

interface GapView {
  readonly id: string
  readonly gapOf?: string
  readonly gapAttribute?: string
  readonly gapFrom: { '@value': string }
  readonly gapTo: { '@value': string }
  readonly lostAtMost: number
  readonly reason: string
}

describe('gaps of evicted history', () => {
  let folder: string
  let site: GatewayInside
  let centre: GatewayInside
  let sent = 0
  let startMs = 0

  const startCentre = async (port = 0): Promise<void> => {
    centre = await startGatewayInside(join(folder, 'centre'), { SELVEDGE_HTTP_PORT: String(port) })
  }
  const send = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await site.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const subscribe = (more: object): Promise<void> =>
    send('POST', `${v1}/subscriptions`, {
      id: 'urn:up',
      type: 'Subscription',
      ...more,
      notification: {
        endpoint: {
          uri: `http://127.0.0.1:${centre.httpPort}${v1}`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })
  /** Noise, so that no codec compresses it well; each value is a millisecond after the last one. */
  const observe = async (id: string, requests: number): Promise<void> => {
    for (let i = 0; i < requests; i++) {
      const level = Array.from({ length: perRequest }, () => ({
        type: 'Property',
        value: Math.random(),
        observedAt: new Date(startMs + ++sent).toISOString(),
      }))
      await send('POST', `${v1}/temporal/entities/${id}/attrs`, { level })
    }
  }
  const create = (id: string, type: string, kind: number): Promise<void> =>
    send('POST', `${v1}/entities`, { id, type, kind: { type: 'Property', value: kind } })
  const evicted = async (): Promise<number> =>
    Number(/selvedge_history_evicted_total(?:\{[^}]*\})? (\d+)/.exec((await site.get('/metrics')).text)?.[1])
  /**
   * Observes until all earlier data is evicted, and of later data more than an uplink has in hand (30,000
   * seen).
   */
  const untilEvicted = async (id: string): Promise<void> => {
    const before = sent
    await vi.waitFor(
      async () => {
        // Pending evictions need no further data.
        if (sent - (await evicted()) < heldMost) await observe(id, 4)
        expect(await evicted()).toBeGreaterThan(before + 8 * perRequest)
      },
      { interval: 500 },
    )
  }
  /** The current data is there, and everything before it. */
  const caughtUp = async (type: string): Promise<void> => {
    const mark = `urn:mark:${sent}`
    await create(mark, type, 1)
    await vi.waitFor(async () => {
      expect((await centre.get(`${v1}/entities/${mark}`)).status).toBe(200)
      expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
    }, withinMs)
  }
  const gaps = async (): Promise<GapView[]> =>
    (await centre.get(`${v1}/entities?type=HistoryGap&options=keyValues&limit=1000`)).json() as GapView[]
  /** Times (ms) in the centre's history. */
  const timesThere = async (id: string): Promise<ReadonlySet<number>> => {
    const times = new Set<number>()
    for (let from = startMs - 1; ; ) {
      const at = new Date(from).toISOString()
      const answer = await centre.get(`${v1}/temporal/entities/${id}?timerel=after&timeAt=${at}&attrs=level`)
      const { level } = answer.json() as { level?: { observedAt: string }[] | { observedAt: string } }
      const found = [level ?? []].flat().map(({ observedAt }) => Date.parse(observedAt))
      for (const one of found) times.add(one)
      if (answer.status !== 206) return times
      from = Math.max(...found) - 1
    }
  }

  beforeEach(async () => {
    ;[sent, startMs] = [0, Date.now()]
    folder = mkdtempSync(join(tmpdir(), 'selvedge-gaps-'))
    const env = { SELVEDGE_HISTORY_MAX_BYTES: String(1024 * 1024) }
    ;[site] = await Promise.all([startGatewayInside(join(folder, 'site'), env), startCentre()])
  })
  afterEach(async () => {
    await Promise.all([site.close(), centre.close()])
    rmSync(folder, { recursive: true })
  })

  it('are reported per outage, though both are of one attribute', async () => {
    await create('urn:T:1', 'T', 0)
    await subscribe({ entities: [{ type: 'T' }] })
    await vi.waitFor(
      async () => expect((await centre.get(`${v1}/entities/urn:T:1`)).status).toBe(200),
      withinMs,
    )
    for (let cut = 0; cut < 2; cut++) {
      const { httpPort } = centre
      await centre.close()
      await untilEvicted('urn:T:1')
      await startCentre(httpPort)
      await caughtUp('T')
    }
    const there = await timesThere('urn:T:1')
    const all = await gaps()
    expect(all.map(({ gapOf, gapAttribute, reason }) => [gapOf, gapAttribute, reason])).toEqual([
      ['urn:T:1', 'level', 'size'],
      ['urn:T:1', 'level', 'size'],
    ])
    const missing = Array.from({ length: sent }, (_, i) => startMs + i + 1).filter((at) => !there.has(at))
    const within = all.map(({ gapFrom, gapTo }) => {
      const [from, to] = [gapFrom, gapTo].map((time) => Date.parse(time['@value'])) as [number, number]
      return missing.filter((at) => at >= from && at <= to)
    })
    expect(within.map(({ length }) => length > 0)).toEqual([true, true])
    expect(within.flat()).toHaveLength(missing.length)
    for (const [i, { lostAtMost }] of all.entries())
      expect(lostAtMost).toBeGreaterThanOrEqual(within[i]!.length)
    // Nothing is reported twice.
    expect(all.reduce((sum, { lostAtMost }) => sum + lostAtMost, 0)).toBeLessThanOrEqual(await evicted())
  })

  /** The gaps of entities created during an outage whose values were evicted. */
  async function lostInCut(ids: readonly string[], selection: object): Promise<GapView[]> {
    await subscribe(selection)
    await create('urn:mark:0', 'T', 1)
    await vi.waitFor(
      async () => expect((await centre.get(`${v1}/entities/urn:mark:0`)).status).toBe(200),
      withinMs,
    )
    const { httpPort } = centre
    await centre.close()
    for (const id of ids) {
      await create(id, id.split(':')[1]!, id.endsWith('low') ? 0 : 1)
      await observe(id, 1)
    }
    await untilEvicted(ids[0]!)
    await startCentre(httpPort)
    await caughtUp('T')
    return gaps()
  }

  it('name no entity that the values do not select, but are still reported', async () => {
    const all = await lostInCut(['urn:T:1', 'urn:T:low', 'urn:U:1'], {
      entities: [{ type: 'T' }],
      q: 'kind==1',
    })
    expect(JSON.stringify(all)).not.toMatch(/urn:T:low|urn:U/)
    const unnamed = all.filter(({ gapOf }) => gapOf === undefined)
    expect(unnamed).toHaveLength(1)
    expect(unnamed[0]).not.toHaveProperty('gapAttribute')
    expect(unnamed[0]!.lostAtMost).toBe(perRequest - 1)
    expect(all.filter(({ gapOf }) => gapOf === 'urn:T:1').length).toBeGreaterThan(0)
  })

  it('beyond the limit of their records are reported as a sum', async () => {
    setLimit('gapsMax', 2)
    const ids = Array.from({ length: 6 }, (_, i) => `urn:T:${i}`)
    const all = await lostInCut(ids, { entities: [{ type: 'T' }] })
    setLimit('gapsMax', 100_000)
    const unnamed = all.filter(({ gapOf }) => gapOf === undefined)
    expect(unnamed).toHaveLength(1)
    const count = all.reduce((sum, { lostAtMost }) => sum + lostAtMost, 0)
    expect(count).toBeGreaterThan(6 * perRequest)
    expect(count).toBeLessThanOrEqual(await evicted())
  })
})
