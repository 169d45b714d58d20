/**
 * Notifications that were received and are not yet sent, on disk. Each subscription has lanes: ways by which
 * its notifications are sent, each in the order of their arrival. A notification is deleted when all lanes of
 * its subscription have sent it. Beyond a ceiling the oldest are given up, counted and logged.
 *
 * Progress of lanes is saved later than it is made, so a kill repeats the last notifications, in their order.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { PluginDatabase } from '#contract'
import type { NotificationStatements, StoredNotification } from './notification-statements.ts'

export interface NotificationOutboxPorts {
  readonly database: Pick<PluginDatabase, 'transaction' | 'flushed'>
  readonly table: NotificationStatements
  /** New notifications of a subscription can be read. */
  readonly arrived: (subscription: string) => void
  /** Counts notifications that were given up. */
  readonly givenUp: (count: number) => void
  readonly log: Log
}

interface Arriving {
  readonly subscription: string
  readonly body: Buffer
  /** Written in the same transaction. */
  readonly together: (() => void) | undefined
  readonly stored: PromiseWithResolvers<void>
}

/** How far each lane has sent. */
type Progress = Map<string, number>

export type NotificationOutbox = ReturnType<typeof createNotificationOutbox>

export function createNotificationOutbox(
  { database, table, arrived, givenUp, log }: NotificationOutboxPorts,
  ceiling = { count: limits.orchestratorWaitingMax.value, bytes: limits.orchestratorWaitingBytes.value },
) {
  const all = new Map<string, Progress>()
  const waiting = { ...table.total() }
  let arriving: Arriving[] = []
  let arrivingBytes = 0
  let storing: Promise<void> | undefined
  const unsaved = new Set<string>()
  let saving: NodeJS.Timeout | undefined
  let lost = 0
  /** Steps of progress since the last save. */
  let steps = 0

  const insert = database.transaction((group: readonly Arriving[]) => {
    for (const { subscription, body, together } of group) {
      // No lane would send, and delete, a notification of a subscription that ended meanwhile.
      if (!all.has(subscription)) continue
      table.insert(subscription, body)
      together?.()
      waiting.bytes += body.length
      waiting.count++
    }
  })

  /** Stores all that has arrived, in groups: those that arrive during a flush share the next one. */
  async function store(): Promise<void> {
    while (arriving.length > 0) {
      await nextTurn()
      const group = arriving
      arriving = []
      arrivingBytes = 0
      const before = { ...waiting }
      try {
        insert(group)
      } catch (error) {
        Object.assign(waiting, before)
        for (const { stored } of group) stored.reject(error)
        continue
      }
      try {
        dropOldest()
        for (const subscription of new Set(group.map((one) => one.subscription))) arrived(subscription)
      } catch (error) {
        log.error('plugin.failed', { plugin: 'orchestrator', during: 'giving notifications up', error })
      }
      try {
        await database.flushed()
        for (const { stored } of group) stored.resolve()
      } catch (error) {
        for (const { stored } of group) stored.reject(error)
      }
    }
    // Set here and not when the promise is resolved: one that arrives between the two would not be stored.
    storing = undefined
  }

  /** Gives up the oldest notifications beyond the ceiling; a hundredth of the ceiling at once. */
  function dropOldest(): void {
    if (waiting.count <= ceiling.count && waiting.bytes <= ceiling.bytes) return
    saveAll()
    let dropped = 0
    while (waiting.count > ceiling.count * 0.99 || waiting.bytes > ceiling.bytes * 0.99) {
      const last = new Map<string, number>()
      let { count, bytes } = waiting
      for (const one of table.oldest(limits.orchestratorReadPage.value)) {
        if (count <= ceiling.count * 0.99 && bytes <= ceiling.bytes * 0.99) break
        last.set(one.subscription, one.n)
        count--
        bytes -= one.bytes
        dropped++
      }
      database.transaction(() => {
        for (const [subscription, through] of last) {
          const progress = all.get(subscription)
          for (const [lane, sent] of progress ?? []) progress!.set(lane, Math.max(sent, through))
          trim(subscription, through)
        }
      })()
    }
    lost += dropped
    givenUp(dropped)
    log.warn('orchestrator.notifications-given-up', { count: dropped, waiting: waiting.count })
  }

  function trim(subscription: string, through: number): void {
    const { count, bytes } = table.trim(subscription, through)
    waiting.count -= count
    waiting.bytes -= bytes
  }

  const save = database.transaction((subscriptions: readonly string[]) => {
    for (const subscription of subscriptions) {
      const progress = all.get(subscription)
      if (progress === undefined) continue
      // The progress of a single lane shows by what is left.
      if (progress.size > 1)
        for (const [lane, through] of progress) table.setCursor(subscription, lane, through)
      if (progress.size > 0) trim(subscription, Math.min(...progress.values()))
    }
  })

  /** Saves the progress of all lanes, and deletes what all have sent. */
  function saveAll(): void {
    clearTimeout(saving)
    saving = undefined
    steps = 0
    if (unsaved.size === 0) return
    save([...unsaved])
    unsaved.clear()
  }

  /** Saves the progress; after a failure, such as a full disk, the next progress tries again. */
  function trySave(): void {
    try {
      saveAll()
    } catch (error) {
      log.error('plugin.failed', { plugin: 'orchestrator', during: 'saving progress', error })
    }
  }

  function saveLater(): void {
    saving ??= setTimeout(trySave, limits.orchestratorProgressMs.value).unref()
  }

  return Object.freeze({
    /**
     * Stores a notification. Resolves once it is on disk.
     * @param together further writes of the same transaction.
     * @throws http.busy if too many are being stored, or the error of a failing disk.
     */
    append(subscription: string, body: Buffer, together?: () => void): Promise<void> {
      if (arrivingBytes > limits.orchestratorArrivingBytes.value)
        throw new GatewayError('http.busy', 'too many notifications are being stored', {
          retryAfterSeconds: 1,
        })
      const stored = Promise.withResolvers<void>()
      arriving.push({ subscription, body, together, stored })
      arrivingBytes += body.length
      storing ??= store()
      return stored.promise
    },
    /** Sets the lanes of a subscription. A new lane beside others begins with the next notification. */
    setLanes(subscription: string, lanes: readonly string[]): void {
      const stored = new Map(table.cursors(subscription).map(({ lane, through }) => [lane, through]))
      const known = all.get(subscription) ?? stored
      const isNew = known.size === 0
      const wanted = lanes.map((lane) => {
        const through = known.get(lane) ?? (isNew ? 0 : table.last(subscription))
        return [lane, through] as const
      })
      database.transaction(() => {
        for (const lane of stored.keys()) table.removeCursor(subscription, lane)
        for (const [lane, through] of wanted)
          if (wanted.length > 1) table.setCursor(subscription, lane, through)
      })()
      all.set(subscription, new Map(wanted))
      unsaved.add(subscription)
      saveLater()
    },
    /** Deletes everything of a subscription. */
    remove(subscription: string): void {
      database.transaction(() => {
        for (const { lane } of table.cursors(subscription)) table.removeCursor(subscription, lane)
        trim(subscription, Number.MAX_SAFE_INTEGER)
      })()
      all.delete(subscription)
      unsaved.delete(subscription)
    },
    /** Notifications of a subscription after a number, oldest first. */
    next: (subscription: string, after: number, count: number): readonly StoredNotification[] =>
      table.next(subscription, after, count),
    /** Whether a notification of a subscription waits. */
    contains: table.contains,
    /** The newest number beyond the newest `count` of a subscription. */
    beyond: table.beyond,
    /** Notifications of a subscription after a number, up to another one. */
    countOf: table.countOf,
    /** The number up to which a lane has sent; undefined if it does not exist. */
    through: (subscription: string, lane: string): number | undefined => all.get(subscription)?.get(lane),
    /** Notes that a lane has sent all notifications up to a number. */
    advance(subscription: string, lane: string, through: number): void {
      const progress = all.get(subscription)
      const before = progress?.get(lane)
      if (before === undefined || before >= through) return
      progress!.set(lane, through)
      unsaved.add(subscription)
      if (++steps >= limits.orchestratorSaveSteps.value) trySave()
      else saveLater()
    },
    waiting: () => waiting.count,
    bytes: () => waiting.bytes,
    /** Notifications given up since the start. */
    lost: () => lost,
    /** Stores what has arrived, and saves all progress. */
    async close(): Promise<void> {
      await storing
      saveAll()
    },
  })
}
