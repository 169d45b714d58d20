/**
 * What a person is told by the trial of an uplink's way, for the things that go wrong with addresses, certificates and
 * credentials. The servers are real; only what they answer is made up.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { createPeer, type Peer } from '#federation/peer.ts'
import { certificate, futureCertificate, futureKey, key } from '#test/kit/certificate.ts'
import { createCentre } from '#uplink/centre/central-broker.ts'
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
  const centre = createCentre(
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

describe('the trial of a way says', () => {
  it('that a name is not known', () =>
    failsWith('http://no-such-broker.invalid', /^its name is not known to DNS \(/))

  it('that nothing listens', async () => {
    const server = createServer()
    const port = await openPort(server)
    await closing.pop()!()
    await failsWith(`http://127.0.0.1:${port}`, /^nothing listens there: the connection was refused \(/)
  })

  it.each([
    [401, /^it does not know us: the credentials are missing or wrong \(401\)$/],
    [403, /^it knows us and does not let us do this \(403\)$/],
    [429, /^it asks us to wait \(429\)$/],
    [502, /^it fails: 502/],
    [200, /^it is no NGSI-LD broker: 200 \{\}/],
  ])('what an answer of %i means', async (status, words) => {
    const port = await openPort(createServer(answering(status)))
    await failsWith(`http://127.0.0.1:${port}`, words)
  })

  it('that the tenant is not known', async () => {
    const port = await openPort(createServer(answering(404, '{"title":"No such tenant"}')))
    await failsWith(`http://127.0.0.1:${port}`, /^it does not know the tenant: 404/)
  })

  it('that a certificate is of nobody who is trusted, or for another name, and that all is well with the right one', async () => {
    const way = createTlsServer({ cert: certificate, key }, answering(401)) as unknown as Server
    const port = await openPort(way)
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^its certificate is of an authority that is not trusted here \(caFile\) \(/,
    )
    await failsWith(`https://127.0.0.1:${port}`, /^it does not know us/, [certificate])
    const other = createTlsServer({ cert: certificate, key }, answering(401)) as unknown as Server
    const otherPort = await openPort(other, '127.0.0.2')
    await failsWith(`https://127.0.0.2:${otherPort}`, /^its certificate is for another name \(/, [
      certificate,
    ])
  })

  it('that a certificate is not valid yet, as the clock says', async () => {
    const way = createTlsServer({ cert: futureCertificate, key: futureKey }, answering(200, '[]'))
    const port = await openPort(way as unknown as Server)
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^its certificate is not valid yet; is the clock of this gateway right\? \(/,
      [futureCertificate],
    )
  })

  it('that there is no TLS where it was expected', async () => {
    const port = await openPort(createServer(answering(200, '[]')))
    await failsWith(
      `https://127.0.0.1:${port}`,
      /^it does not speak TLS there; is it http instead of https\? \(/,
    )
  })
})
