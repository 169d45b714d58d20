/**
 * A certificate that is rejected because of its dates: the error contains the time of this machine, which is
 * usually wrong on a board without a battery.
 */
import { createServer, type Server } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { createHttpEndpoint } from '#delivery/http-endpoint.ts'
import { createPeer } from '#federation/peer.ts'
import { createDocumentFetcher } from '#http/listener/document-fetch.ts'
import { createPublisher } from '#mqtt/notify/publisher.ts'
import { futureCertificate, futureKey } from '#test/kit/certificate.ts'

const words =
  /not yet valid: the clock of this machine says 20\d\d-.*Z; the certificate is valid from Jan +1 00:00:00 2090 GMT to Jan +1 00:00:00 2120 GMT/

const authorities = getCACertificates()
setDefaultCACertificates([...authorities, futureCertificate])
afterAll(() => setDefaultCACertificates(authorities))

let server: Server
let url: string
beforeEach(async () => {
  server = createServer({ key: futureKey, cert: futureCertificate }, (_, answer) => answer.end())
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  url = `https://localhost:${(server.address() as { port: number }).port}/`
})
afterEach(() => void server.close())

it('is reported for HTTPS notification endpoints', async () => {
  const endpoint = createHttpEndpoint(systemClock, { allowsLoopback: true, ca: [futureCertificate] })
  const sent = await endpoint.send({ uri: url, headers: {}, body: 'x' })
  endpoint.close()
  expect(sent).toMatchObject({ ok: false, kind: 'tls', reason: expect.stringMatching(words) })
})

it('is reported for MQTT notification endpoints', async () => {
  const publisher = createPublisher(systemClock, { allowsLoopback: true, ca: [futureCertificate] })
  const mqtt = { qos: 1, version: undefined } as const
  const sent = await publisher.send({
    uri: `${url.replace('https', 'mqtts')}t`,
    body: 'x',
    mqtt,
    timeoutMs: 5000,
  })
  publisher.close()
  expect(sent).toMatchObject({ ok: false, kind: 'tls', reason: expect.stringMatching(words) })
})

it('is reported for context sources and uplinks', async () => {
  const peer = createPeer({ allowsLoopback: true })
  const answer = await peer.exchange({ method: 'GET', url, headers: {}, timeoutMs: 5000 })
  peer.close()
  expect(answer).toMatchObject({ failure: 'unreachable', reason: expect.stringMatching(words) })
})

it('is reported for context documents', async () => {
  const fetchDocument = createDocumentFetcher({ allowLoopback: true })
  const request = { url, accept: 'application/ld+json', timeoutMs: 5000, redirectsMax: 1, bytesMax: 1000 }
  await expect(fetchDocument(request)).rejects.toMatchObject({ message: expect.stringMatching(words) })
})
