/** Closing a connection to an AMQP server that vanishes at that moment, or does not respond any more. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { openAmqpConsumer } from './amqp-consumer.ts'
import { openAmqpPublisher } from './amqp-publisher.ts'

const nothing = (): void => undefined

/** A method of AMQP 0-9-1 as a frame. */
function frameOf(channel: number, method: string, fields: Buffer): Buffer {
  const head = Buffer.alloc(11)
  head.writeUInt8(1, 0)
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(4 + fields.length, 3)
  const [classId, methodId] = method.split('.').map(Number)
  head.writeUInt16BE(classId!, 7)
  head.writeUInt16BE(methodId!, 9)
  return Buffer.concat([head, fields, Buffer.from([0xce])])
}

const longText = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)])
const start = frameOf(
  0,
  '10.10',
  Buffer.concat([Buffer.from([0, 9, 0, 0, 0, 0]), longText('PLAIN'), longText('en_US')]),
)
/** What the server answers to a method: Tune, OpenOk, and those of a channel. */
const answers: Readonly<Record<string, (channel: number) => Buffer>> = {
  '10.11': () => frameOf(0, '10.30', Buffer.from([0, 9, 0, 1, 0, 0, 0, 0])),
  '10.40': () => frameOf(0, '10.41', Buffer.from([0])),
  '20.10': (channel) => frameOf(channel, '20.11', Buffer.alloc(4)),
  '85.10': (channel) => frameOf(channel, '85.11', Buffer.alloc(0)),
}

/** A server that opens connections and channels, and does what the test says when a client closes. */
async function createAmqpServer(onClose: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', nothing)
    let waiting = Buffer.alloc(0)
    let isGreeted = false
    socket.on('data', (data) => {
      waiting = Buffer.concat([waiting, data])
      if (!isGreeted && waiting.length >= 8) {
        isGreeted = true
        waiting = waiting.subarray(8)
        socket.write(start)
      }
      while (isGreeted && waiting.length >= 7) {
        const size = waiting.readUInt32BE(3)
        if (waiting.length < size + 8) return
        const method = waiting[0] === 1 ? `${waiting.readUInt16BE(7)}.${waiting.readUInt16BE(9)}` : ''
        const answer = answers[method]?.(waiting.readUInt16BE(1))
        if (answer !== undefined) socket.write(answer)
        if (method === '10.50') onClose(socket)
        waiting = waiting.subarray(size + 8)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `amqp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const kinds = {
  async publisher(url: string) {
    const connected = Promise.withResolvers<void>()
    const handlers = { connected: connected.resolve, lost: nothing, refused: nothing }
    const publisher = await openAmqpPublisher(handlers, { url })
    await connected.promise
    return publisher
  },
  async consumer(url: string) {
    const connected = Promise.withResolvers<void>()
    const handlers = { connected: connected.resolve, lost: nothing, refused: nothing, message: nothing }
    const consumer = await openAmqpConsumer(handlers, { url, queuePrefix: 'test' })
    await connected.promise
    return consumer
  },
}

describe.each(Object.entries(kinds))('closing a %s', (_name, open) => {
  it.each([
    ['vanishes', (socket: Socket) => void socket.destroy()],
    ['ends its side', (socket: Socket) => void socket.end()],
    ['does not respond', nothing],
  ])('ends when the server %s', async (_does, onClose) => {
    const server = await createAmqpServer(onClose)
    const connection = await open(server.url)
    await expect(connection.close()).resolves.toBeUndefined()
    server.close()
  })
})
