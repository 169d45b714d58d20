/**
 * Clients that request large answers and read none of them, as a process of its own: what they hold is no memory of the
 * gateway. One argument, JSON: port, clients. Prints `sent` when every request is on its way, and stays until it is killed.
 */
import { connect } from 'node:net'

export interface SlowClients {
  readonly port: number
  readonly clients: number
}

const { port, clients } = JSON.parse(process.argv[2]!) as SlowClients

const list = '/ngsi-ld/v1/entities?type=Big&limit=30'
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`

const requests = [
  get(list),
  get(`${list}&options=sysAttrs`),
  post('/ngsi-ld/v1/entityOperations/query?limit=30', '{"type":"Query","entities":[{"type":"Big"}]}'),
  // All of these at once on one connection.
  get('/ngsi-ld/v1/entities/urn:big:1').repeat(20),
]

await Promise.all(
  Array.from(
    { length: clients },
    (_, i) =>
      new Promise<void>((resolve) => {
        const socket = connect({ port, host: '127.0.0.1' }).pause()
        socket.on('error', () => resolve())
        socket.write(requests[i % requests.length]!, () => resolve())
      }),
  ),
)
process.stdout.write('sent\n')
// Paused sockets alone do not keep a process.
setInterval(() => undefined, 60_000)
