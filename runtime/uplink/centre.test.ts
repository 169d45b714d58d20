/** The centre as other brokers are: one that knows no gzip refuses nothing that goes up, however much is on its way at once. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '#base/clock.ts'
import { createPeer } from '#federation/peer.ts'
import { createCentre } from './centre.ts'
import type { Step } from './plan.ts'

let server: Server
let taken: number
beforeEach(async () => {
  taken = 0
  server = createServer((incoming, response) => {
    incoming.resume().on('end', () => {
      const status =
        incoming.headers['content-encoding'] === 'gzip' ? 400 : incoming.method === 'GET' ? 404 : 204
      if (status === 204) taken++
      setTimeout(() => response.writeHead(status).end(), 20)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

it('refuses none of several that were packed before it was known that it cannot unpack', async () => {
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ngsi-ld/v1`
  const centre = createCentre(
    createPeer({ allowsLoopback: true }),
    {
      base,
      headers: {},
      alias: 'a',
    },
    systemClock,
  )
  const value = 'x'.repeat(5000)
  const steps = Array.from({ length: 4 }, (_, i): Step => {
    const instance = { type: 'Property', value, observedAt: '2026-01-01T00:00:00Z' }
    return { kind: 'past', entity: { id: `urn:a:${i}`, type: 'A' }, attributes: new Map([['v', [instance]]]) }
  })
  const outcomes = await Promise.all(steps.map((step) => centre.send({ kind: 'past', steps: [step] })))
  expect(outcomes).toEqual(steps.map(() => ({ kind: 'done', refused: [], skipped: 0 })))
  expect(taken).toBe(4)
})
