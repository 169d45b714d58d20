/**
 * A broker that is to be forgotten: its entries are gone at once, its subscriptions there are removed when it can be reached, however
 * long that takes, up to a bound. Until then its row says what is still to do.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Asking } from './asking.ts'
import type { Brokers } from './brokers.ts'
import { factsOf } from './remote.ts'
import { unsubscribe } from './remote-subscriptions.ts'

export interface LeavingPorts {
  readonly brokers: Brokers
  readonly clock: Clock
  readonly log: Log
}

/** Removes what is left of it there. True when nothing is, or when it is given up. */
export async function leave(
  key: string,
  asking: Asking,
  { brokers, clock, log }: LeavingPorts,
): Promise<boolean> {
  const row = brokers.byKey(key)
  if (row === undefined) return true
  const { subscriptions = {}, leftAt = clock.now() } = factsOf(row)
  const left: Record<string, string> = { ...subscriptions }
  for (const [purpose, id] of Object.entries(subscriptions)) {
    const trouble = await unsubscribe(id, asking)
    if (trouble?.kind === 'down') break
    if (trouble !== undefined)
      log.warn('indexing.subscription-left', { broker: row.host, subscription: id, reason: trouble.reason })
    delete left[purpose]
  }
  // It may have been registered again meanwhile.
  if (brokers.byKey(key) === undefined) return true
  const isOver = Object.keys(left).length === 0
  if (!isOver && clock.now() - leftAt < limits.indexLeavingMs.value) {
    brokers.set(row.b, { facts: { ...row.facts, subscriptions: left } })
    return false
  }
  for (const id of Object.values(left))
    log.warn('indexing.subscription-left', {
      broker: row.host,
      subscription: id,
      reason: 'it could not be reached for too long',
    })
  brokers.remove(row.b)
  return true
}
