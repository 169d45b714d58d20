/**
 * Operating an uplink: pausing and resuming, rate limits, windows, daily bytes, throttling, and reporting by
 * its subscription; invalid options are refused by name.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { createLesserBroker } from '#test/kit/lesser-broker.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const withinMs = { interval: 100 }
const seconds = (n: number): string =>
  new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')

let folder: string
let site: GatewayProcess
let centre: GatewayProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-operator-'))
  centre = await startGatewayProcess({ dataFolder: join(folder, 'centre') })
  site = await startSite()
})

/** A site with an uplink in its settings. */
const startSite = (): Promise<GatewayProcess> =>
  startGatewayProcess({
    dataFolder: join(folder, 'site'),
    config: {
      uplinks: [{ id: 'cloud', url: centre.httpUrl, tenant: 'sites', types: ['Declared'], rate: 1000 }],
    },
  })
afterAll(async () => {
  await Promise.all([site.stop(), centre.stop()])
  rmSync(folder, { recursive: true })
})

const here = () => httpClient(site.httpUrl)
const there = () => httpClient(centre.httpUrl)
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await here().send(method, path, body)
  expect(answer.status < 300 ? '' : answer.text).toBe('')
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

describe('an invalid uplink declaration', () => {
  it.each([
    [{ rate: 'fast' }, 'selvedge:rate'],
    [{ window: '0 25 * * * for 10' }, 'selvedge:window'],
    [{ budget: '7' }, 'selvedge:budget'],
  ])('is refused with the reason: %j', async (wishes, key) => {
    const body = subscription('urn:wrong', 'Tank', wishes as unknown as Record<string, string>)
    const answer = await here().send('POST', '/ngsi-ld/v1/subscriptions', body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining(key) })
  })

  it('is refused if its endpoint is not a broker', async () => {
    const body = subscription('urn:wrong', 'Tank', {}) as { notification: { endpoint: { uri: string } } }
    body.notification.endpoint.uri = `${centre.httpUrl}/ngsi-ld/v1?x=1`
    const answer = await here().send('POST', '/ngsi-ld/v1/subscriptions', body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining('endpoint.uri') })
  })
})

