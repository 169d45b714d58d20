/**
 * The histories of a comparison: those of what is here, then of what was deleted here, day by day by digests. Only another
 * gateway tells these.
 */

import { limits } from '#base/limits/limits.ts'
import type { Following, Span } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Digests, HistoryDigests, Observed } from '#broker/tenant/digests.ts'
import { toIdList } from '#ngsi-ld/federation/digest.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { Centre } from '#uplink/centre/central-broker.ts'
import type { Outcome } from '#uplink/centre/outcome.ts'
import { halvesOf } from '#uplink/centre/outcome.ts'
import { areHistories } from '#uplink/centre/response-shapes.ts'
import {
  budgetGapsOf,
  type DroppedWithin,
  type GapReadingPorts,
  type IsDropped,
} from '#uplink/progress/budget-gaps.ts'
import type { CurrentSteps } from '#uplink/progress/current-steps.ts'
import type { ReconcileTask } from '#uplink/progress/reconcile-task.ts'
import type { DeletionLookups } from '#uplink/steps/deletion-steps.ts'
import { pastHead, removalSteps } from '#uplink/steps/deletion-steps.ts'
import { idParts } from '#uplink/steps/id-parts.ts'
import type { Resurrections } from '#uplink/steps/resurrections.ts'
import type { Head, Layer, Step } from '#uplink/steps/step-plan.ts'

export interface ReconcilePorts {
  readonly following: Following
  readonly digests: Digests
  readonly centre: Centre
  /** The same by the way of the live lane, for what is asked in its stead. */
  readonly live: Centre
  readonly current: CurrentSteps
  readonly lookups: DeletionLookups
  /** Types of entities that go up, where only types decide. */
  readonly types: readonly string[] | undefined
  readonly alias: string
  /** Its id. */
  readonly uplink: string
  /** Asks until there is an answer that tells; undefined when the uplink was closed meanwhile. */
  readonly until: <T>(ask: () => Promise<T | (Outcome & { kind: 'later' })>) => Promise<T | undefined>
  /** Asks once, where others wait for the answer; undefined when it tells nothing now, or the uplink was closed. */
  readonly once: <T>(ask: () => Promise<T | (Outcome & { kind: 'later' })>) => Promise<T | undefined>
  /** Settles when something may be sent; with false when the uplink was closed. */
  readonly ready: () => Promise<boolean>
  /** Whether a task was ended, or begun anew, since. */
  readonly isStopped: (task: ReconcileTask) => boolean
  /** Sends until it was taken; false when the uplink was closed meanwhile. */
  readonly deliver: (layer: Layer) => Promise<boolean>
  /** The same of what is current, by the live lane, in whose stead that is. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
  /** Has go what telling of the past brought back over there; false when the uplink was closed. */
  readonly ensureDeleted: Resurrections['ensureDeleted']
}

export interface PastPorts
  extends Pick<
    ReconcilePorts,
    | 'following'
    | 'digests'
    | 'centre'
    | 'current'
    | 'lookups'
    | 'ready'
    | 'isStopped'
    | 'deliver'
    | 'deliverNow'
    | 'ensureDeleted'
    | 'alias'
    | 'uplink'
  > {
  readonly fetchReply: GapReadingPorts['fetchReply']
  /** Whether an entity went up from here. */
  readonly isOurs: (view: EntityView) => boolean
}

