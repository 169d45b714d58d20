/**
 * A broker that is to be forgotten: its entries are gone at once, its subscriptions there are removed when it can be reached, however
 * long that takes, up to a bound. Until then its row says what is still to do.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Asking } from './asking.ts'
import type { BrokerRow, Brokers } from './brokers.ts'
import type { Catalogue } from './catalogue.ts'
import type { Reach } from './reach.ts'
import { factsOf } from './remote.ts'
import { unsubscribe } from './remote-subscriptions.ts'

export interface LeavingPorts {
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly reach: Reach
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** Takes errors of what nobody waits for. */
  readonly tell: (during: string) => (error: unknown) => void
}

export const isLeaving = ({ state }: BrokerRow): boolean => state === 'leaving'

/** Looks once after all that leave. */
export async function lookAtLeaving(ports: LeavingPorts): Promise<void> {
  for (const row of ports.brokers.all().filter(isLeaving)) {
    if (ports.signal.aborted) return
    await leaveOne(row, ports).catch(ports.tell(`forgetting ${row.host}`))
  }
}

async function leaveOne(row: BrokerRow, ports: LeavingPorts): Promise<void> {
  // A kill, or a disk that failed, may have kept some of it.
  await ports.catalogue.removeAll(row.b)
  // It may have been registered again meanwhile.
  if (ports.brokers.byKey(row.key) === undefined) return
  if (Object.keys(factsOf(row).subscriptions ?? {}).length === 0) return ports.brokers.remove(row.b)
  const port = ports.reach.open(row.host, factsOf(row).tenant)
  try {
    await leave(row.key, ports.reach.asking(port), ports)
  } finally {
    port.close()
  }
}

/** Removes what is left of it there; where nothing is, or it is given up, its row too. */
async function leave(key: string, asking: Asking, { brokers, clock, log }: LeavingPorts): Promise<void> {
  const row = brokers.byKey(key)
  if (row === undefined) return
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
  if (brokers.byKey(key) === undefined) return
  const isOver = Object.keys(left).length === 0
  if (!isOver && clock.now() - leftAt < limits.indexLeavingMs.value) {
    brokers.set(row.b, { facts: { ...row.facts, subscriptions: left } })
    return
  }
  for (const id of Object.values(left))
    log.warn('indexing.subscription-left', {
      broker: row.host,
      subscription: id,
      reason: 'it could not be reached for too long',
    })
  brokers.remove(row.b)
}
