/**
 * A minimal MQTT 3.1.1 client like that of a sensor: CONNECT, PUBLISH at QoS 1, PUBACK, PINGREQ over one TCP
 * connection, with a bounded number of messages in flight. It does not reconnect: after the connection has
 * ended, every call fails.
 */

import { connect, type Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'

export interface SitePorts {
  readonly publisher: DemoPublisher
  /** URL of the gateway, without a trailing slash. */
  readonly httpUrl: string
  readonly clock: Clock
  /** Prints a line. */
  readonly print: (line: string) => void
  /** Aborted when the site must stop. */
  readonly signal: AbortSignal
}

/** All methods throw peer.unavailable after the connection has ended. */
export interface DemoPublisher {
  /** Sends a message at QoS 1; resolves when another one may be sent. */
  publish(topic: string, payload: string, options?: { retain?: boolean }): Promise<void>
  /** Resolves when the broker has acknowledged all messages. */
  settled(): Promise<void>
  /** Number of acknowledged messages. */
  acknowledged(): number
  close(): Promise<void>
}

const keepAliveSeconds = 30
const packetIdentifierMax = 65_535

/** Types of the packets received from the broker (MQTT 3.1.1, 2.2.1). */
const connack = 2
const puback = 4

/** @throws peer.unavailable if there is no connection or the broker refuses it. */
export async function createDemoPublisher(
  address: { host: string; port: number },
  clientId: string,
): Promise<DemoPublisher> {
  const socket = await openSocket(address)
  const inFlight = new Set<number>()
  let watchers: (() => void)[] = []
  let accepted = false
  let broken: GatewayError | undefined
  let identifier = 0
  let acknowledged = 0

  const changed = (): void => {
    const due = watchers
    watchers = []
    for (const watcher of due) watcher()
  }
  const until = async (isSo: () => boolean): Promise<void> => {
    while (broken === undefined && !isSo()) await new Promise<void>((resolve) => watchers.push(resolve))
    if (broken !== undefined) throw broken
  }
  const lose = (why: string): void => {
    broken ??= failure(`the connection to the MQTT broker ended: ${why}`)
    clearInterval(ping)
    changed()
  }
  const take = (type: number, body: Buffer): void => {
    if (type === connack && body[1] === 0) accepted = true
    else if (type === connack) socket.destroy(failure(`the broker refused it with code ${body[1]}`))
    else if (type === puback && inFlight.delete(body.readUInt16BE(0))) acknowledged++
    changed()
  }
  const ping = setInterval(() => socket.write(Uint8Array.of(0xc0, 0)), (keepAliveSeconds * 1000) / 2)
  socket.on('error', (error) => lose(error.message)).on('close', () => lose('closed'))
  socket.on('data', packetReader(take))
  socket.write(connectPacket(clientId))
  await until(() => accepted)

  return Object.freeze({
    async publish(topic: string, payload: string, { retain = false } = {}) {
      if (broken !== undefined) throw broken
      identifier = (identifier % packetIdentifierMax) + 1
      inFlight.add(identifier)
      socket.write(publishPacket(topic, payload, identifier, retain))
      await until(() => inFlight.size < limits.demoInFlightMax.value)
    },
    settled: () => until(() => inFlight.size === 0),
    acknowledged: () => acknowledged,
    close: () =>
      new Promise<void>((resolve) => {
        if (socket.closed) return resolve()
        socket.once('close', () => resolve())
        socket.end(Uint8Array.of(0xe0, 0))
      }),
  })
}

function failure(message: string): GatewayError {
  return new GatewayError('peer.unavailable', message)
}

function openSocket({ host, port }: { host: string; port: number }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true })
    socket.once('error', (error) => reject(failure(`no MQTT broker at ${host}:${port}: ${error.message}`)))
    socket.once('connect', () => resolve(socket.removeAllListeners('error')))
  })
}

/** MQTT 3.1.1, 3.1: clean session, no will, no credentials. */
function connectPacket(clientId: string): Buffer {
  return packet(0x10, [field('MQTT'), Uint8Array.of(4, 2), uint16(keepAliveSeconds), field(clientId)])
}

/** MQTT 3.1.1, 3.3, at QoS 1. */
function publishPacket(topic: string, payload: string, id: number, retain: boolean): Buffer {
  return packet(0x32 | (retain ? 1 : 0), [field(topic), uint16(id), Buffer.from(payload)])
}

function packet(head: number, parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const length: number[] = []
  let rest = body.length
  do {
    length.push((rest % 128) | (rest >= 128 ? 128 : 0))
    rest = Math.floor(rest / 128)
  } while (rest > 0)
  return Buffer.concat([Uint8Array.of(head, ...length), body])
}

function field(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([uint16(bytes.length), bytes])
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 255)
}

/** Splits a byte stream into packets. Received packets are short: their remaining length fits one byte. */
function packetReader(take: (type: number, body: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 2 && rest.length >= 2 + rest[1]!) {
      const end = 2 + rest[1]!
      take(rest[0]! >> 4, rest.subarray(2, end))
      rest = rest.subarray(end)
    }
  }
}
