/**
 * Who is notified in `npm run bench -- subscriptions`, as a process of its own: takes POSTs on plain sockets and
 * answers 204 at once. GET answers how many notifications came, and how many different ones by their id. Prints its
 * port.
 */

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

const taken = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')
const endOfHead = '\r\n\r\n'
const ids = new Set<string>()
let received = 0

function serve(socket: Socket): void {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    for (;;) {
      const end = rest.indexOf(endOfHead)
      if (end < 0) return
      const head = rest.toString('latin1', 0, end)
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      const next = end + endOfHead.length + length
      if (rest.length < next) return
      if (head.startsWith('GET')) tell(socket)
      else take(socket, rest.toString('latin1', next - length, Math.min(next, next - length + 200)))
      rest = rest.subarray(next)
    }
  })
}

function take(socket: Socket, start: string): void {
  received++
  ids.add(/"id":"([^"]+)"/.exec(start)?.[1] ?? '')
  socket.write(taken)
}

function tell(socket: Socket): void {
  const text = JSON.stringify({ received, distinct: ids.size })
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`)
}

const server = createServer({ noDelay: true }, serve)
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
process.once('SIGTERM', () => process.exit(0))
