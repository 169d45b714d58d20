/**
 * The order of one client's messages, from their arrival to their acknowledgement ([MQTT-4.6.0-2], [MQTT-4.6.0-6]):
 * a message is finished when it and all before it are stored, whatever each of them needed.
 */
import { limits } from '#base/limits/limits.ts'
import type { Flow } from './flow.ts'

/** A message taken from a client. */
export interface Taken {
  readonly bytes: number
  state: 'waiting' | 'stored' | 'refused'
  /** Sends it on and acknowledges it. */
  finish(): void
}

export interface Order {
  /** Keeps the place of a message. */
  take(taken: Taken): void
  /** True while messages of this client wait to be stored. */
  hasTaken(): boolean
  isFull(): boolean
  /** Finishes what can be finished; called when the state of a message has changed. */
  advance(): void
}

/** `moved` is told after every advance whether a message was refused. */
export function createOrder(flow: Flow, moved: (isRefused: boolean) => void): Order {
  let list: Taken[] = []
  let head = 0
  return Object.freeze({
    take(taken) {
      flow.add(taken.bytes)
      list.push(taken)
    },
    hasTaken: () => head < list.length,
    isFull: () => list.length - head >= limits.clientInFlightMax.value,
    advance() {
      let isRefused = false
      while (head < list.length && list[head]!.state !== 'waiting') {
        const taken = list[head++]!
        flow.remove(taken.bytes)
        if (taken.state === 'stored') taken.finish()
        else isRefused = true
      }
      if (head === list.length) {
        list = []
        head = 0
      }
      moved(isRefused)
    },
  } satisfies Order)
}
