/**
 * One client connection. PUBLISH with QoS 0 and 1 is read here, straight from the bytes of the socket, and answered
 * in the order of arrival; everything else goes through `relay`, a stream that the broker library takes for the
 * socket. What is written leaves once per turn of the event loop, whoever wrote it.
 *
 * Nobody can make us hold more than a ceiling: who has too much on the way to disk, or does not read what is sent,
 * is not read. A client that does not take a byte for a minute, or breaks its keep-alive, is closed.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Flow } from './flow.ts'
import { type Extent, extentAt } from './framing.ts'
import { createFreeIds, type FreeIds } from './free-ids.ts'
import { createOrder, type Order } from './order.ts'
import { createOutlet, type Outlet } from './outlet.ts'
import { asQos, type Qos } from './wire.ts'

/** A PUBLISH packet as it came; `topic` holds its bytes as Latin-1 characters, whatever they mean. */
export interface Incoming {
  readonly topic: string
  /** A view of the bytes received, not a copy. */
  readonly payload: Uint8Array
  readonly qos: Qos
  readonly retain: boolean
  readonly id: number
}

export interface Link
  extends Pick<Outlet, 'write' | 'acknowledge' | 'isBacklogged' | 'whenDrained'>,
    Pick<Order, 'take' | 'hasTaken' | 'advance'>,
    FreeIds {
  /** Client identifier; empty until the client is connected. */
  id(): string
  readonly relay: Duplex
  readonly remoteAddress: string
  /** CONNECT has come; its keep-alive in seconds, 0 for none. */
  greet(keepaliveSeconds: number): void
  /** CONNACK is sent: what the client sends from now on is read. */
  open(id: string): void
  isOpen(): boolean
  /** Looks at keep-alive and stalls; called about once a second. */
  inspect(): void
  /** Reads no more packets and takes no more messages to send; those taken are still acknowledged. */
  hush(): void
  /** Closes for a fault of the client. */
  fail(reason: string): void
  close(): void
}

export interface LinkPorts {
  readonly clock: Clock
  readonly flow: Flow
  /** Bytes of packets, of all links, that have not wholly come. */
  readonly partials: Flow
  readonly atTurnEnd: (action: () => void) => void
  /** How long a client may take nothing of what is sent to it. */
  readonly stallMs: number
  /** Takes a message; returns what is wrong with it, if anything is. */
  readonly receive: (link: Link, incoming: Incoming) => string | undefined
  readonly failed: (link: Link, reason: string) => void
  /** The client says that it leaves. */
  readonly left: (link: Link) => void
  readonly closed: (link: Link) => void
}

const connectType = 1
const disconnectType = 14

