/**
 * The MQTT load: many QoS 1 publishers with a window each, from prebuilt bytes, as a process of its own so that it
 * never competes for the server's core. Arguments: port, publishers, window, seconds, devices, rate (0 = closed loop), and
 * `live` for observations of the present.
 * Ends sooner at SIGTERM. Prints one JSON line: acknowledged messages per second and PUBACK latency percentiles in ms.
 */
import { connect, type Socket } from 'node:net'

const isLive = process.argv[8] === 'live'
const [port, publishers, window, seconds, devices, rate] = process.argv.slice(2, 8).map(Number) as [
  number,
  number,
  number,
  number,
  number,
  number,
]

interface Publisher {
  readonly socket: Socket
  readonly sentAt: Float64Array
  nextId: number
  inFlight: number
  counter: number
}

const latencies: number[] = []
let acknowledged = 0
let measuring = false
let stopped = false
/** Device time runs on from the wall clock, one millisecond an observation and device, so that none repeats. */
const startedAt = Date.now()

function connectPacket(id: string): Buffer {
  const client = Buffer.from(id)
  const length = 12 + client.length
  const head = [0x10, length, 0, 4, 77, 81, 84, 84, 4, 2, 0, 0, 0, client.length]
  return Buffer.concat([Buffer.from(head), client])
}

function publishPacket(device: number, id: number, sequence: number): Buffer {
  const topic = `senml/d${device}`
  const at = (isLive ? Date.now() : startedAt + sequence) / 1000
  // A daily curve with a sensor's noise, two decimals.
  const noise = ((sequence * 7919 + device) % 21) - 10
  const value = Math.round(2000 + 500 * Math.sin(sequence / 100 + device) + noise) / 100
  const payload = `[{"bn":"d${device}:","n":"temp","u":"Cel","v":${value},"t":${at.toFixed(3)}}]`
  const length = 2 + topic.length + 2 + payload.length
  const head = length < 128 ? [0x32, length] : [0x32, (length & 127) | 128, length >> 7]
  const packet = Buffer.allocUnsafe(head.length + length)
  let at0 = 0
  for (const byte of head) packet[at0++] = byte
  at0 = packet.writeUInt16BE(topic.length, at0)
  at0 += packet.write(topic, at0, 'latin1')
  at0 = packet.writeUInt16BE(id, at0)
  packet.write(payload, at0, 'latin1')
  return packet
}

function send(publisher: Publisher, index: number, count: number): void {
  if (stopped || count <= 0) return
  const packets: Buffer[] = []
  for (let i = 0; i < count; i++) {
    const id = (publisher.nextId % 60_000) + 1
    publisher.nextId = id
    publisher.sentAt[id] = performance.now()
    const device =
      (index + publishers * (publisher.counter % Math.max(1, Math.floor(devices / publishers)))) % devices
    packets.push(publishPacket(device, id, publisher.counter++))
    publisher.inFlight++
  }
  publisher.socket.write(packets.length === 1 ? packets[0]! : Buffer.concat(packets))
}

function receive(publisher: Publisher, index: number, data: Buffer): void {
  let acks = 0
  for (let i = 0; i + 3 < data.length + 0 && data[i] === 0x40; i += 4) {
    const id = data.readUInt16BE(i + 2)
    if (measuring) {
      acknowledged++
      if (latencies.length < 400_000) latencies.push(performance.now() - publisher.sentAt[id]!)
    }
    acks++
  }
  publisher.inFlight -= acks
  if (rate === 0) send(publisher, index, acks)
}

const all: Publisher[] = []
await Promise.all(
  Array.from({ length: publishers }, (_, index) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const publisher: Publisher = {
      socket,
      sentAt: new Float64Array(65_536),
      nextId: 0,
      inFlight: 0,
      counter: 0,
    }
    all.push(publisher)
    socket.write(connectPacket(`load-${process.pid}-${index}`))
    let rest: Buffer = Buffer.alloc(0)
    return new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.once('data', (data) => {
        if (data[0] !== 0x20 || data[3] !== 0) {
          reject(new TypeError('the broker refused a publisher'))
          return
        }
        socket.on('data', (more) => {
          const whole = rest.length === 0 ? more : Buffer.concat([rest, more])
          const usable = whole.length - (whole.length % 4)
          rest = whole.subarray(usable)
          receive(publisher, index, whole.subarray(0, usable))
        })
        resolve()
      })
    })
  }),
)

if (rate === 0) {
  for (const [index, publisher] of all.entries()) send(publisher, index, window)
} else {
  let sent = 0
  const begin = performance.now()
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begin) / 1000) * rate) - sent
    for (let i = 0; i < due; i++) {
      const index = (sent + i) % publishers
      send(all[index]!, index, 1)
    }
    sent += due
    if (stopped) clearInterval(timer)
  }, 2)
}
const warmUpMs = Math.min(2000, seconds * 250)
await new Promise((resolve) => setTimeout(resolve, warmUpMs))
process.stdout.write('measuring\n')
measuring = true
const from = performance.now()
await Promise.race([
  new Promise((resolve) => setTimeout(resolve, seconds * 1000)),
  new Promise((resolve) => process.once('SIGTERM', resolve)),
])
measuring = false
const elapsed = (performance.now() - from) / 1000
process.stdout.write('measured\n')
stopped = true
latencies.sort((a, b) => a - b)
const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
process.stdout.write(
  `${JSON.stringify({ perSecond: acknowledged / elapsed, done: acknowledged, p50: at(0.5), p99: at(0.99) })}\n`,
)
setTimeout(() => process.exit(0), 300)
