/** The order of one client's messages: each is finished once, and none that is finished is kept. */
import { queryObjects } from 'node:v8'
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createFlow } from './flow.ts'
import { createOrder, type OrderedMessage } from './message-order.ts'

let finished: number[] = []
class Arrived implements OrderedMessage {
  readonly bytes = 100
  state: OrderedMessage['state'] = 'waiting'
  readonly n: number
  constructor(n: number) {
    this.n = n
  }
  finish(): void {
    finished.push(this.n)
  }
}

it('finishes messages in order, each once, and keeps none that is finished, while more are always in flight', () => {
  finished = []
  const count = 10 * limits.clientInFlightMax.value
  const order = createOrder(createFlow(1e9), () => {})
  let before = new Arrived(0)
  order.add(before)
  for (let n = 1; n <= count; n++) {
    const next = new Arrived(n)
    order.add(next)
    before.state = 'stored'
    order.advance()
    expect(order.hasPending()).toBe(true)
    before = next
  }
  expect(finished).toEqual(Array.from({ length: count }, (_, n) => n))
  // The messages that this process holds, after a collection.
  const held = queryObjects(Arrived, { format: 'count' }) as unknown as number
  expect(held).toBeLessThanOrEqual(limits.clientInFlightMax.value + 2)
  expect(order.hasPending()).toBe(true)
})
