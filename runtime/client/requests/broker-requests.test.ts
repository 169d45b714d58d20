/** How the responses of a followed broker are judged. */
import { expect, it } from 'vitest'
import type { BrokerAnswer } from '#contract'
import { createBrokerClient } from './broker-requests.ts'

function clientOf(answer: BrokerAnswer | Promise<BrokerAnswer>, signal = new AbortController().signal) {
  const port = { address: 'http://broker', exchange: async () => answer }
  return createBrokerClient({ port, signal, monotonic: () => 0, paceMs: 0 })
}
const request = { method: 'GET', path: '/ngsi-ld/v1/entities?type=A' }
const answered = (status: number, text = ''): BrokerAnswer => ({ status, text, headers: {} })

it.each([502, 503, 504])('a broker behind a proxy that answers %d is down', async (status) => {
  expect(await clientOf(answered(status)).request(request, [200])).toMatchObject({
    trouble: { kind: 'down' },
  })
})

it.each([400, 404, 500, 501])('a broker that answers %d refuses', async (status) => {
  expect(await clientOf(answered(status, 'why')).request(request, [200])).toEqual({
    trouble: { kind: 'refused', reason: `GET /ngsi-ld/v1/entities was answered with ${status}: why` },
  })
})

it.each([401, 403])('names the setting of the token if the broker answers %d', async (status) => {
  expect(await clientOf(answered(status)).request(request, [200])).toMatchObject({
    trouble: { reason: expect.stringContaining('set its token in the settings') },
  })
})

it('a broker that does not answer is down, and says if it was by time', async () => {
  const lost = clientOf({ failure: 'timeout', reason: 'no answer' }).request(request, [200])
  expect(await lost).toEqual({ trouble: { kind: 'down', reason: 'no answer', isTimeout: true } })
})

it('an expected response is a value', async () => {
  expect(await clientOf(answered(404)).request(request, [200, 404])).toMatchObject({ value: { status: 404 } })
})

it('an abort ends a request without its answer', async () => {
  const abort = new AbortController()
  const pending = clientOf(new Promise(() => {}), abort.signal).request(request, [200])
  abort.abort()
  expect(await pending).toMatchObject({ trouble: { kind: 'down', reason: 'the request was aborted' } })
})
