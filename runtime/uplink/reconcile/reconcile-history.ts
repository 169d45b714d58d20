/**
 * Compares histories during a reconciliation: first of existing entities, then of deleted ones, day by day
 * using digests. Only a Selvedge provides these digests.
 */

import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, CommitSpan } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Digests, HistoryDigests, WrittenInstance } from '#broker/tenant/digests.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { toIdList } from '#ngsi-ld/federation/digest.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import { halvesOf, type SendOutcome } from '#uplink/centre/outcome.ts'
import { areHistories } from '#uplink/centre/response-shapes.ts'
import {
  budgetGapsOf,
  type DroppedWithin,
  type GapReadingPorts,
  type IsDropped,
} from '#uplink/progress/budget-gaps.ts'
import type { CurrentSteps } from '#uplink/progress/current-steps.ts'
import type { ReconcileTask } from '#uplink/progress/reconcile-task.ts'
import { type DeletionLookups, pastHead, removalSteps } from '#uplink/steps/deletion-steps.ts'
import { idParts } from '#uplink/steps/id-parts.ts'
import type { Resurrections } from '#uplink/steps/resurrections.ts'
import { type Head, instanceCount, type Layer, type Step } from '#uplink/steps/step-plan.ts'

export interface ReconcilePorts {
  readonly following: ChangeFeed
  readonly digests: Digests
  readonly centre: CentralBroker
  /** The client of the live lane, for requests in its turn. */
  readonly live: CentralBroker
  readonly current: CurrentSteps
  readonly lookups: DeletionLookups
  /** The selected entity types, if only types decide. */
  readonly types: readonly string[] | undefined
  readonly alias: string
  /** The id of the uplink. */
  readonly uplink: string
  /** Requests until there is a usable response; undefined when the uplink was closed. */
  readonly until: <T>(ask: () => Promise<T | (SendOutcome & { kind: 'later' })>) => Promise<T | undefined>
  /**
   * Requests once, because others wait for it; undefined without a usable response now, or when the uplink
   * was closed.
   */
  readonly once: <T>(ask: () => Promise<T | (SendOutcome & { kind: 'later' })>) => Promise<T | undefined>
  /** Resolves when something may be sent; with false when the uplink was closed. */
  readonly ready: () => Promise<boolean>
  /** Whether a task was cancelled or replaced. */
  readonly isStopped: (task: ReconcileTask) => boolean
  /** Sends until accepted; false when the uplink was closed. */
  readonly deliver: (layer: Layer) => Promise<boolean>
  /** Same for current values, in a turn of the live lane. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
  /** Deletes at the centre what sending the past resurrected; false when the uplink was closed. */
  readonly ensureDeleted: Resurrections['ensureDeleted']
}

export interface PastPorts extends ReconcilePorts {
  readonly fetchReply: GapReadingPorts['fetchReply']
  /** Whether an entity originates here and is selected. */
  readonly isOurs: (view: EntityView) => boolean
}

/**
 * The history phases of a reconciliation; each call does the next portion. False when the uplink was closed.
 */
