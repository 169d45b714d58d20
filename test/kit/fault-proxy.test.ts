/** The bad way itself: each fault does what it says, and the way is found again on the same port. */
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFaultProxy, type FaultProxy } from './fault-proxy.ts'
import { httpClient } from './http-gateway.ts'
import { createReceiver, type Receiver } from './receiver.ts'

describe('a fault proxy', () => {
  let server: Receiver
  let proxy: FaultProxy
  const post = (body: unknown, path = '/any') =>
    httpClient(proxy.url)
      .send('POST', path, body)
      .then(
        ({ status }) => status,
        () => 'failed',
      )
  const within = <T>(ms: number, promise: Promise<T>): Promise<T | 'silence'> =>
    Promise.race([promise, new Promise<'silence'>((resolve) => setTimeout(resolve, ms, 'silence'))])

  beforeEach(async () => {
    server = await createReceiver()
    proxy = await createFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(server.url()).port) },
    })
  })
  afterEach(async () => {
    await proxy.close()
    await server.down()
  })

  it('refuses, and is there again', async () => {
    expect(await post({})).toBe(204)
    await proxy.set('refused')
    expect(await post({})).toBe('failed')
    await proxy.set('none')
    expect(await post({})).toBe(204)
    expect(server.received).toHaveLength(2)
  })

  it('swallows without a word, and passes late', async () => {
    await proxy.set('blackhole')
    const late = post({})
    expect(await within(300, late)).toBe('silence')
    expect(server.received).toHaveLength(0)
    await proxy.set('none')
    expect(await late).toBe(204)
  })

  it('takes requests without telling what became of them', async () => {
    await proxy.set('half-open')
    const lost = post({})
    expect(await within(300, lost)).toBe('silence')
    expect(server.received).toHaveLength(1)
    await proxy.set('none')
    expect(await lost).toBe('failed')
  })

  it('is slow, and flaps', async () => {
    await proxy.set('slow')
    const started = performance.now()
    expect(await post('x'.repeat(10_000))).toBe(204)
    expect(performance.now() - started).toBeGreaterThan(150)
    await proxy.set('flapping')
    const seen = new Set<unknown>()
    for (let i = 0; i < 40 && seen.size < 2; i++) {
      seen.add(await post({}))
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
    expect(seen).toEqual(new Set([204, 'failed']))
  })

  it('answers for the server', async () => {
    for (const status of [429, 500, 503] as const) {
      await proxy.set(status)
      expect(await post({})).toBe(status)
    }
    expect(server.received).toHaveLength(0)
    expect(proxy.counts().answered).toBe(3)
  })

  it('fails one item of a batch, and passes on the others', async () => {
    await proxy.set(207)
    expect(await post([{ id: 'a' }, { id: 'b' }, { id: 'c' }], '/ngsi-ld/v1/entityOperations/upsert')).toBe(
      207,
    )
    expect(JSON.parse(server.received[0]!.body)).toEqual([{ id: 'a' }, { id: 'c' }])
    expect(await post({ id: 'a' }, '/ngsi-ld/v1/entities')).toBe(503)
  })

  it('stands for the server as others do', async () => {
    for (const [odd, status] of [
      ['ingress', 404],
      ['login', 302],
      ['portal', 200],
      ['portal-json', 200],
      ['portal-empty', 200],
      ['firewall', 400],
      ['wait', 503],
    ] as const) {
      await proxy.set(odd)
      expect(await post([{ id: 'a' }], '/ngsi-ld/v1/entityOperations/upsert')).toBe(status)
    }
    expect(server.received).toHaveLength(0)
  })

  it('passes on less of a batch than was sent, and names no more', async () => {
    await proxy.set('hole')
    const body = gzipSync(JSON.stringify(['a', 'b', 'c', 'd'].map((id) => ({ id }))))
    const headers = { 'content-encoding': 'gzip' }
    const answer = await fetch(`${proxy.url}/ngsi-ld/v1/entityOperations/upsert`, {
      method: 'POST',
      headers,
      body,
    })
    expect(await answer.json()).toEqual({ success: ['a', 'c', 'd'], errors: [] })
    expect(JSON.parse(server.received[0]!.body)).toHaveLength(3)
  })

  it('resets what was open when it refuses', async () => {
    const socket = connect(proxy.port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const ended = new Promise((resolve) => socket.once('error', resolve).once('close', resolve))
    await proxy.set('refused')
    expect(await within(1000, ended)).not.toBe('silence')
  })
})
