/**
 * The order of one client's messages, from arrival to acknowledgement ([MQTT-4.6.0-2], [MQTT-4.6.0-6]): a
 * message is finished when it and all earlier ones are stored.
 */
import { limits } from '#base/limits/limits.ts'
import type { Flow } from './flow.ts'

/** A message accepted from a client. */
export interface OrderedMessage {
  readonly bytes: number
  state: 'waiting' | 'stored' | 'refused'
  /** Sends it to subscribers and acknowledges it. */
  finish(): void
}

export interface Order {
  /** Appends a message to the order. */
  add(message: OrderedMessage): void
  /** True while messages of this client wait to be stored. */
  hasPending(): boolean
  isFull(): boolean
  /** Finishes the messages that can be finished; called when the state of a message has changed. */
  advance(): void
}

/** Calls `moved` after every advance, with true if a message was refused. */
export function createOrder(flow: Flow, moved: (isRefused: boolean) => void): Order {
  let list: OrderedMessage[] = []
  let head = 0
  return Object.freeze({
    add(message) {
      flow.add(message.bytes)
      list.push(message)
    },
    hasPending: () => head < list.length,
    isFull: () => list.length - head >= limits.clientInFlightMax.value,
    advance() {
      let isRefused = false
      while (head < list.length && list[head]!.state !== 'waiting') {
        const message = list[head++]!
        flow.remove(message.bytes)
        if (message.state === 'stored') message.finish()
        else isRefused = true
      }
      // A client that always has messages in flight never empties its list.
      if (head === list.length || head >= limits.clientInFlightMax.value) {
        list = list.slice(head)
        head = 0
      }
      moved(isRefused)
    },
  } satisfies Order)
}
