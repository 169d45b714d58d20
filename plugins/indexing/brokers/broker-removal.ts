/**
 * A broker that is to be forgotten: its entries are gone at once, its subscriptions there are removed when it can be reached, however
 * long that takes, up to a bound. Until then its row says what is still to do.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { factsOf } from './followed-broker.ts'
import type { Reach } from './reach.ts'
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

/** One look at a time at all that leave: one that is away may hold it up for longer than the time to the next. */
export function createLeaving(ports: LeavingPorts): () => Promise<void> {
  let looking: Promise<void> | undefined
  return () => (looking ??= look(ports).finally(() => (looking = undefined)))
}

/** Looks once after each, also after those that begin to leave meanwhile. */
async function look(ports: LeavingPorts): Promise<void> {
  const { brokers, signal, tell } = ports
  const looked = new Set<string>()
  const next = (): BrokerRow | undefined =>
    brokers.all().find((row) => isLeaving(row) && !looked.has(row.key))
  for (let row = next(); row !== undefined && !signal.aborted; row = next()) {
    looked.add(row.key)
    await leaveOne(row, ports).catch(tell(`forgetting ${row.host}`))
  }
}

/** Takes out its entries, and its row when nothing of it is left there or that is given up. */
async function leaveOne(row: BrokerRow, ports: LeavingPorts): Promise<void> {
  const { brokers, catalogue, clock, log } = ports
  // A kill, or a disk that failed, may have kept some of it.
  await catalogue.removeAll(row.b)
  const left = await unsubscribed(row, ports)
  // It may have been registered again meanwhile.
  if (brokers.byKey(row.key) === undefined) return
  const { leftAt = clock.now() } = factsOf(row)
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

/** Removes our subscriptions there. Returns those that are left, by purpose: all of them where its credentials cannot be read. */
async function unsubscribed(
  row: BrokerRow,
  { reach, log, tell }: LeavingPorts,
): Promise<Readonly<Record<string, string>>> {
  const { subscriptions = {}, tenant } = factsOf(row)
  const left: Record<string, string> = { ...subscriptions }
  if (Object.keys(left).length === 0) return left
  let port: ReturnType<Reach['open']> | undefined
  try {
    port = reach.open(row.host, tenant)
    const asking = reach.asking(port)
    for (const [purpose, id] of Object.entries(subscriptions)) {
      const trouble = await unsubscribe(id, asking)
      if (trouble?.kind === 'down') break
      if (trouble !== undefined)
        log.warn('indexing.subscription-left', { broker: row.host, subscription: id, reason: trouble.reason })
      delete left[purpose]
    }
  } catch (error) {
    tell(`forgetting ${row.host}`)(error)
  } finally {
    port?.close()
  }
  return left
}
