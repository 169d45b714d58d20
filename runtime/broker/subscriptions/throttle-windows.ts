/**
 * Throttling of a subscription (GS CIM 009, 5.2.12 and 5.8.6): at most one notification per throttling
 * interval. The first match is sent at once. Entities that match within the window are notified together at
 * its end, in their state then. So the last value of a window always reaches the subscriber.
 * `throttle-timers.ts` ends the windows. A restart loses the held entities.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { type DocumentDraft, timesOf } from '#broker/state/document-drafts.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import type { EntityReport, ReportedChange } from '#ngsi-ld/subscription/notification-data.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import type { SubscriptionStatistics } from './subscription-statistics.ts'

/** The throttling state of a subscription. */
export interface Throttled {
  readonly subscription: Subscription
  readonly statistics: SubscriptionStatistics
  /** Monotonic ms of the last notified match: the window begins then. */
  lastMatchAt: number
  /**
   * Commit time of the batch that this match belongs to; the other matches of that batch are notified too.
   */
  lastBatchAt: number | undefined
  /**
   * Entities that matched within the window, by id, with changes that are not visible in the entity later.
   */
  held: Map<string, EntityReport | undefined>
}

/** The state of a subscription that was never notified. */
export const unthrottled = (): Pick<Throttled, 'lastMatchAt' | 'lastBatchAt' | 'held'> => ({
  lastMatchAt: Number.NEGATIVE_INFINITY,
  lastBatchAt: undefined,
  held: new Map(),
})

/** A match of an entity, by a change that may not be readable later, such as a deletion. */
interface Match {
  readonly id: string
  readonly report: EntityReport | undefined
}

export interface ThrottleWindowsPorts<Registered extends Throttled> {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly find: (stage: Stage, id: string) => DocumentDraft | undefined
  readonly matches: (
    stage: Stage,
    registered: Registered,
    entity: Entity | undefined,
    times: SystemTimes | undefined,
  ) => boolean
  /** Stages a delivery of these entities to the subscriber. */
  readonly notify: (stage: Stage, registered: Registered, report: EntityReport) => void
  /** Called when an entity is held: `release` is due at the end of the window. */
  readonly onHeld: (registered: Registered) => void
}

export function createThrottleWindows<Registered extends Throttled>(ports: ThrottleWindowsPorts<Registered>) {
  const { clock, find, matches, notify } = ports

  function begin(stage: Stage, registered: Registered): void {
    const { lastMatchAt, lastBatchAt } = registered
    registered.lastMatchAt = clock.monotonic()
    registered.lastBatchAt = stage.batchAt
    stage.undone(() => Object.assign(registered, { lastMatchAt, lastBatchAt }))
  }

  /**
   * True if the match is within the window: it is noted, not notified. A match outside of it begins the next
   * window.
   */
  function holds(stage: Stage, registered: Registered, match: Match): boolean {
    const { subscription, statistics, lastMatchAt, lastBatchAt, held } = registered
    const { throttling } = subscription
    const isOfBatch = stage.batchAt !== undefined && stage.batchAt === lastBatchAt
    if (throttling === undefined || isOfBatch) return false
    if (clock.monotonic() - lastMatchAt >= throttling * 1000) {
      begin(stage, registered)
      return false
    }
    statistics.timesThrottled++
    stage.undone(() => void statistics.timesThrottled--)
    if (note(held, match)) ports.onHeld(registered)
    return true
  }

  /** Notifies the held entities that still match, in their current state, in one batch. */
  function release(stage: Stage, registered: Registered): void {
    const { held } = registered
    registered.held = new Map()
    stage.undone(() => {
      registered.held = new Map([...held, ...registered.held])
    })
    const batch = stage.ofBatch(stage.at)
    let isAny = false
    for (const [id, report] of held) {
      const draft = find(stage, id)
      const now = draft && { entity: draft.entity, times: timesOf(draft), at: stage.at }
      if (now !== undefined && !matches(stage, registered, now.entity, now.times)) continue
      const released = now === undefined ? report : withDeletions(now, report)
      if (released === undefined) continue
      isAny = true
      notify(batch, registered, released)
    }
    if (isAny) begin(batch, registered)
  }

  return Object.freeze({ holds, release })
}

/** False if the ceiling of held entities is reached. */
function note(held: Throttled['held'], { id, report }: Match): boolean {
  if (!held.has(id) && held.size >= limits.throttledEntitiesMax.value) return false
  const before = held.get(id)
  const changes = [...(before?.changes ?? []), ...(report?.changes ?? [])].slice(-changesMax)
  held.set(id, report === undefined ? before : { ...report, changes })
  return true
}

/** Most deleted attributes reported for one entity at the end of a window. */
const changesMax = 100

/**
 * The entity in its current state, with the attributes that were deleted within the window and not
 * re-created.
 */
function withDeletions(now: EntityReport, held: EntityReport | undefined): EntityReport {
  const isStillDeleted = ({ name, isDeleted, before: { datasetId } }: ReportedChange): boolean =>
    isDeleted && !instancesOf(now.entity, name).some((instance) => instance.datasetId === datasetId)
  const changes = held?.isDeleted === true ? [] : (held?.changes ?? []).filter(isStillDeleted)
  return changes.length === 0 ? now : { ...now, changes }
}
