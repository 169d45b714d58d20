/**
 * Checks the received notifications: nothing lost, nothing duplicated, and ascending values per subscription
 * and entity. It uses only what the receiver recorded.
 */
import { expect } from 'vitest'
import type { Received } from '#test/kit/receiver.ts'

export interface Notified {
  readonly d: number
  readonly sub: number
  readonly entity: string
  readonly value: number
  /** Entities and values of a request that holds several. */
  readonly entities?: readonly string[]
  readonly values?: readonly number[]
}

export const notified = ({ body }: Received): Notified => JSON.parse(body) as Notified

/** Ascending per subscription and entity; repeats of the same delivery are allowed. */
export function expectInOrder(received: readonly Received[]): void {
  const last = new Map<string, Notified>()
  for (const one of received.map(notified)) {
    const key = `${one.sub} ${one.entity}`
    const before = last.get(key)
    if (before !== undefined && one.d < before.d) expect.unreachable(`${key}: ${one.d} after ${before.d}`)
    last.set(key, one)
  }
}

export function expectEachOnceInOrder(received: readonly Received[], count: number): void {
  expectInOrder(received)
  expect(new Set(received.map((one) => notified(one).d)).size).toBe(count)
  expect(received).toHaveLength(count)
}
