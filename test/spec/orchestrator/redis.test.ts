/** Copies of the orchestrator in a real Redis, and what happens without it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { openRedisStore } from '#host/redis-store.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freshId, property } from '#test/kit/gateway-of-file.ts'
import type { PeerServer } from '#test/kit/peer-server.ts'
import { describePeer } from '#test/kit/peers.ts'
import { createRedis } from '#test/kit/redis.ts'

describePeer('redis-server', 'the orchestrator with Redis', (path) => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-copies-'))
  let redis: PeerServer
  let gateway: GatewayInside
  let password: string
  const client = () =>
    createClient({ url: `redis://127.0.0.1:${redis.port}`, password: 'secret', disableOfflineQueue: true })
  const entities = '/orchestrator/ngsi-ld/v1/entities'

  beforeAll(async () => {
    redis = await createRedis(path, ['--requirepass', 'secret'])
    await redis.start()
    password = join(folder, 'redis-password')
    writeFileSync(password, 'secret\n', { mode: 0o600 })
    gateway = await startGatewayInside(folder, {
      PLATFORM_CACHE_HOST: `127.0.0.1:${redis.port}`,
      SELVEDGE_ORCHESTRATOR_CACHE_PASSWORD_FILE: password,
    })
  })
  afterAll(async () => {
    await gateway?.close()
    await redis?.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is not used with a wrong password, and the reason is known', async () => {
    const lines: string[] = []
    const log = createLog({ level: 'info', clock: systemClock, write: (line) => lines.push(line) })
    const wrong = join(folder, 'wrong-password')
    writeFileSync(wrong, 'guess\n', { mode: 0o600 })
    const url = `redis://127.0.0.1:${redis.port}`
    const store = openRedisStore({ url, passwordFile: wrong }, () => undefined, log)
    try {
      await vi.waitFor(() => expect(store.failure()).toContain('WRONGPASS'))
      store.set('selvedge::cache:x', 'y')
      expect(await store.get('selvedge::cache:x')).toBeUndefined()
      expect(lines.join('')).not.toContain('guess')
    } finally {
      store.close()
    }
  })

  const complaints = async (): Promise<string> => (await gateway.get('/health/ready')).text

  const subscriptions = '/orchestrator/ngsi-ld/v1/subscriptions'
  const as = (name: string) => ({ 'Content-Type': 'application/json', 'Selvedge-Client': name })
  const subscribe = async (name: string): Promise<string> => {
    const body = { type: 'Subscription', entities: [{ type: 'Watched' }] }
    const answer = await gateway.ask('POST', subscriptions, { body, headers: as(name) })
    expect(answer.status).toBe(200)
    return answer.text
  }
  const unsubscribe = async (id: string, name: string): Promise<number> =>
    (await gateway.ask('DELETE', `${subscriptions}/${id}`, { headers: as(name) })).status

  it('has copies of responses and clients there, and nothing else', async () => {
    const others = client()
    await others.connect()
    try {
      await others.set('mine', '1')
      const id = freshId()
      await gateway.send('POST', entities, { id, type: 'Copied', a: property(1) })
      await vi.waitFor(async () => expect(await complaints()).not.toContain('Redis'))
      await gateway.get(`${entities}/${id}`, { 'Selvedge-Client': 'app' })
      const caches = await vi.waitFor(async () => {
        const keys = await others.keys('selvedge::cache:*')
        expect(keys.length).toBeGreaterThan(0)
        return keys
      })
      expect(await others.pTTL(caches[0]!)).toBeGreaterThan(0)
      await vi.waitFor(async () => {
        const copy = await others.get('selvedge::client:app')
        expect(JSON.parse(copy ?? '{}')).toMatchObject({ client: 'app', requests: 1 })
      })
      const keys = await others.keys('*')
      expect(keys.filter((key) => !key.startsWith('selvedge:'))).toEqual(['mine'])
      expect(await others.get('mine')).toBe('1')
    } finally {
      others.destroy()
    }
  })

  it('has a copy of a running subscription with its clients, until it ends', async () => {
    const others = client()
    await others.connect()
    try {
      const id = await subscribe('a')
      expect(await subscribe('b')).toBe(id)
      const key = `selvedge::subscription:${id}`
      await vi.waitFor(async () => {
        const copy = JSON.parse((await others.get(key)) ?? '{}') as object
        expect(copy).toMatchObject({
          id,
          tenant: '',
          clients: [
            { client: 'a', delivery: 'transient' },
            { client: 'b', delivery: 'transient' },
          ],
          subscription: { entities: [{ type: 'Watched' }] },
        })
        expect(JSON.stringify(copy)).not.toContain('/notify/')
      })
      expect(await others.pTTL(key)).toBeGreaterThan(0)
      expect(await unsubscribe(id, 'a')).toBe(204)
      await vi.waitFor(async () => expect(await others.get(key)).not.toContain('"client":"a"'))
      expect(await unsubscribe(id, 'b')).toBe(204)
      await vi.waitFor(async () => expect(await others.exists(key)).toBe(0))
    } finally {
      others.destroy()
    }
  })

  it('goes on without Redis, says so, and sends its copies again', async () => {
    const id = freshId()
    const subscription = await subscribe('a')
    await gateway.send('POST', entities, { id, type: 'Copied', a: property(1) })
    await redis.kill('SIGKILL')
    await vi.waitFor(async () => expect(await complaints()).toContain('Redis cannot be reached'))
    expect((await gateway.get(`${entities}/${id}`)).status).toBe(200)
    const again = await gateway.get(`${entities}/${id}`)
    expect([again.status, again.headers['cache-status']]).toEqual([200, 'selvedge-orchestrator; hit'])
    await redis.start()
    await vi.waitFor(async () => expect(await complaints()).not.toContain('Redis'))
    const others = client()
    await others.connect()
    try {
      await vi.waitFor(async () => expect(await others.get('selvedge::client:app')).toContain('"app"'))
      await vi.waitFor(async () =>
        expect(await others.exists(`selvedge::subscription:${subscription}`)).toBe(1),
      )
    } finally {
      others.destroy()
    }
  })
})
