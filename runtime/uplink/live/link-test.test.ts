/**
 * The results of a link test for failures of addresses, certificates and credentials. The servers are real;
 * only their responses are made up.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { createPeer, type Peer } from '#federation/peer.ts'
import { certificate, futureCertificate, futureKey, key } from '#test/kit/certificate.ts'
import { createCentralBroker } from '#uplink/centre/central-broker.ts'
import { type Trial, tryUplink } from './link-test.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const openPort = async (server: Server, host = '127.0.0.1'): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
const answering = (status: number, text = '{}'): RequestListener => {
  return (request, response) => {
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json' }).end(text)
  }
}
async function tried(origin: string, ca?: readonly string[]): Promise<Trial> {
  const peer: Peer = createPeer({ allowsLoopback: true, ca })
  closing.push(() => peer.close())
  const centre = createCentralBroker(
    peer,
    { base: `${origin}/ngsi-ld/v1`, headers: {}, alias: 'selvedge-1' },
    systemClock,
  )
  return tryUplink(centre, { alias: 'selvedge-1', clock: systemClock })
}
const failsWith = async (origin: string, words: string | RegExp, ca?: readonly string[]): Promise<void> => {
  const { result, words: said, steps } = await tried(origin, ca)
  expect({ result, said }).toEqual({ result: 'fails', said: expect.stringMatching(words) as string })
  expect(steps).toEqual([{ step: 'reach', ok: false, words: said }])
}

describe('a link test reports', () => {
  it('an unknown host name', () =>
    failsWith('http://no-such-broker.invalid', /^DNS does not know the host name \(/))

  it('an address where nothing listens', async () => {
    const server = createServer()
    const port = await openPort(server)
    await closing.pop()!()
    await failsWith(`http://127.0.0.1:${port}`, /^connection refused: nothing listens at this address \(/)
  })

  it.each([
    [401, /^the credentials are missing or wrong \(401\)$/],
    [403, /^the credentials lack the permission \(403\)$/],
    [429, /^the broker asks to retry later \(429\)$/],
    [502, /^the broker fails: 502/],
    [200, /^the address is not an NGSI-LD broker: 200 \{\}/],
  ])('the meaning of status %i', async (status, words) => {
    const port = await openPort(createServer(answering(status)))
    await failsWith(`http://127.0.0.1:${port}`, words)
  })

  it('an unknown tenant', async () => {
    const port = await openPort(createServer(answering(404, '{"title":"No such tenant"}')))
    await failsWith(`http://127.0.0.1:${port}`, /^the broker does not know the tenant: 404/)
  })

  it('an untrusted certificate and one for another name, and accepts the right one', async () => {
    const way = createTlsServer({ cert: certificate, key }, answering(401)) as unknown as Server
    const port = await openPort(way)
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^the certificate was issued by an untrusted authority \(see caFile\) \(/,
    )
    await failsWith(`https://127.0.0.1:${port}`, /^the credentials are missing or wrong/, [certificate])
    const other = createTlsServer({ cert: certificate, key }, answering(401)) as unknown as Server
    const otherPort = await openPort(other, '127.0.0.2')
    await failsWith(`https://127.0.0.2:${otherPort}`, /^the certificate was issued for another name \(/, [
      certificate,
    ])
  })

  it('a certificate that is not valid yet by the clock', async () => {
    const way = createTlsServer({ cert: futureCertificate, key: futureKey }, answering(200, '[]'))
    const port = await openPort(way as unknown as Server)
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^the certificate is not valid yet; check the clock of this gateway \(/,
      [futureCertificate],
    )
  })

  it('a server without TLS at an https address', async () => {
    const port = await openPort(createServer(answering(200, '[]')))
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^the server does not speak TLS; use http instead of https, or another port \(/,
    )
  })
})
