/**
 * The HTTP load: keep-alive connections with one request in flight each, written to plain sockets, as a process of its
 * own so that it never competes for the server's core. One argument, JSON: port, kind, connections, seconds, stations,
 * rate (0 = closed loop); instead of a kind and stations, the path of a GET with headers. Prints one JSON line: answers per second and latency
 * percentiles in ms, and how many writes were answered in all. An answer that is no success ends it.
 */
import { connect, type Socket } from 'node:net'
import { bodyOf, pathOf, type RequestKind } from './site.ts'

export interface HttpLoad {
  readonly port: number
  readonly kind: RequestKind
  readonly connections: number
  readonly seconds: number
  readonly stations: number
  readonly rate: number
  readonly get?: { readonly path: string; readonly headers: Readonly<Record<string, string>> }
}

const { port, kind, connections, seconds, stations, rate, get } = JSON.parse(process.argv[2]!) as HttpLoad

interface Connection {
  readonly socket: Socket
  sentAt: number
  busy: boolean
  /** What is in flight is a write. */
  isWrite: boolean
  /** Bytes of the answer that are still to come; -1 while its head is not whole. */
  missing: number
  head: Buffer
}

const latencies: number[] = []
/** More than any server answers. */
const requestsPerMs = 200
/** Each process begins at another number, so that no write repeats an earlier one: a write without a change causes no notification. */
let next = (Date.now() * requestsPerMs) % 1_000_000_000
let done = 0
/** Writes answered, from the first to the last. */
let writes = 0
let measuring = false
let stopped = false
/** Times at which requests of an open loop were due and found no free connection. */
const overdue: number[] = []
const startOfPatch = 'P'.charCodeAt(0)
const endOfHead = Buffer.from('\r\n\r\n')
const prebuilt =
  get === undefined && bodyOf(kind, 1, Date.now()) !== undefined
    ? []
    : Array.from({ length: 20_000 }, (_, n) => requestText(n))

function requestText(n: number): Buffer {
  if (get !== undefined) {
    const fixed = { Host: `127.0.0.1:${port}`, Accept: 'application/json', 'Accept-Encoding': 'identity' }
    const headers = Object.entries({ ...fixed, ...get.headers })
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.from(`GET ${get.path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  }
  const path = encodeURI(pathOf(kind, n, stations))
  const body = bodyOf(kind, n, Date.now())
  const head = `Host: 127.0.0.1:${port}\r\nAccept: application/json\r\n`
  if (body === undefined) return Buffer.from(`GET ${path} HTTP/1.1\r\n${head}\r\n`, 'latin1')
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return Buffer.from(`PATCH ${path} HTTP/1.1\r\n${head}${type}\r\n${body}`, 'latin1')
}

function send(connection: Connection, at: number): void {
  connection.busy = true
  connection.sentAt = at
  const n = next++
  const request = prebuilt.length > 0 ? prebuilt[n % prebuilt.length]! : requestText(n)
  connection.isWrite = request[0] === startOfPatch
  connection.socket.write(request)
}

function receive(connection: Connection, data: Buffer): void {
  let rest = data
  if (connection.missing < 0) {
    const whole = connection.head.length === 0 ? data : Buffer.concat([connection.head, data])
    const end = whole.indexOf(endOfHead)
    if (end < 0) {
      connection.head = whole
      return
    }
    const head = whole.toString('latin1', 0, end)
    if (!/^HTTP\/1\.1 (?:20|304)/.test(head)) throw new TypeError(`refused: ${whole.toString()}`)
    connection.missing = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    connection.head = Buffer.alloc(0)
    rest = whole.subarray(end + 4)
  }
  connection.missing -= rest.length
  if (connection.missing === 0) finish(connection)
}

function finish(connection: Connection): void {
  const now = performance.now()
  connection.missing = -1
  connection.busy = false
  if (connection.isWrite) writes++
  if (measuring) {
    done++
    if (latencies.length < 1_000_000) latencies.push(now - connection.sentAt)
  }
  if (stopped) return
  if (rate === 0) send(connection, now)
  else if (overdue.length > 0) send(connection, overdue.shift()!)
}

const all: Connection[] = await Promise.all(
  Array.from({ length: connections }, async () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const connection: Connection = {
      socket,
      sentAt: 0,
      busy: false,
      isWrite: false,
      missing: -1,
      head: Buffer.alloc(0),
    }
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    socket.on('data', (data) => receive(connection, data))
    socket.on('close', () => {
      if (!stopped) throw new TypeError('the server closed a connection')
    })
    return connection
  }),
)

if (rate === 0) {
  for (const connection of all) send(connection, performance.now())
} else {
  const begin = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const now = performance.now()
    for (; !stopped && sent < ((now - begin) / 1000) * rate; sent++) {
      const free = all[sent % connections]!.busy ? all.find(({ busy }) => !busy) : all[sent % connections]
      if (free === undefined) overdue.push(now)
      else send(free, now)
    }
    if (stopped) clearInterval(timer)
  }, 2)
}

await new Promise((resolve) => setTimeout(resolve, Math.min(2000, seconds * 250)))
process.stdout.write('measuring\n')
measuring = true
const from = performance.now()
await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
measuring = false
const elapsed = (performance.now() - from) / 1000
process.stdout.write('measured\n')
stopped = true
// What is in flight is waited for: each write that was answered is counted.
while (all.some(({ busy }) => busy)) await new Promise((resolve) => setTimeout(resolve, 10))
latencies.sort((a, b) => a - b)
const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
const figures = { perSecond: done / elapsed, done, p50: at(0.5), p99: at(0.99), writes }
process.stdout.write(`${JSON.stringify(figures)}\n`)
setTimeout(() => process.exit(0), 200)
