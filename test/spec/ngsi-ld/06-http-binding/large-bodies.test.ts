/**
 * A body of 100 MB is refused with 413 before it is sent [RFC 9110 15.5.14]. The refusal is immediate if the
 * length is announced, otherwise as soon as the body exceeds every limit. NGSI-LD refuses bodies without a
 * length: 411 (6.3.4). The test covers every operation with a body.
 */
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { operations } from '#http/openapi/operations.ts'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const megabyte = 1024 * 1024
const withBody = Object.entries(operations)
  .filter(([, { body }]) => body !== undefined)
  .map(([key]) => key.split(' ') as [string, string])

it('there are operations with a body', () => {
  expect(withBody.length).toBeGreaterThan(20)
})

/** A path with its own secret, or of another media type, reads no body that it will not accept. */
function refusalsOf(path: string): readonly number[] {
  if (path.includes('/source-notifications/')) return [404]
  return path.endsWith('/models') ? [413, 415] : [413]
}

it.each(withBody)(
  '%s %s shall refuse 100 MB that are announced without a byte of them',
  async (method, path) => {
    const sent = await send(method, path, `Content-Length: ${100 * megabyte}`)
    expect(refusalsOf(path)).toContain(sent.status)
  },
)

it.each(withBody)(
  '%s %s shall refuse 100 MB that are not announced before they are sent',
  async (method, path) => {
    const chunk = Buffer.concat([
      Buffer.from(`${megabyte.toString(16)}\r\n`),
      Buffer.alloc(megabyte, ' '),
      Buffer.from('\r\n'),
    ])
    const sent = await send(method, path, 'Transfer-Encoding: chunked', chunk)
    expect(path.startsWith('/ngsi-ld/') ? [411, 413] : refusalsOf(path)).toContain(sent.status)
    // The socket buffers on both sides are added.
    expect(sent.bytes).toBeLessThan(limits.batchBytesMax.value + 20 * megabyte)
  },
)

/** Sends a head, and one chunk repeatedly until a response arrives. */
async function send(
  method: string,
  path: string,
  length: string,
  chunk?: Buffer,
): Promise<{ readonly status: number; readonly bytes: number }> {
  const { port } = new URL(gateway.url)
  const type = path.includes('senml') ? 'application/senml+json' : 'application/json'
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  let bytes = 0
  const more = (): void => {
    while (chunk !== undefined && bytes < 100 * megabyte) {
      bytes += chunk.length
      if (!socket.write(chunk)) return
    }
  }
  const status = await new Promise<number>((resolve, reject) => {
    socket.on('error', reject).on('drain', more)
    socket.once('data', (data) => resolve(Number(data.toString('latin1').slice(9, 12))))
    const target = path.replaceAll(/:\w+/g, 'urn:ngsi-ld:X:1')
    socket.write(
      `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n${length}\r\n\r\n`,
    )
    more()
  })
  socket.on('error', () => undefined).destroy()
  return { status, bytes }
}
