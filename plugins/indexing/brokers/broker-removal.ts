/**
 * Removes a broker: its entries at once, its subscriptions as soon as the broker can be reached. Retries up
 * to a time limit. Until then the broker's row lists the remaining subscriptions.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { unsubscribe } from '#client/subscriptions/remote-subscriptions.ts'
import type { BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { factsOf } from './followed-broker.ts'
import type { Reach } from './reach.ts'

export interface BrokerRemovalPorts extends ClockAndLog {
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly reach: Reach
  readonly signal: AbortSignal
  /** Handles errors of background work. */
  readonly reportError: (during: string) => (error: unknown) => void
}

export const isLeaving = ({ state }: BrokerRow): boolean => state === 'leaving'

/** Runs one removal pass at a time: an unreachable broker may delay a pass beyond the next interval. */
export function createRemovals(ports: BrokerRemovalPorts): () => Promise<void> {
  let pass: Promise<void> | undefined
  return () => (pass ??= runPass(ports).finally(() => (pass = undefined)))
}

/** Processes each removed broker once, including those added during the pass. */
async function runPass(ports: BrokerRemovalPorts): Promise<void> {
  const { brokers, signal, reportError } = ports
  const processed = new Set<string>()
  const next = (): BrokerRow | undefined =>
    brokers.all().find((row) => isLeaving(row) && !processed.has(row.key))
  for (let row = next(); row !== undefined && !signal.aborted; row = next()) {
    processed.add(row.key)
    await removeBroker(row, ports).catch(reportError(`removing ${row.host}`))
  }
}

/**
 * Deletes a broker's entries. Deletes its row once no subscription remains there, or the time limit passed.
 */
async function removeBroker(row: BrokerRow, ports: BrokerRemovalPorts): Promise<void> {
  const { brokers, catalogue, clock, log } = ports
  // A kill or a disk error may have left some entries.
  await catalogue.removeAll(row.b)
  const left = await unsubscribeAll(row, ports)
  // A client may have registered the broker again in the meantime.
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
      reason: 'the broker was unreachable for too long',
    })
  brokers.remove(row.b)
}

/**
 * Deletes our subscriptions at the broker. Returns the remaining ones by purpose; all of them if its
 * credentials cannot be read.
 */
async function unsubscribeAll(
  row: BrokerRow,
  { reach, log, reportError }: BrokerRemovalPorts,
): Promise<Readonly<Record<string, string>>> {
  const { subscriptions = {}, tenant } = factsOf(row)
  const left: Record<string, string> = { ...subscriptions }
  if (Object.keys(left).length === 0) return left
  let port: ReturnType<Reach['open']> | undefined
  try {
    port = reach.open(row.host, tenant)
    const client = reach.client(port)
    for (const [purpose, id] of Object.entries(subscriptions)) {
      const trouble = await unsubscribe(id, client)
      if (trouble?.kind === 'down') break
      if (trouble !== undefined)
        log.warn('indexing.subscription-left', { broker: row.host, subscription: id, reason: trouble.reason })
      delete left[purpose]
    }
  } catch (error) {
    reportError(`removing ${row.host}`)(error)
  } finally {
    port?.close()
  }
  return left
}
