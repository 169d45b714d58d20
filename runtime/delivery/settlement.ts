/**
 * Makes outcomes durable: deletes the rows of settled deliveries, stores dead letters and subscription
 * statistics. It collects outcomes for a second or 256 deliveries and adds them to other commits. After a
 * crash a delivery may therefore be sent again, but none is lost. A failed commit is retried a second later.
 */

import { limits } from '#base/limits/limits.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'

export interface SettlementPorts {
  readonly door: Pick<Door, 'submit'>
  readonly clock: Clock
  /** Statistics of a subscription as JSON text; undefined if it was deleted. */
  statistics(sub: number): string | undefined
}

interface DeadLetter {
  readonly delivery: Delivery
  readonly reason: string
  readonly body: string
}

interface Batch {
  readonly settled: readonly number[]
  readonly deadLetters: readonly DeadLetter[]
  readonly touched: readonly number[]
}

export type Settlement = ReturnType<typeof createSettlement>

export function createSettlement(ports: SettlementPorts) {
  const { door, clock } = ports
  const pending = new Set<number>()
  const touched = new Set<number>()
  let settled: number[] = []
  let deadLetters: DeadLetter[] = []
  let writing: Promise<boolean> | undefined
  let touchedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  /** The last commit was rejected: the next one waits for the timer. */
  let wasRefused = false

  function schedule(): void {
    if (writing !== undefined) return
    if (!wasRefused && settled.length >= limits.deliverySettleMax.value) void write(false)
    else timer ??= setTimeout(() => void write(false), limits.deliverySettleMs.value)
  }
  function take(isLast: boolean): Batch {
    const isDue = isLast || clock.monotonic() - touchedAt >= limits.deliverySettleMs.value
    const batch = { settled, deadLetters, touched: isDue ? [...touched] : [] }
    settled = []
    deadLetters = []
    if (isDue) touched.clear()
    if (isDue) touchedAt = clock.monotonic()
    return batch
  }
  function putBack(batch: Batch): void {
    settled = [...batch.settled, ...settled]
    deadLetters = [...batch.deadLetters, ...deadLetters]
    for (const sub of batch.touched) touched.add(sub)
  }
  /** Resolves to true if the batch is on disk. */
  function write(isLast: boolean): Promise<boolean> {
    clearTimeout(timer)
    timer = undefined
    const batch = take(isLast)
    writing = submit(door, batch, { isUrgent: isLast, statistics: ports.statistics }).then((isWritten) => {
      writing = undefined
      wasRefused = !isWritten
      if (isWritten) for (const d of batch.settled) pending.delete(d)
      else putBack(batch)
      if (settled.length + touched.size > 0 && !isLast) schedule()
      return isWritten
    })
    return writing
  }

  return Object.freeze({
    /** Settled deliveries whose rows still exist. */
    pending,
    /** Deletes the rows of delivered, void or dropped deliveries in one commit. */
    settle(numbers: readonly number[]): void {
      for (const d of numbers) pending.add(d)
      settled.push(...numbers)
      schedule()
    },
    /** Replaces the row by a dead letter. */
    deadLetter(delivery: Delivery, reason: string, body: string): void {
      pending.add(delivery.d)
      settled.push(delivery.d)
      deadLetters.push({ delivery, reason, body })
      schedule()
    },
    /** Records that the statistics of a subscription changed. */
    touch(sub: number): void {
      touched.add(sub)
      schedule()
    },
    /** Writes all open outcomes at once; resolves when they are on disk or were rejected. */
    async flush(): Promise<void> {
      await writing
      clearTimeout(timer)
      timer = undefined
      if (settled.length + touched.size > 0) await write(true)
      clearTimeout(timer)
    },
  })
}

function submit(
  door: Pick<Door, 'submit'>,
  batch: Batch,
  options: { isUrgent: boolean; statistics(sub: number): string | undefined },
): Promise<boolean> {
  return new Promise((resolve) => {
    const isTaken = door.submit({
      urgent: options.isUrgent,
      isSparing: true,
      bytes: batch.settled.length * 8 + batch.deadLetters.reduce((sum, { body }) => sum + body.length, 256),
      decide: (stage) => stageBatch(stage, batch, options.statistics),
      answer: (error) => resolve(error === undefined),
    })
    if (!isTaken) resolve(false)
  })
}

function stageBatch(stage: Stage, batch: Batch, statistics: (sub: number) => string | undefined): void {
  failpoint('delivery:before-settle')
  if (batch.settled.length > 0) stage.write('delivery.settle', JSON.stringify(batch.settled))
  for (const { delivery, reason, body } of batch.deadLetters) {
    const { d, sub, endpoint, entity, at } = delivery
    stage.write('dead_letter.insert', d, sub, endpoint, entity, at, stage.at, reason, body)
  }
  if (batch.deadLetters.length > 0) stage.write('dead_letter.trim', limits.deadLettersMax.value)
  for (const sub of batch.touched) {
    const text = statistics(sub)
    if (text === undefined) continue
    // Subscriptions to context sources have negative numbers.
    stage.write(sub < 0 ? 'csource_subscription.stats' : 'subscription.stats', text, sub)
  }
}
