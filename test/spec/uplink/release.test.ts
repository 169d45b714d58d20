/**
 * A throttled value is sent when its period ends, in its current state: older log rows still to be sent over
 * a slow link do not replace it.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const pair = siteAndCentre()
const notFound = { type: 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound', title: 'no such thing' }
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Values of `count` in the order in which a slow broker without histories received them. */
let counts: number[]
let slow: Server
beforeEach(async () => {
  counts = []
  slow = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const url = request.url ?? ''
      const isOther = ['/selvedge', '/info', '/temporal'].some((part) => url.includes(part))
      if (url.includes('/upsert')) {
        const entities = JSON.parse(Buffer.concat(chunks).toString()) as { count?: { value: number } }[]
        counts.push(...entities.flatMap(({ count }) => (count === undefined ? [] : [count.value])))
      }
      const [status, body] = isOther
        ? [404, notFound]
        : url.includes('/upsert')
          ? [204, undefined]
          : [200, []]
      setTimeout(() => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(body === undefined ? undefined : JSON.stringify(body))
      }, 250)
    })
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  slow.closeAllConnections()
  slow.close()
})

it('never sends an older value after a newer one', async () => {
  const send = async (method: string, path: string, body: object): Promise<void> =>
    expect((await pair.site.send(method, `${v1}${path}`, body)).status).toBeLessThan(300)
  const uri = `http://127.0.0.1:${(slow.address() as AddressInfo).port}${v1}`
  const values = (n: number) => ({
    level: { type: 'Property', value: n, observedAt: new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString() },
    count: { type: 'Property', value: n },
  })
  await send('POST', '/subscriptions', {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    throttling: 1,
    notification: { endpoint: { uri, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] } },
  })
  await send('POST', '/entities', { id: 'urn:tank:1', type: 'Tank', ...values(0) })
  await vi.waitFor(() => expect(counts).toContain(0), { interval: 100 })
  // Initial requests get responses, too.
  await pause(4000)
  const end = performance.now() + 4000
  let n = 0
  while (performance.now() < end) {
    n++
    const { level, count } = values(n)
    await send('PATCH', '/entities/urn:tank:1/attrs', { level })
    await send('PATCH', '/entities/urn:tank:1/attrs', { count })
    await pause(4)
  }
  await vi.waitFor(() => expect(counts.at(-1)).toBe(n), { interval: 200 })
  expect(counts).toEqual(counts.toSorted((a, b) => a - b))
})
