/**
 * One client connection. PUBLISH with QoS 0 and 1 is read here, straight from the bytes of the socket, and answered
 * in the order of arrival; everything else goes through `relay`, a stream that the broker library takes for the
 * socket. What is written leaves once per turn of the event loop, whoever wrote it.
 *
 * Nobody can make us hold more than a ceiling: who has too much on the way to disk, or does not read what is sent,
 * is not read, nor is anybody once reading took its part of a turn. A client that does not take a byte for a minute, or
 * breaks its keep-alive, is closed.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Flow, ReadingTurn } from './flow.ts'
import { createFreeIds, type FreeIds } from './free-ids.ts'
import { type Incoming, isPlainPublish, readPublish } from './incoming.ts'
import { createOrder, type Order } from './order.ts'
import { createOutlet, type Outlet } from './outlet.ts'
import { createPacketReader } from './packet-reader.ts'

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
  readonly turn: ReadingTurn
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
  const { clock, flow, partials, turn } = ports
  let stage: 'new' | 'greeting' | 'open' | 'closed' = 'new'
  /** After DISCONNECT or a fault nothing more is read. */
  let deaf = false
  let id = ''
  let keepaliveMs = 0
  let heardAt = clock.monotonic()
  /** True while the socket is not read. */
  let halted = false
  let relayFull = false

  const outlet = createOutlet(socket, ports.atTurnEnd)
  const order = createOrder(flow, (isRefused) => {
    if (isRefused) fail('a message could not be stored')
    resume()
  })
  const relay = createRelay({ wanted: relayWanted, write: outlet.write, destroyed: shut })
  const ceiling = (): number =>
    stage === 'new' ? limits.mqttConnectBytesMax.value : limits.mqttPacketBytesMax.value
  const isDeaf = (): boolean => deaf
  const reader = createPacketReader({ partials, ceiling, mayRead, isDeaf, packet, fail })

  function relayWanted(): void {
    if (!relayFull) return
    relayFull = false
    resume()
  }

  function mayRead(): boolean {
    if (order.isFull() || flow.isFull()) return false
    if (stage === 'closed') return true
    return stage !== 'greeting' && !relayFull && !outlet.isBacklogged() && !turn.isSpent()
  }

  /** Takes one whole packet: ours, or the broker library's. */
  function packet(bytes: Buffer, at: number, head: number, end: number): void {
    const first = bytes[at]!
    if (stage === 'new') {
      if (first >> 4 === connectType) stage = 'greeting'
      else fail('the first packet is CONNECT [MQTT-3.1.0-1]')
    } else if (isPlainPublish(first)) {
      const incoming = readPublish(bytes, at + head, end, first)
      const problem = typeof incoming === 'string' ? incoming : ports.receive(link, incoming)
      if (problem !== undefined) fail(problem)
      return
    } else if (first >> 4 === disconnectType) {
      deaf = true
      ports.left(link)
    }
    if (!relay.destroyed && !relay.push(bytes.subarray(at, end))) relayFull = true
  }

  function onData(chunk: Buffer): void {
    heardAt = clock.monotonic()
    if (!reader.read(chunk)) halt()
  }

  /** Reads no further until `resume`. */
  function halt(): void {
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
    if (reader.proceed()) socket.resume()
    else halt()
  }

  /** Sees to it that `resume` is called; everything else that halts calls it by itself. */
  function awaitRoom(): void {
    if (flow.isFull()) flow.whenOpen(resume)
    if (outlet.isBacklogged()) outlet.whenDrained(resume)
    if (turn.isSpent()) turn.whenNext(resume)
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
    reader.end()
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
    ...order,
    ...createFreeIds(),
    acknowledge: outlet.acknowledge,
    write: outlet.write,
    isBacklogged: outlet.isBacklogged,
    whenDrained: outlet.whenDrained,
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
