/**
 * The real MQTT broker on the real write path, and clients that speak bytes. The intake here claims `claimed/#` and
 * writes every frame as one row, so that a test can see what was committed and how often.
 */
import { AssertionError } from 'node:assert'
import { connect, type Socket } from 'node:net'
import { generate, type IConnackPacket, type IConnectPacket, type Packet, parser } from 'mqtt-packet'
import { createLog } from '#base/register/log.ts'
import { createMetrics, type Metrics } from '#base/register/metrics.ts'
import { type Clock, systemClock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Frame } from '#contract'
import { createMqttServer, type MqttPorts, type MqttServer, type MqttSettings } from '#mqtt/mqtt-server.ts'
import type { IntakePort } from '#mqtt/publish/arrivals.ts'
import type { Database } from '#store/file/database.ts'
import { createSessionRows } from '#store/tables/mqtt-rows.ts'
import { type DoorOptions, type OpenDoor, openDoor } from './door.ts'

export interface Broker extends OpenDoor {
  readonly server: MqttServer
  readonly port: number
  readonly metrics: Metrics
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  /** Committed frames as `topic payload`, in order. */
  frames(): string[]
  /** Value of a counter. */
  count(name: Parameters<Metrics['counter']>[0]): number
}

export interface BrokerOptions extends Partial<MqttSettings> {
  readonly authenticate?: MqttPorts['authenticate']
  /** Stands between broker and door, to make the disk fail. */
  readonly wrapDoor?: (door: OpenDoor['door']) => MqttPorts['door']
  readonly lingerMs?: number
  readonly clock?: Clock
  readonly refuse?: DoorOptions['refuse']
  /** Called in the decision of every claimed frame. */
  readonly onDecide?: (frame: Frame, stage: Stage) => void
}

/** Opens the broker on a database file; opening the same file again is a restart. */
export async function openBroker(file: string, options: BrokerOptions = {}): Promise<Broker> {
  const opened = await openDoor(file, { lingerMs: options.lingerMs ?? 2, refuse: options.refuse })
  const metrics = createMetrics()
  const lines: Record<string, unknown>[] = []
  const log = createLog({
    level: 'debug',
    clock: systemClock,
    write: (line) => void lines.push(JSON.parse(line)),
  })
  const { authenticate, wrapDoor, lingerMs: _, refuse: __, onDecide, clock, ...settings } = options
  const server = await createMqttServer(
    {
      door: wrapDoor?.(opened.door) ?? opened.door,
      intake: ledger(opened.database, onDecide),
      rows: createSessionRows(opened.database),
      authenticate: authenticate ?? (() => true),
      clock: clock ?? systemClock,
      log,
      metrics,
    },
    { host: '127.0.0.1', port: 0, ...settings },
  )
  return {
    ...opened,
    server,
    port: server.port,
    metrics,
    lines,
    frames: () => committedFrames(opened.database),
    count: (name) => metrics.counter(name).value,
    async close() {
      await server.close(5000)
      await opened.close()
    },
  }
}

export function ledger(database: Database, onDecide?: (frame: Frame, stage: Stage) => void): IntakePort {
  let number = committedFrames(database).length
  return {
    accept(frame) {
      if (!frame.topic.startsWith('claimed/')) return undefined
      const marks = `${frame.retained ? ' retained' : ''}${frame.isResent === true ? ' resent' : ''}`
      const text = `${frame.topic} ${Buffer.from(frame.payload).toString()}${marks}`
      return {
        bytes: frame.payload.length,
        decide(stage) {
          onDecide?.(frame, stage)
          stage.write('meta.put', `frame:${String(++number).padStart(9, '0')}`, text)
        },
      }
    },
  }
}

export function committedFrames(database: Database): string[] {
  const rows = database.prepare("SELECT value FROM meta WHERE key LIKE 'frame:%' ORDER BY key").all()
  return (rows as { value: string }[]).map(({ value }) => value)
}

/** A client that sends packets or bytes as told and does nothing by itself. */
export interface RawClient {
  readonly socket: Socket
  send(packet: Packet | Uint8Array): void
  /** The next packet; fails when none comes in time or the connection ends before. */
  next(withinMs?: number): Promise<Packet>
  /**
   * Everything that came within a time, and after it before the answer to a ping, since a busy broker needs longer. A broker
   * that does not read this client now is waited for a second.
   */
  all(withinMs: number): Promise<Packet[]>
  readonly ended: Promise<void>
  end(): void
}