/** The phases of a comparison that are of the past; each does the next portion. False when the uplink was closed. */
export function createPastPhases(ports: PastPorts) {
  const { following, digests, centre, current, lookups, isStopped, fetchReply, isOurs } = ports

  async function histories(task: ReconcileTask): Promise<boolean> {
    const page = following.entities(task.after, limits.reconcileHistories.value)
    const ours = page.flatMap(([, view]) => (isOurs(view) ? [{ id: view.id, type: view.entity().type }] : []))
    if (!(await historiesOf(task, ours))) return false
    if (task.phase === 'done') return true
    const last = page.at(-1)
    const isLast = last === undefined || page.length < limits.reconcileHistories.value
    task.after = isLast ? 0 : last[0]
    if (isLast) task.phase = 'graves'
    return true
  }

  /** Histories of what was deleted here stay, and are compared as those of what is here. */
  async function deletedHistories(task: ReconcileTask): Promise<boolean> {
    const page = following.gravesBehind(task.after, limits.reconcileHistories.value)
    const ours = page.flatMap((grave): Head[] => {
      const now = following.entity(grave.id)
      // What came again since this began was not among the entities.
      if (now !== undefined && wasRecreated(task, now) && isOurs(now))
        return [{ id: grave.id, type: now.entity().type }]
      if (now !== undefined || following.gravesAfter(grave.id, grave.n).length > 0) return []
      const [gone] = removalSteps(grave, undefined, lookups)
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

  /** Compares the histories of some entities; ends the task where the other broker keeps no such histories. */
  async function historiesOf(task: ReconcileTask, heads: readonly Head[]): Promise<boolean> {
    const ours: { readonly head: Head; readonly own: HistoryDigests }[] = []
    for (const head of heads) ours.push({ head, own: await digests.history(head.id, allTimes) })
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
        const before = task.observations
        if (!(await fill(task, { head, own, there }))) return false
        const isNew = Object.keys(there).length === 0 && task.observations > before
        if (task.phase !== 'graves' || !isNew) continue
        // Who lets histories go with their entities is not told them all.
        const after = await digestsThere([head.id])
        if (after === undefined) return false
        if (after.isTooLarge === true) continue
        if (Object.keys(after.json?.histories[head.id] ?? {}).length > 0) continue
        task.phase = 'done'
        return true
      }
    }
    return true
  }

  /**
   * Tells what an entity became that the live lane has not told yet, so that no history is ahead of it; what is newer than that
   * comes by it. Undefined when the uplink was closed.
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

  /** Sends the days of a history that are not over there as they are here, but for what was let go. */
  async function fill(
    task: ReconcileTask,
    {
      head,
      own,
      there,
    }: { readonly head: Head; readonly own: HistoryDigests; readonly there: HistoryDigests },
  ): Promise<boolean> {
    let upTo: number | undefined
    let isDroppedWithin: DroppedWithin | undefined
    for (const [key, days] of Object.entries(own)) {
      const name = key.split(' ', 1)[0]!
      if (!lookups.selection.takesAttribute(name)) continue
      for (const [day, [count, sum]] of Object.entries(days)) {
        const theirs = there[key]?.[day]
        if (theirs?.[0] === count && theirs[1] === sum) continue
        task.days++
        if (task.isDry) continue
        if (isStopped(task)) return false
        upTo ??= await sendUnsent(head.id)
        if (upTo === undefined) return false
        isDroppedWithin ??= await budgetGapsOf(head.id, ports)
        if (isDroppedWithin === undefined) return false
        const from = dateTimeToMs(`${day}T00:00:00Z`)!
        // What was committed since may have a time that is still to be put right.
        const span = { from, to: from + dayMs, upTo }
        const isSent = sentBy(isDroppedWithin(key, span))
        for await (const some of digests.observed(head.id, key, span)) {
          if (isStopped(task)) return false
          const instances = some.filter(isSent).map(({ instance }) => instance)
          if (instances.length === 0) continue
          task.observations += instances.length
          const attributes = new Map([[name, instances]])
          const step: Step = { kind: 'past', entity: head, attributes }
          if (!(await ports.deliver({ kind: 'past', steps: [step] }))) return false
          if (!(await ports.ensureDeleted(head, attributes))) return false
        }
      }
    }
    return true
  }

  return Object.freeze({ histories, graves: deletedHistories })
}

/** Whether an entity was created since a comparison began, so that it may be in neither of its phases. */
export const wasRecreated = ({ startedAt }: ReconcileTask, now: EntityView): boolean =>
  now.times().created >= startedAt - limits.batchOneTimeMs.value

/** There is no telling, because alone it is more than one answer may hold. */
export function countTooLarge(task: ReconcileTask): void {
  task.tooLarge = (task.tooLarge ?? 0) + 1
}

/** Which instances go: not what was let go. */
const sentBy =
  (isLetGo: IsDropped) =>
  ({ instance: { observedAt = '' }, writtenAt }: Observed): boolean =>
    !isLetGo(dateTimeToMs(observedAt) ?? 0, writtenAt)

const dayMs = 86_400_000
const allTimes: Span = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER }
