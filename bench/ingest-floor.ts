/**
 * The floor of the ingest figures: the least that bare libraries need for the same promise. mqtt-packet parses, better-sqlite3
 * inserts each payload as it came, and a PUBACK follows the flush of its group. Nothing is decoded, recognized or readable.
 * Prints its port.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { parser as createParser, generate, type Packet } from 'mqtt-packet'

const database = new Database(join(process.env['SELVEDGE_DATA']!, 'floor.db'))
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.exec('CREATE TABLE log (n INTEGER PRIMARY KEY, at INTEGER, topic TEXT, payload BLOB)')
const insert = database.prepare<[number, string, Buffer]>(
  'INSERT INTO log (at, topic, payload) VALUES (?, ?, ?)',
)

interface Published {
  readonly socket: Socket
  readonly topic: string
  readonly payload: Buffer
  readonly id: number
}

let waiting: Published[] = []
const connack = generate({ cmd: 'connack', returnCode: 0, sessionPresent: false })

const writeAll = database.transaction((group: readonly Published[]) => {
  const at = Date.now()
  for (const { topic, payload } of group) insert.run(at, topic, payload)
})

function commit(): void {
  const group = waiting
  waiting = []
  writeAll(group)
  const acknowledgements = new Map<Socket, Buffer[]>()
  for (const { socket, id } of group) {
    const puback = generate({ cmd: 'puback', messageId: id })
    const own = acknowledgements.get(socket)
    if (own === undefined) acknowledgements.set(socket, [puback])
    else own.push(puback)
  }
  for (const [socket, pubacks] of acknowledgements) socket.write(Buffer.concat(pubacks))
}

function receive(socket: Socket, packet: Packet): void {
  if (packet.cmd === 'connect') socket.write(connack)
  if (packet.cmd !== 'publish') return
  if (waiting.length === 0) setImmediate(commit)
  const { topic, payload, messageId } = packet
  waiting.push({ socket, topic, payload: payload as Buffer, id: messageId! })
}

const server = createServer({ noDelay: true }, (socket) => {
  const parser = createParser()
  parser.on('packet', (packet) => receive(socket, packet))
  socket.on('data', (bytes) => void parser.parse(bytes))
  socket.on('error', () => undefined)
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
process.once('SIGTERM', () => process.exit(0))