export function createPastPhases(ports: PastPorts) {
  const { following, digests, centre, current, lookups, isStopped, fetchReply, isOurs } = ports

  async function histories(task: ReconcileTask): Promise<boolean> {
    const page = following.entities(task.after, limits.reconcileHistories.value)
    const ours = page.flatMap(([, view]) => (isOurs(view) ? [{ id: view.id, type: view.entity().type }] : []))
    if (!(await historiesOf(task, ours))) return false
    if (task.phase === 'done') return true
    const last = page.at(-1)
    task.after = last?.[0] ?? 0
    if (last === undefined) task.phase = 'deletedHistories'
    return true
  }

  /** Histories of deleted entities are kept and compared like others. */
  async function deletedHistories(task: ReconcileTask): Promise<boolean> {
    const page = following.tombstonesSince(task.after, limits.reconcileHistories.value)
    const ours = page.flatMap((tombstone): Head[] => {
      const now = following.entity(tombstone.id)
      // An entity re-created since the start was not in the first phase.
      if (now !== undefined && wasRecreated(task, now) && isOurs(now))
        return [{ id: tombstone.id, type: now.entity().type }]
      if (now !== undefined || following.tombstonesAfter(tombstone.id, tombstone.n).length > 0) return []
      const [gone] = removalSteps(tombstone, undefined, lookups)
      return gone === undefined ? [] : [pastHead(gone.entity, lookups)]
    })
    if (!(await historiesOf(task, ours))) return false
    if (task.phase === 'done') return true
    const last = page.at(-1)
    if (last === undefined || page.length < limits.reconcileHistories.value) task.phase = 'done'
    else task.after = last.n
    return true
  }

  const digestsThere = (ids: readonly string[]) =>
    fetchReply(areHistories, () =>
      centre.confirmAbsentSelvedge(`/selvedge/v1/digests?id=${encodeURIComponent(toIdList(ids))}`),
    )

  /** Compares the histories of some entities; ends the task if the centre keeps no such histories. */
  async function historiesOf(task: ReconcileTask, heads: readonly Head[]): Promise<boolean> {
    const ours = await Array.fromAsync(heads, async (head) => ({
      head,
      own: await digests.history(head.id, allTimes),
    }))
    const parts = [...idParts(ours, ({ head }) => head.id)]
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      const answer = await digestsThere(part.map(({ head }) => head.id))
      if (answer === undefined) return false
      if (answer.isTooLarge === true) {
        if (part.length > 1) parts.unshift(...halvesOf(part))
        else countTooLarge(task)
        continue
      }
      if (answer.json === undefined) {
        task.phase = 'done'
        return true
      }
      for (const { head, own } of part) {
        const there = answer.json.histories[head.id] ?? {}
        if (!(await complete(task, { head, own, there }))) return false
        if (task.phase === 'done') return true
      }
    }
    return true
  }

  /** Completes one history. Ends the task if the centre deletes histories together with their entities. */
  async function complete(task: ReconcileTask, pair: HistoryPair): Promise<boolean> {
    const before = task.observations
    if (!(await fill(task, pair))) return false
    const isNew = Object.keys(pair.there).length === 0 && task.observations > before
    if (task.phase !== 'deletedHistories' || !isNew) return true
    const { id } = pair.head
    const after = await digestsThere([id])
    if (after === undefined) return false
    const isKept = after.isTooLarge === true || Object.keys(after.json?.histories[id] ?? {}).length > 0
    if (!isKept) task.phase = 'done'
    return true
  }

  /**
   * Sends the entity's unsent changes, so that its history does not overtake them. Returns the commit time
   * (ms) up to which history may be sent; undefined when the uplink was closed.
   */
  async function sendUnsent(id: string): Promise<number | undefined> {
    while (await ports.ready()) {
      const upTo = await current.turn(async () => {
        if (following.isHeld()) return undefined
        const unsent = current.unsentSteps(id)
        return (await ports.deliverNow(unsent.steps)) ? unsent.upTo : undefined
      })
      if (upTo !== undefined) return upTo
    }
    return undefined
  }

  /** Sends the days of a history that differ at the centre, except what the budget dropped. */
  async function fill(task: ReconcileTask, { head, own, there }: HistoryPair): Promise<boolean> {
    let upTo: number | undefined
    let isDroppedWithin: DroppedWithin | undefined
    for (const [key, day] of differingDays(own, there)) {
      const name = key.split(' ', 1)[0]!
      if (!lookups.selection.takesAttribute(name)) continue
      task.days++
      if (task.isDry) continue
      if (isStopped(task)) return false
      upTo ??= await sendUnsent(head.id)
      if (upTo === undefined) return false
      isDroppedWithin ??= await budgetGapsOf(head.id, ports)
      if (isDroppedWithin === undefined) return false
      const from = dateTimeToMs(`${day}T00:00:00Z`)!
      // Later commits may have times that are still to be corrected.
      const span = { from, to: from + dayMs, upTo }
      const isSent = sentBy(isDroppedWithin(key, span))
      for await (const some of digests.observed(head.id, key, span)) {
        const instances = some.filter(isSent).map(({ instance }) => instance)
        if (!(await sendPast(task, head, new Map([[name, instances]])))) return false
      }
    }
    return true
  }

  async function sendPast(
    task: ReconcileTask,
    head: Head,
    attributes: ReadonlyMap<string, readonly AttributeInstance[]>,
  ): Promise<boolean> {
    const step: Step = { kind: 'past', entity: head, attributes }
    const count = instanceCount(step)
    if (isStopped(task)) return false
    if (count === 0) return true
    task.observations += count
    return (
      (await ports.deliver({ kind: 'past', steps: [step] })) && (await ports.ensureDeleted(head, attributes))
    )
  }

  return Object.freeze({ histories, deletedHistories })
}

/** The digests of one history, here and at the centre. */
interface HistoryPair {
  readonly head: Head
  readonly own: HistoryDigests
  readonly there: HistoryDigests
}

/** The days on which the histories of a stream differ, with the key of the stream. */
function* differingDays(own: HistoryDigests, there: HistoryDigests): Generator<[key: string, day: string]> {
  for (const [key, days] of Object.entries(own))
    for (const [day, [count, sum]] of Object.entries(days)) {
      const theirs = there[key]?.[day]
      if (theirs?.[0] !== count || theirs[1] !== sum) yield [key, day]
    }
}

/** Whether an entity was created since a reconciliation began, so that neither phase may include it. */
export const wasRecreated = ({ startedAt }: ReconcileTask, now: EntityView): boolean =>
  now.times().created >= startedAt - limits.batchOneTimeMs.value

/** Counts something that cannot be compared: it alone exceeds the limit of one response. */
export function countTooLarge(task: ReconcileTask): void {
  task.tooLarge = (task.tooLarge ?? 0) + 1
}

/** Filters out instances that the budget dropped. */
const sentBy =
  (isLetGo: IsDropped) =>
  ({ instance: { observedAt = '' }, writtenAt }: WrittenInstance): boolean =>
    !isLetGo(dateTimeToMs(observedAt) ?? 0, writtenAt)

const dayMs = 86_400_000
const allTimes: CommitSpan = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER }
