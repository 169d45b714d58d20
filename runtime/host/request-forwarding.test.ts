/** Forwarding to another broker: what is never sent on, and what a broker that goes away leaves. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import type { RouteEnvironment } from '#contract'
import { otherBrokerOfFile } from '#test/kit/other-broker.ts'
import { freePort } from '#test/kit/ports.ts'
import { openRemoteForward } from './request-forwarding.ts'

const [port, absent] = [await freePort(), await freePort()]
const other = otherBrokerOfFile(port)
const open = (url: string) => openRemoteForward({ url, timeoutMs: 60_000 }, { alias: 'here' })
const remote = open(`${other.url}/ngsi-ld/v1`)
afterAll(() => remote.close())

function requestWith(headers: Record<string, string>, tokenHeader?: 'authorization' | 'x-auth-token') {
  const incoming = Object.assign(new IncomingMessage(new Socket()), {
    method: 'GET',
    url: '/ngsi-ld/v1/x',
    headers,
  })
  const received = { incoming, body: Buffer.alloc(0), ...(tokenHeader && { tokenHeader }) }
  const environment: RouteEnvironment = {
    body: async () => received.body,
    signal: new AbortController().signal,
    arrival: received,
  }
  return { request: new Request('http://x/ngsi-ld/v1/x', { headers }), environment }
}

describe('a forwarded request', () => {
  const both = { authorization: 'Bearer one', 'x-auth-token': 'two' }

  it.each([
    [undefined, both],
    ['authorization', { 'x-auth-token': 'two' }],
    ['x-auth-token', { authorization: 'Bearer one' }],
  ] as const)('does not contain the token of this gateway: %s', async (tokenHeader, expected) => {
    await (await remote.forward(requestWith(both, tokenHeader))).text()
    const { authorization, 'x-auth-token': token } = other.seen[0]!.headers
    expect({ ...(authorization && { authorization }), ...(token && { 'x-auth-token': token }) }).toEqual(
      expected,
    )
  })

  it('fails if nothing listens, and its place is free again', async () => {
    const nowhere = open(`http://127.0.0.1:${absent}`)
    for (let i = 0; i < 3; i++)
      await expect(nowhere.forward(requestWith({}))).rejects.toMatchObject({ code: 'peer.unavailable' })
    nowhere.close()
  })

  it('is sent again if the broker closed an idle connection meanwhile', async () => {
    let count = 0
    other.early = (incoming) => {
      // The second request on a connection finds it closed.
      if (++count !== 2) return false
      incoming.socket.destroy()
      return true
    }
    for (let i = 0; i < 2; i++) expect(await (await remote.forward(requestWith({}))).text()).toBe('[]')
    expect(count).toBe(3)
  })
})