export function createLink(socket: Socket, ports: LinkPorts): Link {
  const { clock, flow, partials } = ports
  let stage: 'new' | 'greeting' | 'open' | 'closed' = 'new'
  /** After DISCONNECT or a fault nothing more is read. */
  let deaf = false
  let id = ''
  let keepaliveMs = 0
  let heardAt = clock.monotonic()
  /** Bytes that came but could not be read yet. */
  let rest: Buffer | undefined
  let halted = false
  let relayFull = false
  let waitsForFlow = false
  let waitsForDrain = false
  /** A packet that comes in pieces. */
  let assembling: Buffer | undefined
  let assembled = 0

  const outlet = createOutlet(socket, ports.atTurnEnd)
  const order = createOrder(flow, (isRefused) => {
    if (isRefused) fail('a message could not be stored')
    resume()
  })
  const ids = createFreeIds()
  const relay = createRelay({ wanted: relayWanted, write: outlet.write, destroyed: shut })

  function relayWanted(): void {
    if (!relayFull) return
    relayFull = false
    resume()
  }

  function mayRead(): boolean {
    if (order.isFull() || flow.isFull()) return false
    return stage === 'closed' || (stage !== 'greeting' && !relayFull && !outlet.isBacklogged())
  }

  function onData(chunk: Buffer): void {
    heardAt = clock.monotonic()
    let bytes = chunk
    if (assembling !== undefined) {
      const count = bytes.copy(assembling, assembled)
      assembled += count
      if (assembled < assembling.length) return
      const whole = assembling
      assembling = undefined
      partials.remove(whole.length)
      read(whole, 0, extentAt(whole, 0))
      bytes = bytes.subarray(count)
    } else if (rest !== undefined) {
      bytes = Buffer.concat([rest, bytes])
      rest = undefined
    }
    parse(bytes)
  }

  function parse(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && !deaf) {
      if (!mayRead()) {
        halt(at === 0 ? bytes : bytes.subarray(at))
        return
      }
      const extent = extentAt(bytes, at)
      if (extent.kind === 'malformed') fail('malformed remaining length')
      else if (extent.kind === 'unknown') rest = bytes.subarray(at)
      else if (extent.size > ceiling()) fail(`a packet of ${extent.size} bytes, at most ${ceiling()}`)
      else if (extent.kind === 'part') assemble(bytes.subarray(at), extent.size)
      else read(bytes, at, extent)
      if (extent.kind !== 'whole') return
      at += extent.size
    }
  }

  const ceiling = (): number =>
    stage === 'new' ? limits.mqttConnectBytesMax.value : limits.mqttPacketBytesMax.value

  function assemble(bytes: Buffer, size: number): void {
    if (partials.isFull()) {
      fail('too many packets come in pieces')
      return
    }
    partials.add(size)
    assembling = Buffer.allocUnsafe(size)
    assembled = bytes.copy(assembling)
  }

  /** Reads one whole packet. */
  function read(bytes: Buffer, at: number, extent: Extent): void {
    if (extent.kind !== 'whole') return
    const first = bytes[at]!
    const type = first >> 4
    const end = at + extent.size
    if (type === 3 && (first & 6) !== 4 && stage !== 'new') {
      const problem = publish(bytes, at + extent.head, end, first)
      if (problem !== undefined) fail(problem)
    } else if (stage === 'new' && type !== connectType) {
      fail('the first packet is CONNECT [MQTT-3.1.0-1]')
    } else {
      if (stage === 'new') stage = 'greeting'
      if (type === disconnectType) {
        deaf = true
        ports.left(link)
      }
      if (!relay.destroyed && !relay.push(bytes.subarray(at, end))) relayFull = true
    }
  }

  /** Reads a PUBLISH of QoS 0 or 1; returns what is wrong with it, if anything is. */
  function publish(bytes: Buffer, from: number, end: number, first: number): string | undefined {
    const qos = (first >> 1) & 3
    const topicEnd = from + 2 + ((bytes[from]! << 8) | bytes[from + 1]!)
    const payloadFrom = qos === 0 ? topicEnd : topicEnd + 2
    if (end - from < 2 || payloadFrom > end) return 'PUBLISH is cut short'
    if (qos === 3) return 'QoS 3 [MQTT-3.3.1-4]'
    if (qos === 0 && (first & 8) !== 0) return 'DUP with QoS 0 [MQTT-3.3.1-2]'
    const packetId = qos === 0 ? 0 : (bytes[topicEnd]! << 8) | bytes[topicEnd + 1]!
    if (qos > 0 && packetId === 0) return 'packet identifier 0 [MQTT-2.3.1-1]'
    return ports.receive(link, {
      topic: bytes.toString('latin1', from + 2, topicEnd),
      payload: bytes.subarray(payloadFrom, end),
      qos: asQos(qos),
      retain: (first & 1) === 1,
      id: packetId,
    })
  }

  /** Reads no further until `resume`. */
  function halt(unread: Buffer): void {
    rest = unread
    halted = true
    socket.pause()
    awaitRoom()
  }

  function resume(): void {
    if (!halted) return
    if (!mayRead()) {
      awaitRoom()
      return
    }
    halted = false
    heardAt = clock.monotonic()
    const unread = rest
    rest = undefined
    if (unread !== undefined) parse(unread)
    if (!halted) socket.resume()
  }

  /** Sees to it that `resume` is called; everything else that halts calls it by itself. */
  function awaitRoom(): void {
    if (flow.isFull() && !waitsForFlow) {
      waitsForFlow = true
      flow.whenOpen(() => {
        waitsForFlow = false
        resume()
      })
    }
    if (outlet.isBacklogged() && !waitsForDrain) {
      waitsForDrain = true
      outlet.whenDrained(() => {
        waitsForDrain = false
        resume()
      })
    }
  }

  function inspect(): void {
    const now = clock.monotonic()
    if (outlet.stalledMs(now) > ports.stallMs) fail('takes nothing of what is sent to it')
    const silence = now - heardAt
    if (keepaliveMs > 0 && !halted && silence > keepaliveMs * 1.5) fail('keep-alive [MQTT-3.1.2-24]')
    if (stage === 'new' && silence > limits.mqttConnectMs.value) fail('no CONNECT came')
  }

  function fail(reason: string): void {
    if (stage === 'closed') return
    deaf = true
    ports.failed(link, reason)
    relay.destroy()
  }

  function shut(): void {
    if (stage === 'closed') return
    outlet.close()
    stage = 'closed'
    if (assembling !== undefined) partials.remove(assembling.length)
    assembling = undefined
    ports.closed(link)
    resume()
  }

  const link: Link = Object.freeze({
    id: () => id,
    relay,
    remoteAddress: socket.remoteAddress ?? '',
    greet(keepaliveSeconds) {
      keepaliveMs = keepaliveSeconds * 1000
    },
    open(clientId) {
      if (stage !== 'greeting') return
      id = clientId
      stage = 'open'
      resume()
    },
    take: order.take,
    hasTaken: order.hasTaken,
    advance: order.advance,
    acknowledge: outlet.acknowledge,
    write: outlet.write,
    isBacklogged: outlet.isBacklogged,
    whenDrained: outlet.whenDrained,
    nextId: ids.nextId,
    answered: ids.answered,
    isOpen: () => stage === 'open' && !deaf,
    inspect,
    hush() {
      deaf = true
    },
    fail,
    close: () => void relay.destroy(),
  } satisfies Link)

  socket.on('data', onData)
  socket.on('end', () => void relay.push(null))
  socket.on('error', () => undefined)
  socket.on('close', () => relay.destroy())
  return link
}

/** The stream that the broker library takes for the socket. */
function createRelay(ports: {
  readonly wanted: () => void
  readonly write: (bytes: Uint8Array) => void
  readonly destroyed: () => void
}): Duplex {
  return new Duplex({
    read: ports.wanted,
    write(bytes: Uint8Array, _encoding, done) {
      ports.write(bytes)
      done()
    },
    destroy(_error, done) {
      ports.destroyed()
      done(null)
    },
  })
}
