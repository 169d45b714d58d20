/** An exchange with a source ends in an answer or in the reason why there is none, never in an error. */
import { expect, it } from 'vitest'
import { createPeer } from './peer.ts'

it('says why a request cannot be sent', async () => {
  const peer = createPeer({ allowsLoopback: true })
  const exchange = (url: string, headers: Record<string, string>) =>
    peer.exchange({ method: 'GET', url, headers, timeoutMs: 1000 })
  expect(await exchange('http://127.0.0.1:1/', { 'ngsild-tenant': 'a\r\nb' })).toMatchObject({
    failure: 'unreachable',
    reason: expect.stringContaining('header') as string,
  })
  expect(await exchange('http://127.0.0.1:1/', {})).toMatchObject({ failure: 'unreachable' })
  peer.close()
})
