/**
 * An uplink as an operator has it: paused and resumed, kept to a pace, to windows and to bytes of a day, throttled, and
 * told by its subscription; wrong wishes are refused by name.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const withinMs = { timeout: 10_000, interval: 100 }
const seconds = (n: number): string =>
  new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')

let folder: string
let site: GatewayProcess
let centre: GatewayProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-operator-'))
  ;[site, centre] = await Promise.all([
    startGatewayProcess({ dataFolder: join(folder, 'site') }),
    startGatewayProcess({ dataFolder: join(folder, 'centre') }),
  ])
})
afterAll(async () => {
  await Promise.all([site.stop(), centre.stop()])
  rmSync(folder, { recursive: true })
})

const here = () => httpClient(site.httpUrl)
const there = () => httpClient(centre.httpUrl)
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await here().send(method, path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
}
const subscription = (
  id: string,
  type: string,
  wishes: Record<string, string>,
  more: object = {},
): object => ({
  id,
  type: 'Subscription',
  entities: [{ type }],
  notification: {
    endpoint: {
      uri: `${centre.httpUrl}/ngsi-ld/v1`,
      notifierInfo: [
        { key: 'selvedge:mode', value: 'uplink' },
        ...Object.entries(wishes).map(([key, value]) => ({ key: `selvedge:${key}`, value })),
      ],
    },
  },
  ...more,
})
const uplink = (...given: Parameters<typeof subscription>): Promise<void> =>
  send('POST', '/ngsi-ld/v1/subscriptions', subscription(...given))
const create = (type: string, id: string, level = 1): Promise<void> =>
  send('POST', entities, {
    id: `urn:${type}:${id}`,
    type,
    level: { type: 'Property', value: level, observedAt: seconds(level) },
  })
const observe = (type: string, id: string, level: number): Promise<void> =>
  send('PATCH', `${entities}/urn:${type}:${id}/attrs`, {
    level: { type: 'Property', value: level, observedAt: seconds(level) },
  })
const levelThere = async (type: string, id: string): Promise<number | undefined> => {
  const { status, json } = await there().get(`${entities}/urn:${type}:${id}?options=keyValues`)
  return status === 200 ? (json() as { level: number }).level : undefined
}
const countThere = async (type: string): Promise<number> =>
  ((await there().get(`${entities}?type=${type}&limit=1000`)).json() as unknown[]).length
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe('an uplink that is declared wrong', () => {
  it.each([
    [{ rate: 'fast' }, 'selvedge:rate'],
    [{ window: '0 25 * * * for 10' }, 'selvedge:window'],
    [{ budget: '7' }, 'selvedge:budget'],
  ])('is refused with what is wrong: %j', async (wishes, key) => {
    const body = subscription('urn:wrong', 'Tank', wishes as unknown as Record<string, string>)
    const answer = await here().send('POST', '/ngsi-ld/v1/subscriptions', body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining(key) })
  })

  it('is refused where its endpoint is no broker', async () => {
    const body = subscription('urn:wrong', 'Tank', {}) as { notification: { endpoint: { uri: string } } }
    body.notification.endpoint.uri = `${centre.httpUrl}/notify`
    const answer = await here().send('POST', '/ngsi-ld/v1/subscriptions', body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining('endpoint.uri') })
  })
})

describe('an uplink', () => {
  it('tells by its subscription what became of it', async () => {
    await create('Told', '1')
    await uplink('urn:told', 'Told', {})
    await vi.waitFor(async () => {
      const { notification } = (await here().get('/ngsi-ld/v1/subscriptions/urn:told')).json() as {
        notification: { status?: string; timesSent?: number; lastSuccess?: string }
      }
      expect(notification).toMatchObject({ status: 'ok', lastSuccess: expect.any(String) })
      expect(notification.timesSent).toBeGreaterThan(0)
    }, withinMs)
  })

  it('keeps to its pace', async () => {
    for (let i = 0; i < 6; i++) await create('Paced', `${i}`)
    await uplink('urn:paced', 'Paced', { rate: '4' })
    await vi.waitFor(async () => expect(await countThere('Paced')).toBeGreaterThan(0), withinMs)
    for (let level = 2; level < 14; level++) await observe('Paced', '1', level)
    const began = Date.now()
    await vi.waitFor(async () => expect(await levelThere('Paced', '1')).toBe(13), withinMs)
    expect(Date.now() - began).toBeGreaterThan(1500)
  })

  it('tells one value per entity in the time of its throttling, and the newest in the end', async () => {
    await create('Rare', '1')
    await uplink('urn:rare', 'Rare', {}, { throttling: 2 })
    await vi.waitFor(async () => expect(await levelThere('Rare', '1')).toBe(1), withinMs)
    for (let level = 2; level < 12; level++) await observe('Rare', '1', level)
    await vi.waitFor(async () => expect(await levelThere('Rare', '1')).toBe(11), withinMs)
    await vi.waitFor(async () => {
      const path = '/ngsi-ld/v1/temporal/entities/urn:Rare:1?options=temporalValues'
      const { level } = (await there().get(path)).json() as { level: { values: unknown[] } }
      expect(level.values).toHaveLength(11)
    }, withinMs)
  })

  it('sends nothing outside its windows', async () => {
    await create('Nightly', '1')
    const hour = (new Date().getHours() + 12) % 24
    await uplink('urn:nightly', 'Nightly', { window: `0 ${hour} * * * for 60` })
    await uplink('urn:daily', 'Nightly', { window: `0 ${hour} * * * for 60` }, { isActive: false })
    await pause(2500)
    expect(await countThere('Nightly')).toBe(0)
    await send('PATCH', '/ngsi-ld/v1/subscriptions/urn:nightly', {
      notification: (
        subscription('urn:nightly', 'Nightly', { window: '* * * * * for 1' }) as { notification: object }
      ).notification,
    })
    await vi.waitFor(async () => expect(await countThere('Nightly')).toBe(1), withinMs)
  })

  it('sends no more on a day than it may', async () => {
    for (let i = 0; i < 3; i++) await create('Dear', `${i}`)
    await uplink('urn:dear', 'Dear', { 'bytes-per-day': '300' })
    await pause(2500)
    const before = await countThere('Dear')
    await create('Dear', 'last')
    await pause(1500)
    expect(await countThere('Dear')).toBe(before)
  })
})
