/**
 * One client connection. PUBLISH, its acknowledgements and DISCONNECT are read here, straight from the bytes of the
 * socket; the rare packets (CONNECT, SUBSCRIBE, UNSUBSCRIBE) go to `control`, and nothing is read until they are
 * answered. What is written leaves once per turn of the event loop, whoever wrote it.
 *
 * Nobody can make us hold more than a ceiling: who has too much on the way to disk, or does not read what is sent,
 * is not read, nor is anybody once reading took its part of a turn. A client that does not take a byte for a minute, or
 * breaks its keep-alive, is closed. A client of MQTT 5 is sent the reason first.
 */
import type { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Flow, ReadingTurn } from '#mqtt/wire/flow.ts'
import { createOrder, type Order } from '#mqtt/wire/message-order.ts'
import { createPacketReader } from '#mqtt/wire/packet-reader.ts'
import { type Fault, malformed, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { disconnectBytes, pingrespBytes } from '#mqtt/wire/wire.ts'
import {
  type Answer,
  type Incoming,
  type Leaving,
  type Place,
  readAnswer,
  readLeaving,
  readPublish,
} from './incoming.ts'
import { createOutlet, type Outlet, type OutletPorts } from './outlet.ts'
import { createTraffic, type Terms, type Traffic } from './traffic.ts'

export interface Link
  extends Pick<Outlet, 'write' | 'isBacklogged' | 'whenDrained'>,
    Pick<Order, 'take' | 'hasTaken' | 'advance'>,
    Traffic {
  /** Client identifier; empty until the client is connected. */
  id(): string
  readonly remoteAddress: string
  /** CONNECT has come. */
  greet(terms: Terms): void
  /** CONNACK is written: the connection is open. */
  open(id: string): void
  isOpen(): boolean
  isClosed(): boolean
  /** Looks at keep-alive and stalls; called about once a second. */
  inspect(): void
  /** Reads no more packets and takes no more messages to send; those taken are still acknowledged. */
  hush(): void
  /** Closes for a fault of the client. */
  fail(reason: string, code?: number): void
  /** Closes; a client of MQTT 5 is sent the reason. */
  close(code?: number): void
}

export interface LinkPorts extends OutletPorts {
  readonly clock: Clock
  readonly flow: Flow
  /** Messages not sent for what the client states or for their age. */
  readonly unsent: Counter
  /** Bytes of packets, of all links, that have not wholly come. */
  readonly partials: Flow
  readonly turn: ReadingTurn
  /** How long a client may take nothing of what is sent to it. */
  readonly stallMs: number
  /** Takes a message; returns what is wrong with it, if anything is. */
  readonly receive: (link: Link, incoming: Incoming) => Fault | undefined
  readonly answered: (link: Link, answer: Answer) => void
  /** Takes CONNECT, SUBSCRIBE or UNSUBSCRIBE; nothing is read until it is done. */
  readonly control: (link: Link, type: ControlType, bytes: Buffer) => Promise<void>
  readonly failed: (link: Link, reason: string) => void
  /** The client says that it leaves; returns what is wrong with that, if anything is. */
  readonly left: (link: Link, leaving: Leaving) => Fault | undefined
  readonly closed: (link: Link) => void
}

export type ControlType = 'connect' | 'subscribe' | 'unsubscribe'

const types = { connect: 1, publish: 3, puback: 4, pubcomp: 7, pingreq: 12, disconnect: 14 } as const
const controlTypes: Readonly<Record<number, ControlType>> = {
  1: 'connect',
  8: 'subscribe',
  10: 'unsubscribe',
}

export function createLink(socket: Socket, ports: LinkPorts): Link {
  const { clock, flow, partials, turn } = ports
  let stage: 'new' | 'greeting' | 'open' | 'closed' = 'new'
  /** A packet is being answered that nothing may pass. */
  let isBusy = false
  /** After DISCONNECT or a fault nothing more is read. */
  let deaf = false
  let id = ''
  let heardAt = clock.monotonic()
  /** True while the socket is not read. */
  let halted = false

  const outlet = createOutlet(socket, ports)
  const traffic = createTraffic({ outlet, clock, unsent: ports.unsent })
  const { isFive } = traffic
  const order = createOrder(flow, (isRefused) => {
    if (isRefused) fail('a message could not be stored', reasons.quotaExceeded)
    resume()
  })
  const reader = createPacketReader({ partials, ceiling, mayRead, isDeaf: () => deaf, packet, fail })

  function ceiling(): number {
    return stage === 'new' ? limits.mqttConnectBytesMax.value : limits.mqttPacketBytesMax.value
  }

  function mayRead(): boolean {
    if (order.isFull() || flow.isFull()) return false
    if (stage === 'closed') return true
    return !isBusy && !outlet.isBacklogged() && !turn.isSpent()
  }

  /** Takes one whole packet. */
  function packet(bytes: Buffer, at: number, head: number, end: number): void {
    const problem = read({ bytes, at, from: at + head, end, first: bytes[at]! })
    if (problem !== undefined) fail(problem.reason, problem.code)
  }

  function read(place: Place): Fault | undefined {
    const type = place.first >> 4
    if ((stage === 'new') !== (type === types.connect)) {
      return protocolError('CONNECT is the first packet, and comes once [MQTT-3.1.0-1] [MQTT-3.1.0-2]')
    }
    if (type === types.publish) {
      const incoming = traffic.check(readPublish(place, isFive()))
      return 'reason' in incoming ? incoming : ports.receive(link, incoming)
    }
    if (type >= types.puback && type <= types.pubcomp) {
      const answer = readAnswer(place, isFive())
      if ('reason' in answer) return answer
      ports.answered(link, answer)
      return undefined
    }
    if (type === types.pingreq) {
      if (place.first !== 0xc0 || place.from !== place.end) return malformed('PINGREQ is two bytes')
      outlet.write(pingrespBytes)
      return undefined
    }
    if (type === types.disconnect) {
      const leaving = readLeaving(place, isFive())
      const problem = 'reason' in leaving ? leaving : ports.left(link, leaving)
      if (problem === undefined) {
        deaf = true
        shut()
      }
      return problem
    }
    const control = controlTypes[type]
    if (control === undefined) return protocolError(`a packet of type ${type}`)
    answer(control, place.bytes.subarray(place.at, place.end))
    return undefined
  }

  function answer(type: ControlType, bytes: Buffer): void {
    isBusy = true
    if (stage === 'new') stage = 'greeting'
    ports.control(link, type, bytes).then(
      () => {
        isBusy = false
        resume()
      },
      (error: Error) => fail(error.message, reasons.quotaExceeded),
    )
  }

  function onData(chunk: Buffer): void {
    if (stage === 'closed') return
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
    if (outlet.stalledMs(now) > ports.stallMs)
      fail('takes nothing of what is sent to it', reasons.quotaExceeded)
    const silence = now - heardAt
    const { keepaliveSeconds } = traffic.terms()
    if (keepaliveSeconds > 0 && !halted && silence > keepaliveSeconds * 1500) {
      fail('keep-alive [MQTT-3.1.2-24]', reasons.keepAliveTimeout)
    }
    if (stage === 'new' && silence > limits.mqttConnectMs.value) fail('no CONNECT came')
  }

  function fail(reason: string, code: number = reasons.protocolError): void {
    if (stage === 'closed') return
    deaf = true
    ports.failed(link, reason)
    farewell(code)
    shut()
  }

  function farewell(code: number): void {
    if (!isFive() || stage !== 'open') return
    // Nothing may follow it, so acknowledgements that are due go first.
    outlet.flush()
    outlet.write(disconnectBytes(code))
  }

  function shut(): void {
    if (stage === 'closed') return
    outlet.close({ isAwaited: isFive() })
    stage = 'closed'
    traffic.window.close()
    reader.end()
    ports.closed(link)
    resume()
  }

  function open(clientId: string): void {
    if (stage !== 'greeting') return
    id = clientId
    stage = 'open'
  }

  const link: Link = Object.freeze({
    id: () => id,
    remoteAddress: socket.remoteAddress ?? '',
    open,
    ...outlet,
    ...traffic,
    ...order,
    isOpen: () => stage === 'open' && !deaf,
    isClosed: () => stage === 'closed',
    inspect,
    hush() {
      deaf = true
    },
    fail,
    close(code) {
      if (code !== undefined) farewell(code)
      shut()
    },
  } satisfies Link)

  socket.on('data', onData)
  socket.on('end', shut)
  socket.on('error', () => undefined)
  socket.on('close', shut)
  return link
}
