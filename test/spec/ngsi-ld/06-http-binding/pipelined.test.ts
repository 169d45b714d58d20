/**
 * Requests sent on one connection without waiting for responses [RFC 9112 9.3.2] are answered in order, one
 * at a time: memory holds at most one response.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const pageBytes = 500_000

let gateway: HttpGateway
beforeAll(async () => {
  gateway = await startHttpGateway()
  const value = 'x'.repeat(pageBytes / 250)
  const body = Array.from({ length: 250 }, (_, i) => ({
    id: `urn:r:${i}`,
    type: 'Room',
    a: { type: 'Property', value },
  }))
  await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', body)
})
afterAll(() => gateway.close())

const request = (path: string, header = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`

/** Number of answered requests, including those that read it. */
async function answered(): Promise<number> {
  const { text } = await gateway.get('/metrics')
  return Number(/^selvedge_http_requests_total (\d+)$/m.exec(text)![1])
}

async function open(): Promise<Socket> {
  const socket = connect(gateway.port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

describe('pipelined requests', () => {
  it('are answered in order, by direct reads and full routes', async () => {
    const socket = await open()
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString()
    })
    const asked = Array.from({ length: limits.httpPipelinedMax.value }, (_, i) => `urn:r:${i}`)
    socket.write(
      asked.map((id, i) => request(`${entities}/${id}?pick=id`, i % 3 === 0 ? 'Prefer: x\r\n' : '')).join(''),
    )
    await vi.waitFor(() => expect(text.match(/"urn:r:\d+"/g)).toHaveLength(asked.length))
    expect(text.match(/urn:r:\d+/g)).toEqual(asked)
    socket.destroy()
  })

  it.each(['', 'Prefer: x\r\n'])('are not answered while their client reads nothing: %j', async (header) => {
    const before = await answered()
    const socket = await open()
    socket.pause()
    const many = limits.httpPipelinedMax.value
    socket.write(request(`${entities}?type=Room&limit=250`, header).repeat(many))
    await vi.waitFor(async () => expect((await answered()) - before).toBeGreaterThan(3))
    await new Promise((resolve) => setTimeout(resolve, 300))
    // Sockets buffer some of them.
    expect((await answered()) - before).toBeLessThan(many)
    socket.destroy()
  })

  it('beyond the limit close the connection', async () => {
    const socket = await open()
    socket.on('error', () => undefined)
    socket.resume()
    const closed = once(socket, 'close')
    socket.write(request(`${entities}?type=Room&limit=250`).repeat(limits.httpPipelinedMax.value + 10))
    await closed
    expect((await gateway.get(`${entities}/urn:r:1`)).status).toBe(200)
  })
})