// Each has a type of its own, and spends most of its time waiting.
describe.concurrent('an uplink', () => {
  it('can be declared in the settings, and sends to a tenant of the centre', async () => {
    await create('Declared', '1')
    await send('POST', '/ngsi-ld/v1/subscriptions', subscription('urn:make', 'None', {}))
    await vi.waitFor(async () => {
      const path = `${entities}/urn:Declared:1`
      expect((await there().get(path, { 'ngsild-tenant': 'sites' })).status).toBe(200)
      expect((await there().get(path)).status).toBe(404)
    }, withinMs)
    const all = (await here().get('/selvedge/v1/uplinks')).json() as { id: string; from: string }[]
    expect(all).toContainEqual(expect.objectContaining({ id: 'cloud', from: 'settings' }))
    expect((await here().get('/ngsi-ld/v1/subscriptions/cloud')).status).not.toBe(200)
  })

  it('reports its results in its subscription', async () => {
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

  it('keeps to its rate limit', async () => {
    for (let i = 0; i < 6; i++) await create('Paced', `${i}`)
    await uplink('urn:paced', 'Paced', { rate: '4' })
    await vi.waitFor(async () => expect(await countThere('Paced')).toBeGreaterThan(0), withinMs)
    const began = Date.now()
    for (let level = 2; level < 14; level++) await observe('Paced', '1', level)
    await vi.waitFor(async () => expect(await levelThere('Paced', '1')).toBe(13), withinMs)
    expect(Date.now() - began).toBeGreaterThan(1500)
  })

  it('sends one value per entity and throttling period, and the newest in the end', async () => {
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

  it('sends no more bytes a day than allowed', async () => {
    // More than the minimum of any day.
    const noise = { type: 'Property', value: randomBytes(6000).toString('base64') }
    await send('POST', entities, { id: 'urn:Dear:large', type: 'Dear', noise })
    await uplink('urn:dear', 'Dear', { 'bytes-per-day': '300' })
    await pause(2500)
    const before = await countThere('Dear')
    await create('Dear', 'last')
    await pause(1500)
    expect(await countThere('Dear')).toBe(before)
  })
})

/** The output of a command for this site, with its exit code. */
async function said(...args: readonly string[]) {
  const { code, stdout, stderr } = await runSelvedge([...args, '--url', site.httpUrl], {
    env: { SELVEDGE_DATA: join(folder, 'site') },
  })
  return { code, stdout, stderr }
}

describe('an operator', () => {
  it('pauses an uplink across restarts, and resumes it', async () => {
    await create('Held', '1')
    await uplink('urn:held', 'Held', {})
    await vi.waitFor(async () => expect(await countThere('Held')).toBe(1), withinMs)
    const paused = await said('uplink', 'pause', 'urn:held')
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringContaining('paused') })
    await site.kill('SIGKILL')
    site = await startSite()
    await create('Held', '2')
    await pause(1500)
    expect(await countThere('Held')).toBe(1)
    const { code, stdout } = await said('uplink', 'resume', 'urn:held', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject([{ id: 'urn:held', from: 'subscription' }])
    await vi.waitFor(async () => expect(await countThere('Held')).toBe(2), withinMs)
    const { text } = await here().get('/metrics')
    expect(text).toMatch(/selvedge_uplink_up\{uplink="urn:held"\} 1/)
  })

  it('reconciles with the centre, and cancels a reconciliation that a command waits for', async () => {
    const looked = await said('uplink', 'reconcile', 'urn:held', '--dry-run')
    expect(looked).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^urn:held: compared, nothing sent\n *Compared +2 entities\n/),
    })
    await said('uplink', 'pause', 'urn:held')
    const begun = await said('uplink', 'reconcile', 'urn:held', '--timeout', '0')
    expect(begun).toMatchObject({ code: 0, stdout: expect.stringContaining('not finished') })
    await said('uplink', 'reconcile', 'urn:held', '--cancel')
    const late = await said('uplink', 'reconcile', 'urn:held', '--timeout', '2')
    expect(late).toMatchObject({ code: 1, stderr: 'urn:held: waits until it is resumed\n' })
    await said('uplink', 'reconcile', 'urn:held', '--cancel')
    const waiting = said('uplink', 'reconcile', 'urn:held', '--json')
    const phase = async (): Promise<string | undefined> => {
      const answer = await here().get('/selvedge/v1/uplinks/urn:held')
      const { reconcile }: { reconcile?: { phase: string; isDry: boolean } } = answer.json()
      return reconcile?.isDry === false ? reconcile.phase : undefined
    }
    await vi.waitFor(async () => expect([undefined, 'cancelled']).not.toContain(await phase()), withinMs)
    const ended = await said('uplink', 'reconcile', 'urn:held', '--cancel')
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('urn:held: cancelled; changes sent so far are kept\n'),
    })
    const { code, stdout } = await waiting
    expect([code, JSON.parse(stdout)]).toMatchObject([1, [{ id: 'urn:held', phase: 'cancelled' }]])
    await said('uplink', 'resume', 'urn:held')
    for (const flags of [
      ['pause', '--cancel'],
      ['pause', '--timeout', '1'],
      ['reconcile', '--timeout', 'soon'],
      ['reconcile', '--cancel', '--dry-run'],
    ])
      expect((await said('uplink', ...flags)).code).toBe(64)
  })

  it('sees the reason of a reconciliation that waits for histories alone', async () => {
    const failing = { '/selvedge/v1/digests': 503 }
    const way = await createLesserBroker(Number(new URL(centre.httpUrl).port), failing)
    const notifierInfo = [{ key: 'selvedge:mode', value: 'uplink' }]
    await uplink('urn:half', 'Half', {}, { notification: { endpoint: { uri: way.url, notifierInfo } } })
    await create('Half', '1')
    await vi.waitFor(async () => expect(await countThere('Half')).toBe(1), withinMs)
    const { code, stderr } = await said('uplink', 'reconcile', 'urn:half', '--timeout', '5')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^urn:half: waits for the centre, which fails to store histories: .*503/m)
    await send('DELETE', '/ngsi-ld/v1/subscriptions/urn:half')
    await way.close()
  })

  it('tests the link, and reads what is wrong with it', async () => {
    const works = await said('uplink', 'test', 'urn:held')
    expect(works).toMatchObject({ code: 0, stdout: expect.stringContaining('works') })
    expect(await countThere('SelvedgeProbe')).toBe(0)
    await send('PATCH', '/ngsi-ld/v1/subscriptions/urn:held', {
      notification: {
        endpoint: {
          // The URL is completed, as in the settings.
          uri: 'http://127.0.0.1:9',
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })
    await vi.waitFor(async () => {
      const { code, stdout } = await said('uplink', 'test', 'urn:held')
      expect(stdout).toContain('nothing listens at this address')
      expect(code).toBe(1)
    }, withinMs)
    await create('Held', '3')
    await vi.waitFor(async () => {
      const health = await here().get('/health/ready')
      expect(health.status).toBe(200)
      expect(health.json()).toMatchObject({
        status: 'degraded',
        degraded: expect.arrayContaining([expect.stringContaining('uplink urn:held has sent nothing since')]),
      })
    }, withinMs)
    await said('uplink', 'pause', 'urn:held')
    const resumed = await said('uplink', 'resume', 'urn:held')
    expect(resumed).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('offline'),
      stderr: expect.stringContaining('urn:held is resumed; its centre is still unreachable'),
    })
    expect((await said('uplink', 'status', 'urn:held')).code).toBe(1)
  })

  it('gets clear errors for invalid commands', async () => {
    expect(await said('uplink', 'stop')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('unknown action'),
    })
    expect(await said('uplink')).toMatchObject({ code: 64, stderr: expect.stringContaining('ACTION') })
    expect(await said('uplink', 'pause', 'urn:heldd')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('did you mean urn:held?'),
    })
    expect(await said('queue', 'retry')).toMatchObject({ code: 64, stderr: expect.stringContaining('--all') })
    const unknown = await here().send('POST', '/selvedge/v1/uplinks/urn:none/pause', undefined)
    expect(unknown.status).toBe(404)
  })

  it('lists refused changes with their reasons, retries and drops them', async () => {
    let accepts = false
    const taken: string[] = []
    const receiver = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        const isBatch = request.url?.startsWith('/ngsi-ld/v1/entityOperations/upsert') === true
        if (request.method === 'GET')
          request.url?.includes('/entities?') ? response.end('[]') : response.writeHead(404).end()
        else if (accepts) {
          taken.push(`${isBatch ? 'batch' : request.url} ${body}`)
          response.writeHead(204).end()
        } else
          response.writeHead(400, { 'content-type': 'application/json' }).end('{"title":"no such thing"}')
      })
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
    try {
      const broker = subscription('urn:picky', 'Odd', {}) as { notification: { endpoint: { uri: string } } }
      broker.notification.endpoint.uri = `${url}/ngsi-ld/v1`
      await send('POST', '/ngsi-ld/v1/subscriptions', broker)
      await send('POST', '/ngsi-ld/v1/subscriptions', {
        id: 'urn:told-odd',
        type: 'Subscription',
        entities: [{ type: 'Odd' }],
        notificationTrigger: ['entityCreated'],
        notification: { endpoint: { uri: `${url}/notify` } },
      })
      await create('Odd', '1')
      const ids = await vi.waitFor(
        async () => {
          const { items } = (await here().get('/selvedge/v1/queue')).json() as { items: { id: string }[] }
          const found = items.map(({ id }) => id)
          expect(found.some((id) => id.startsWith('notification-'))).toBe(true)
          expect(found.some((id) => id.startsWith('uplink-'))).toBe(true)
          return found
        },
        { interval: 200 },
      )
      const { stdout } = await said('queue', 'ls')
      expect(stdout).toContain('no such thing')
      const counted = async (): Promise<boolean> => {
        const { items } = (await here().get('/selvedge/v1/queue')).json() as { items: { id: string }[] }
        const count = items.filter(({ id }) => id.startsWith('uplink-')).length
        const { text } = await here().get('/metrics')
        return [
          `selvedge_uplink_refused_total{uplink="urn:picky"} ${count}`,
          'selvedge_uplink_sent_total{uplink="urn:picky"} 0',
          `selvedge_uplink_refused_waiting ${count}`,
        ].every((line) => text.includes(`\n${line}\n`))
      }
      await expect.poll(counted).toBe(true)
      expect((await said('queue', 'ls', '--limit', '1')).stdout).toMatch(/\n1 of [2-9]\n$/)
      expect(await said('queue', 'ls', '--limit', '0')).toMatchObject({
        code: 64,
        stderr: expect.stringContaining('--limit expects a whole number above 0'),
      })
      expect(stdout).toContain('urn:Odd:1')
      const refused = ids.find((id) => id.startsWith('uplink-'))!
      expect(await said('queue', 'retry', refused)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('refused again'),
      })

      accepts = true
      expect(await said('queue', 'retry', '--all')).toMatchObject({ code: 0 })
      await vi.waitFor(() => {
        expect(taken.some((one) => one.startsWith('batch') && one.includes('urn:Odd:1'))).toBe(true)
        expect(taken.some((one) => one.startsWith('/notify') && one.includes('urn:Odd:1'))).toBe(true)
      }, withinMs)
      expect((await said('queue', 'ls')).stdout).toBe('The queue is empty.\n')

      accepts = false
      await create('Odd', '2')
      await vi.waitFor(
        async () => expect((await said('queue', 'ls')).stdout).toContain('urn:Odd:2'),
        withinMs,
      )
      expect(await said('queue', 'drop', '--all', '--subscription', 'urn:picky')).toMatchObject({ code: 0 })
      expect((await said('queue', 'ls', '--subscription', 'urn:picky')).stdout).toBe('The queue is empty.\n')
    } finally {
      receiver.closeAllConnections()
      receiver.close()
    }
  })
})
