/** The order in which the deliveries of an endpoint are sent. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { DeliveryQueue } from './queue.ts'

const newDelivery = (d: number, entity: string, body = ''): Delivery => ({
  d,
  sub: 1,
  endpoint: 'http://e/',
  entity,
  at: 0,
  batch: null,
  stream: null,
  t: null,
  value: null,
  body,
})

describe('the queue of an endpoint', () => {
  it('takes pairs in turn, and the next delivery of a pair only after the one before is settled', () => {
    const queue = new DeliveryQueue()
    for (const delivery of [newDelivery(1, 'a'), newDelivery(2, 'a'), newDelivery(3, 'b')])
      queue.add(delivery)
    const first = queue.take(0)!
    expect([first.delivery.d, queue.take(0)?.delivery.d, queue.take(0)]).toEqual([1, 3, undefined])
    queue.finish(first)
    expect(queue.take(0)?.delivery.d).toBe(2)
  })
  it('treats subscriptions to the same entity as different pairs', () => {
    const queue = new DeliveryQueue()
    queue.add(newDelivery(1, 'a'))
    queue.add({ ...newDelivery(2, 'a'), sub: 2 })
    expect([queue.take(0)?.delivery.d, queue.take(0)?.delivery.d]).toEqual([1, 2])
  })
  it('keeps a failed delivery first of its pair, releases the rest, and returns the pair for reading', () => {
    const queue = new DeliveryQueue()
    for (const delivery of [newDelivery(1, 'a'), newDelivery(2, 'a'), newDelivery(3, 'a')])
      queue.add(delivery)
    queue.putBack(queue.take(0)!)
    expect([queue.size(), queue.has(2)]).toEqual([1, false])
    queue.add(newDelivery(4, 'a'))
    expect(queue.has(4)).toBe(false)
    const again = queue.take(0)!
    expect(again.delivery.d).toBe(1)
    const pair = queue.finish(again)
    expect(pair).toBeDefined()
    queue.catchUp(pair!, [newDelivery(2, 'a'), newDelivery(3, 'a')], false)
    expect(queue.take(0)?.delivery.d).toBe(2)
  })
  it('holds a pair during its own pause and reports the end of the pause', () => {
    const queue = new DeliveryQueue()
    queue.add(newDelivery(1, 'a'))
    queue.putBack(queue.take(0)!, 500)
    expect([queue.take(499), queue.dueAt(), queue.paused()]).toEqual([undefined, 500, 1])
    expect(queue.take(500)?.delivery.d).toBe(1)
    expect(queue.dueAt()).toBe(Number.POSITIVE_INFINITY)
  })
  it('releases waiting deliveries when cleared, and keeps the order relative to those in flight', () => {
    const queue = new DeliveryQueue()
    for (const delivery of [newDelivery(1, 'a'), newDelivery(2, 'a'), newDelivery(3, 'b')])
      queue.add(delivery)
    const flight = queue.take(0)!
    queue.clear()
    expect([queue.size(), queue.isFlying(1), queue.take(0)]).toEqual([1, true, undefined])
    queue.add(newDelivery(2, 'a'))
    expect(queue.take(0)).toBeUndefined()
    queue.putBack(flight)
    expect(queue.take(0)?.delivery.d).toBe(1)
  })
  it('does not put back stale flights', () => {
    const queue = new DeliveryQueue()
    for (const delivery of [newDelivery(1, 'a'), newDelivery(2, 'a')]) queue.add(delivery)
    const flight = queue.take(0)!
    queue.invalidateFlights()
    expect([queue.isStale(flight), queue.putBack(flight)]).toEqual([true, false])
    expect([queue.has(1), queue.take(0)?.delivery.d]).toEqual([false, 2])
  })
  it('reports the size of its deliveries', () => {
    const queue = new DeliveryQueue()
    queue.add(newDelivery(1, 'a', 'x'.repeat(1000)))
    expect(queue.bytes()).toBeGreaterThan(1000)
    queue.remove(newDelivery(1, 'a'))
    expect([queue.bytes(), queue.size(), queue.take(0)]).toEqual([0, 0, undefined])
  })
})
