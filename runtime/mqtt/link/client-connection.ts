/**
 * A client connection. It reads PUBLISH, acknowledgements and DISCONNECT straight from the bytes of the
 * socket. The rare packets (CONNECT, SUBSCRIBE, UNSUBSCRIBE) are passed to `control`, and reading pauses
 * until they are answered. All output of one turn of the event loop is written at once.
 *
 * Memory per client is bounded. Reading pauses while a client has too much data on the way to disk or does
 * not drain its socket. It also pauses at the end of its share of the turn. A client is closed if it reads no
 * byte for a minute or misses its keep-alive. A client of MQTT 5 is sent the reason first.
 */
import type { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Flow, ReadingTurn } from '#mqtt/wire/flow.ts'
import { createOrder, type Order } from '#mqtt/wire/message-order.ts'
import { createPacketReader } from '#mqtt/wire/packet-reader.ts'
import { malformed, type PacketFault, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { type Acknowledgement, disconnectBytes, pingrespBytes } from '#mqtt/wire/wire.ts'
import {
  type Incoming,
  type Leaving,
  type PacketPlace,
  readAnswer,
  readLeaving,
  readPublish,
} from './incoming.ts'
import { createOutlet, type Outlet, type OutletPorts } from './outlet.ts'
import { createTraffic, type Terms, type Traffic } from './traffic.ts'

export interface Link
  extends Pick<Outlet, 'write' | 'isBacklogged' | 'whenDrained'>,
    Pick<Order, 'add' | 'hasPending' | 'advance'>,
    Traffic {
  /** Client identifier; empty until the client is connected. */
  id(): string
  readonly remoteAddress: string
  /** Call when CONNECT was read. */
  greet(terms: Terms): void
  /** Call when CONNACK was written: the connection is open. */
  open(id: string): void
  isOpen(): boolean
  isClosed(): boolean
  /** Checks keep-alive and stalls; called about once a second. */
  inspect(): void
  /** Stops reading packets and sending messages; messages already accepted are still acknowledged. */
  stopInput(): void
  /** Closes the connection because of a fault of the client. */
  fail(reason: string, code?: number): void
  /** Closes the connection; a client of MQTT 5 is sent the reason. */
  close(code?: number): void
}

export interface LinkPorts extends OutletPorts {
  readonly clock: Clock
  readonly flow: Flow
  /** Counts messages not sent because they exceed the client's packet size or have expired. */
  readonly unsent: Counter
  /** Bytes of incomplete packets of all connections. */
  readonly partials: Flow
  readonly turn: ReadingTurn
  /** How long a client may read nothing of what is sent to it. */
  readonly stallMs: number
  /** Handles a message; returns a fault if the message is invalid. */
  readonly receive: (link: Link, incoming: Incoming) => PacketFault | undefined
  readonly answered: (link: Link, answer: Acknowledgement) => void
  /** Handles CONNECT, SUBSCRIBE or UNSUBSCRIBE; reading pauses until it is done. */
  readonly control: (link: Link, type: ControlType, bytes: Buffer) => Promise<void>
  readonly failed: (link: Link, reason: string) => void
  /** Handles DISCONNECT; returns a fault if it is invalid. */
  readonly left: (link: Link, leaving: Leaving) => PacketFault | undefined
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
  /** True while a control packet is being answered; later packets must wait. */
  let isBusy = false
  /** True after DISCONNECT or a fault: nothing more is read. */
  let isEnded = false
  let id = ''
  let receivedAt = clock.monotonic()
  /** True while reading is paused. */
  let halted = false

  const outlet = createOutlet(socket, ports)
  const traffic = createTraffic({ outlet, clock, unsent: ports.unsent })
  const { isFive } = traffic
  const order = createOrder(flow, (isRefused) => {
    if (isRefused) fail('a message could not be stored', reasons.quotaExceeded)
    resume()
  })
  const reader = createPacketReader({ partials, ceiling, mayRead, isEnded: () => isEnded, packet, fail })

  function ceiling(): number {
    return stage === 'new' ? limits.mqttConnectBytesMax.value : limits.mqttPacketBytesMax.value
  }

  function mayRead(): boolean {
    if (order.isFull() || flow.isFull()) return false
    if (stage === 'closed') return true
    return !isBusy && !outlet.isBacklogged() && !turn.isSpent()
  }

  /** Handles one complete packet. */
  function packet(bytes: Buffer, at: number, head: number, end: number): void {
    const problem = read({ bytes, at, from: at + head, end, first: bytes[at]! })
    if (problem !== undefined) fail(problem.reason, problem.code)
  }

  function read(place: PacketPlace): PacketFault | undefined {
    const type = place.first >> 4
    if ((stage === 'new') !== (type === types.connect)) {
      return protocolError('CONNECT must be first and must not be repeated [MQTT-3.1.0-1] [MQTT-3.1.0-2]')
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
      if (place.first !== 0xc0 || place.from !== place.end) return malformed('PINGREQ must have two bytes')
      outlet.write(pingrespBytes)
      return undefined
    }
    if (type === types.disconnect) return leave(place)
    const control = controlTypes[type]
    if (control === undefined) return protocolError(`packets of type ${type} are not allowed here`)
    answer(control, place.bytes.subarray(place.at, place.end))
    return undefined
  }

  function leave(place: PacketPlace): PacketFault | undefined {
    const leaving = readLeaving(place, isFive())
    const problem = 'reason' in leaving ? leaving : ports.left(link, leaving)
    if (problem === undefined) {
      isEnded = true
      shut()
    }
    return problem
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
    receivedAt = clock.monotonic()
    if (!reader.read(chunk)) halt()
  }

  /** Pauses reading until `resume`. */
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
    receivedAt = clock.monotonic()
    if (reader.proceed()) socket.resume()
    else halt()
  }

  /** Arranges that `resume` is called; every other cause of a pause calls it itself. */
  function awaitRoom(): void {
    if (flow.isFull()) flow.whenOpen(resume)
    if (outlet.isBacklogged()) outlet.whenDrained(resume)
    if (turn.isSpent()) turn.whenNext(resume)
  }

  function inspect(): void {
    const now = clock.monotonic()
    if (outlet.stalledMs(now) > ports.stallMs)
      fail('the client reads nothing of what is sent to it', reasons.quotaExceeded)
    const silence = now - receivedAt
    const { keepaliveSeconds } = traffic.terms()
    if (keepaliveSeconds > 0 && !halted && silence > keepaliveSeconds * 1500) {
      fail('keep-alive timeout [MQTT-3.1.2-24]', reasons.keepAliveTimeout)
    }
    if (stage === 'new' && silence > limits.mqttConnectMs.value) fail('no CONNECT was received in time')
  }

  function fail(reason: string, code: number = reasons.protocolError): void {
    if (stage === 'closed') return
    isEnded = true
    ports.failed(link, reason)
    sendDisconnect(code)
    shut()
  }

  function sendDisconnect(code: number): void {
    if (!isFive() || stage !== 'open') return
    // Nothing may follow DISCONNECT, so pending acknowledgements are sent first.
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
    isOpen: () => stage === 'open' && !isEnded,
    isClosed: () => stage === 'closed',
    inspect,
    stopInput() {
      isEnded = true
    },
    fail,
    close(code) {
      if (code !== undefined) sendDisconnect(code)
      shut()
    },
  } satisfies Link)

  socket.on('data', onData)
  socket.on('end', shut)
  socket.on('error', () => undefined)
  socket.on('close', shut)
  return link
}