/** `version` is that of what it sends and reads: 4 is MQTT 3.1.1. */
export function openRaw(port: number, version: 4 | 5 = 4): RawClient {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const packets: Packet[] = []
  let wake = (): void => undefined
  let isEnded = false
  const reader = parser({ protocolVersion: version })
  /** Who waits for the answers to pings that are no part of the test, in order. */
  const pings: (() => void)[] = []
  reader.on('packet', (packet: Packet) => {
    if (packet.cmd === 'pingresp' && pings.length > 0) return pings.shift()!()
    packets.push(packet)
    wake()
  })
  socket.on('data', (chunk) => reader.parse(chunk))
  socket.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => {
    socket.on('close', () => {
      isEnded = true
      wake()
      resolve()
    })
  })

  async function next(withinMs = 100_000): Promise<Packet> {
    const deadline = performance.now() + withinMs
    while (packets.length === 0) {
      const rest = deadline - performance.now()
      if (isEnded) throw new AssertionError({ message: 'the connection ended instead of a packet' })
      if (rest <= 0) throw new AssertionError({ message: `no packet within ${withinMs} ms` })
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, rest)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return packets.shift()!
  }

  function pinged(): Promise<unknown> {
    if (isEnded) return ended
    const answered = new Promise<void>((resolve) => pings.push(resolve))
    socket.write(generate({ cmd: 'pingreq' }, { protocolVersion: version }))
    return Promise.race([answered, ended, new Promise((resolve) => setTimeout(resolve, 1000))])
  }

  return {
    socket,
    send: (packet) =>
      socket.write(packet instanceof Uint8Array ? packet : generate(packet, { protocolVersion: version })),
    next,
    async all(withinMs) {
      await new Promise((resolve) => setTimeout(resolve, withinMs))
      if (withinMs > 0) await pinged()
      return packets.splice(0)
    },
    ended,
    end: () => void socket.destroy(),
  }
}

interface ConnectOptions {
  readonly clean?: boolean
  readonly keepalive?: number
  readonly will?: { topic: string; payload: Buffer; qos: 0 | 1 | 2; retain: boolean }
  readonly username?: string
  readonly password?: Buffer
}

/** Connects and awaits CONNACK; the answer is on the client. */
export async function connectRaw(
  port: number,
  clientId: string,
  options: ConnectOptions = {},
): Promise<RawClient & { readonly connack: { sessionPresent: boolean; returnCode: number } }> {
  const client = openRaw(port)
  client.send(connectPacket(clientId, options))
  const connack = (await client.next()) as unknown as { sessionPresent: boolean; returnCode: number }
  return { ...client, connack }
}

/** Connects by MQTT 5 and awaits CONNACK; `more` are members of the packet, such as its properties. */
export async function connectFive(
  port: number,
  clientId: string,
  more: Partial<IConnectPacket> = {},
): Promise<RawClient & { readonly connack: IConnackPacket }> {
  const client = openRaw(port, 5)
  client.send({ ...connectPacket(clientId), protocolVersion: 5, ...more } as IConnectPacket)
  return { ...client, connack: (await client.next()) as IConnackPacket }
}

/**
 * Publishes empty messages to a topic until the broker no longer answers that nobody subscribes to it. The
 * subscriber gets the last of them.
 */
export async function subscribed(port: number, topic: string): Promise<void> {
  const noMatchingSubscribers = 0x10
  const client = await connectFive(port, 'probe')
  for (let code: number | undefined = noMatchingSubscribers; code === noMatchingSubscribers; ) {
    client.send({ ...publishPacket(topic, '', { qos: 1, messageId: 1 }), properties: {} } as Packet)
    code = ((await client.next()) as { readonly reasonCode?: number }).reasonCode
  }
  client.end()
}

export const connectPacket = (clientId: string, options: ConnectOptions = {}): Packet => ({
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion: 4,
  clean: true,
  keepalive: 0,
  clientId,
  ...options,
})

export const publishPacket = (
  topic: string,
  payload: string | Buffer,
  options: { qos?: 0 | 1 | 2; retain?: boolean; dup?: boolean; messageId?: number } = {},
): Packet => ({ cmd: 'publish', topic, payload, qos: 0, retain: false, dup: false, ...options })

export const subscribePacket = (
  messageId: number,
  ...filters: [topic: string, qos: 0 | 1 | 2][]
): Packet => ({
  cmd: 'subscribe',
  messageId,
  subscriptions: filters.map(([topic, qos]) => ({ topic, qos })),
})

/** A publish as `topic payload qosN` with `dup` and `retain` when set, for comparing. */
export function textOf(packet: Packet): string {
  if (packet.cmd !== 'publish') return packet.cmd
  const flags = `${packet.dup ? ' dup' : ''}${packet.retain ? ' retain' : ''}`
  return `${packet.topic} ${packet.payload.toString()} qos${packet.qos}${flags}`
}
