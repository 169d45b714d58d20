/** Fetching of documents against a real server: what is bounded, and what is refused. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDocumentFetcher } from './document-fetch.ts'

let server: Server
let base = ''
const fetchDocument = createDocumentFetcher({ allowLoopback: true })
const get = (path: string, more: object = {}) =>
  fetchDocument({
    url: base + path,
    accept: 'application/ld+json',
    timeoutMs: 300,
    bytesMax: 1000,
    redirectsMax: 2,
    ...more,
  })

beforeAll(async () => {
  server = createServer((request, response) => {
    const { url = '/' } = request
    if (url === '/plain') response.end(JSON.stringify({ accept: request.headers.accept }))
    else if (url === '/large') response.end('x'.repeat(5000))
    else if (url === '/silent') return
    else if (url === '/cut')
      response.writeHead(200, { 'Content-Length': 50 }).write('half', () => request.socket.destroy())
    else if (url.startsWith('/hop')) {
      const left = Number(url.slice(4))
      response.writeHead(302, { Location: left === 0 ? '/plain' : `/hop${left - 1}` }).end()
    } else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

describe('fetching a document', () => {
  it('returns the body and sends an Accept header', async () => {
    const { body } = await get('/plain')
    expect(JSON.parse(body.toString())).toEqual({ accept: 'application/ld+json' })
  })
  it('follows as many redirects as allowed', async () => {
    expect((await get('/hop1')).body.toString()).toContain('accept')
    await expect(get('/hop2')).rejects.toMatchObject({ code: 'peer.unavailable', message: /more than 2/ })
  })
  it.each([
    ['/large', /larger than 1000/],
    ['/silent', /in time/],
    ['/cut', /aborted|reset|hang/],
    ['/none', /404/],
  ])('refuses %s', async (path, message) => {
    await expect(get(path)).rejects.toMatchObject({ code: 'peer.unavailable', message })
  })
  it.each(['ftp://example.org/x', 'not a url', 'file:///etc/passwd'])('refuses %s', async (url) => {
    await expect(get('', { url })).rejects.toMatchObject({ code: 'peer.unavailable' })
  })
  it('refuses loopback, by address and by name, unless allowed', async () => {
    const elsewhere = createDocumentFetcher({ allowLoopback: false })
    const port = new URL(base).port
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '0x7f000001']) {
      await expect(
        elsewhere({
          url: `http://${host}:${port}/plain`,
          accept: '*/*',
          timeoutMs: 300,
          bytesMax: 9,
          redirectsMax: 0,
        }),
      ).rejects.toMatchObject({ code: 'peer.loopback' })
    }
  })
})
