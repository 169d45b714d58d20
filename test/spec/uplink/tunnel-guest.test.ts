/**
 * A malicious centre at the other end of the tunnel of a real gateway: it sees, changes and deletes only its
 * own subscriptions, creates no uplinks, and cannot have others notified of data it may not read.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { createTunnelEnd, type TunnelEnd } from '#federation/tunnel-end.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const subscriptions = '/ngsi-ld/v1/subscriptions'
const atCentre = 'urn:selvedge:tunnel:hostile/selvedge/v1/source-notifications/token'
const elsewhere = 'http://192.0.2.1/collect'

describe('a centre at the end of a tunnel', () => {
  let folder: string
  let server: WebSocketServer
  let edge: GatewayProcess
  let end: TunnelEnd

  const ask = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await end.exchange(
      { method, path, headers: body === undefined ? {} : headers, body: JSON.stringify(body) ?? '' },
      5000,
    )
    if ('failure' in answer) return expect.unreachable(answer.reason)
    return answer
  }
  const to = (uri: string, more: object = {}): object => ({ notification: { endpoint: { uri, ...more } } })
  const wanted = (id: string, uri: string, more: object = {}): object => ({
    id,
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    ...to(uri, more),
  })
  const overHttp = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/ngsi-ld/v1`
  const uplink = { notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] }

  const start = async (allow: readonly string[]): Promise<void> => {
    const connected = once(server, 'connection')
    const url = new URL(overHttp()).origin
    edge = await startGatewayProcess({
      dataFolder: join(folder, 'edge'),
      env: { SELVEDGE_MQTT_PORT: 'off' },
      config: { tunnels: [{ url, allow }] },
    })
    const [socket, { socket: wire }] = await connected
    const serve = async () => ({ status: 204, headers: {}, body: '' })
    end = createTunnelEnd(socket, { serve, wire, beatMs: 5000, onClose: () => undefined })
    const local = wanted('urn:local', 'http://127.0.0.1:9/ngsi-ld/v1', {
      ...uplink,
      receiverInfo: [{ key: 'Authorization', value: 'Bearer secret' }],
    })
    expect((await httpClient(edge.httpUrl).send('POST', subscriptions, local)).status).toBe(201)
  }

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-guest-'))
    server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    server.on('headers', (headers) => headers.push('Selvedge-Alias: hostile'))
    await once(server, 'listening')
  })
  afterEach(async () => {
    await edge.stop()
    for (const client of server.clients) client.terminate()
    server.close()
    rmSync(folder, { recursive: true })
  })

  it('neither sees nor changes other subscriptions', async () => {
    await start(['read', 'subscribe'])
    expect((await ask('POST', subscriptions, wanted('urn:theirs', atCentre))).status).toBe(201)
    const listed = await ask('GET', `${subscriptions}?count=true&limit=1`)
    expect(JSON.parse(listed.text)).toMatchObject([{ id: 'urn:theirs' }])
    expect(listed.headers['ngsild-results-count']).toBe('1')
    for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { isActive: false }]] as const) {
      const answer = await ask(method, `${subscriptions}/urn:local`, body)
      expect(answer).toMatchObject({ status: 404 })
      expect(answer.text).not.toContain('secret')
    }
    const local = await httpClient(edge.httpUrl).get(`${subscriptions}/urn:local`)
    expect(local.json()).toMatchObject({ status: 'active' })

    expect(await ask('PATCH', `${subscriptions}/urn:theirs`, { isActive: false })).toMatchObject({
      status: 204,
    })
    expect(JSON.parse((await ask('GET', `${subscriptions}/urn:theirs`)).text)).toMatchObject({
      isActive: false,
    })
    expect(await ask('DELETE', `${subscriptions}/urn:theirs`)).toMatchObject({ status: 204 })
    expect((await ask('GET', '/ngsi-ld/v1/csourceSubscriptions')).status).toBe(403)
  })

  it('creates no uplinks, and no notifications to others without the right to read', async () => {
    await start(['subscribe'])
    expect((await ask('POST', subscriptions, wanted('urn:1', elsewhere))).status).toBe(403)
    expect((await ask('POST', subscriptions, wanted('urn:2', overHttp(), uplink))).status).toBe(403)
    expect((await ask('POST', subscriptions, wanted('urn:3', 'mqtt://192.0.2.1/a'))).status).toBe(403)
    expect((await ask('POST', subscriptions, wanted('urn:4', atCentre))).status).toBe(201)
    expect((await ask('PATCH', `${subscriptions}/urn:4`, to(elsewhere))).status).toBe(403)
    expect((await ask('PATCH', `${subscriptions}/urn:4`, to(overHttp(), uplink))).status).toBe(403)
    const there: { id: string; notification: { endpoint: { uri: string } } }[] = (
      await httpClient(edge.httpUrl).get(subscriptions)
    ).json()
    const ofThem = there.filter(({ id }) => /^urn:\d/.test(id))
    expect(ofThem.map(({ id, notification }) => [id, notification.endpoint.uri])).toEqual([
      ['urn:4', atCentre],
    ])
  })

  it('may have others notified of what it may read, but creates no uplinks', async () => {
    await start(['read', 'subscribe'])
    expect((await ask('POST', subscriptions, wanted('urn:1', elsewhere))).status).toBe(201)
    expect((await ask('PATCH', `${subscriptions}/urn:1`, to(elsewhere, uplink))).status).toBe(403)
    expect((await ask('POST', subscriptions, wanted('urn:2', elsewhere, uplink))).status).toBe(403)
  })
})
