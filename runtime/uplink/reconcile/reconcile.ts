/**
 * Compares what was sent with what the centre holds, and sends the difference. A Selvedge provides digests
 * that narrow it down: entities by buckets of their ids, histories by days. From any other broker, entities
 * are fetched page by page. Only one portion is in memory, and the progress is part of the uplink's state.
 * Newer data at the centre is kept, and only entities deleted here are deleted there.
 */

import { limits } from '#base/limits/limits.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { requestForeign } from '#uplink/centre/foreign-attributes.ts'
import { halvesOf, later } from '#uplink/centre/outcome.ts'
import {
  areBuckets,
  type CentreReply,
  isBucket,
  remoteKeys,
  replyOf,
} from '#uplink/centre/response-shapes.ts'
import { areEntities, type Confirmation } from '#uplink/connection/absence.ts'
import type { ReconcileTask } from '#uplink/progress/reconcile-task.ts'
import { stepsOfEntity } from '#uplink/steps/change-steps.ts'
import { removalSteps } from '#uplink/steps/deletion-steps.ts'
import { idParts, idQuery } from '#uplink/steps/id-parts.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { differenceOf, type IsForeign, keysToKeep, surplusOf } from './entity-difference.ts'
import { countTooLarge, createPastPhases, type ReconcilePorts, wasRecreated } from './reconcile-history.ts'

export const newTask = (
  now: number,
  {
    isDry = false,
    reason,
    placedBefore,
  }: { readonly isDry?: boolean } & Pick<ReconcileTask, 'reason' | 'placedBefore'>,
): ReconcileTask => ({
  ...(placedBefore === undefined ? {} : { placedBefore }),
  phase: 'buckets',
  after: -1,
  isDry,
  reason,
  startedAt: now,
  compared: 0,
  missing: 0,
  different: 0,
  newer: 0,
  tooLarge: 0,
  surplus: 0,
  unknown: 0,
  days: 0,
  observations: 0,
})

/** The result for some entities in a turn of the live lane. */
type PassResult = 'done' | 'ended' | 'held' | 'too-large'

interface LookedUp {
  readonly entity: Entity
  /** Undefined if unknown. */
  readonly isForeign: IsForeign | undefined
}

export function createReconciler(ports: ReconcilePorts) {
  const { following, digests, centre, live, current, lookups, isStopped } = ports
  const isOurs = (view: Pick<EntityView, 'times' | 'entity'>): boolean =>
    !lookups.isFromCentre(view.times().attributes['']?.[2]) && lookups.selection.takes(view.entity())

  /** Fetches JSON of the given shape; undefined content when absence is confirmed. */
  const fetchReply = <T>(
    is: (json: unknown) => json is T,
    see: () => Promise<Confirmation>,
    ask = ports.until,
  ) => ask<CentreReply<T>>(async () => replyOf(await see(), is))

  const send = async (task: ReconcileTask, steps: readonly Step[]): Promise<boolean> => {
    if (isStopped(task)) return false
    return task.isDry || ports.deliverNow(steps)
  }

  /** Compares differing buckets if the centre provides digests; otherwise all entities, page by page. */
  async function buckets(task: ReconcileTask): Promise<boolean> {
    const chosen = `through=${encodeURIComponent(ports.alias)}${
      ports.types === undefined ? '' : `&type=${ports.types.map(encodeURIComponent).join(',')}`
    }`
    const answer = await fetchReply(areBuckets, () =>
      centre.confirmAbsentSelvedge(`/selvedge/v1/digests?${chosen}`),
    )
    if (answer === undefined) return false
    const theirs = answer.json?.buckets
    const ours = theirs && (await digests.buckets(isOurs, lookups.scopePrefix.entity))
    const differing = ours?.flatMap(([count, sum], i) =>
      theirs![i]?.[0] === count && theirs![i][1] === sum ? [] : [i],
    )
    if (ours !== undefined) task.compared = ours.reduce((all, [count]) => all + count, 0)
    if (differing === undefined || differing.length > limits.reconcileBucketsMax.value) {
      task.phase = 'pages'
      task.after = 0
      task.compared = 0
      return true
    }
    for (const bucket of differing) if (!(await oneBucket(task, { bucket, chosen }))) return false
    task.phase = 'histories'
    task.after = 0
    return true
  }

  async function oneBucket(
    task: ReconcileTask,
    { bucket, chosen }: { readonly bucket: number; readonly chosen: string },
  ): Promise<boolean> {
    const answer = await fetchReply(isBucket, () =>
      centre.confirmAbsentSelvedge(`/selvedge/v1/digests?bucket=${bucket}&${chosen}`),
    )
    if (answer === undefined) return false
    const theirs = new Map(Object.entries(answer.json?.entities ?? {}))
    const ours = await digests.bucket(bucket, isOurs, lookups.scopePrefix.entity)
    const others = [...ours].flatMap(([id, hash]) => (theirs.get(id) === hash ? [] : [id]))
    if (!(await compare(task, others))) return false
    const again: string[] = []
    const tombstones = [...theirs.keys()].flatMap((id) => {
      if (ours.has(id)) return []
      const now = following.entity(id)
      if (now !== undefined && isOurs(now)) again.push(id)
      if (now !== undefined) return []
      const tombstone = following.tombstonesAfter(id, 0).at(-1)
      if (tombstone !== undefined && removalSteps(tombstone, undefined, lookups).length > 0)
        return [tombstone]
      task.unknown++
      return []
    })
    return (await compare(task, again)) && removeAll(task, tombstones)
  }

  /** Compares entities with the centre's, and sends missing or different ones. */
  async function compare(task: ReconcileTask, ids: readonly string[]): Promise<boolean> {
    const views = ids.flatMap((id) => following.entity(id) ?? [])
    for (const part of idParts(views, ({ id }) => id))
      if (!(await inLiveTurns(task, part, (some) => compareNow(task, some)))) return false
    return true
  }

  /** Processes items in turns of the live lane, in smaller parts where a response is too large. */
  async function inLiveTurns<T>(
    task: ReconcileTask,
    part: readonly T[],
    now: (some: readonly T[]) => Promise<PassResult>,
  ): Promise<boolean> {
    while (await ports.ready()) {
      const outcome = await current.turn(() => now(part))
      if (outcome === 'held') continue
      if (outcome !== 'too-large') return outcome === 'done'
      if (part.length === 1) {
        countTooLarge(task)
        return true
      }
      for (const half of halvesOf(part)) if (!(await inLiveTurns(task, half, now))) return false
      return true
    }
    return false
  }

  /** Fetches the centre's entities, with their foreign attributes if known. */
  async function lookUp(
    task: ReconcileTask,
    heads: readonly Pick<Entity, 'id' | 'type'>[],
  ): Promise<ReadonlyMap<string, LookedUp> | Exclude<PassResult, 'done'>> {
    const isSelvedge = (await live.isSelvedge()) === true
    // The centre may hold an entity under types it no longer has here.
    const types = isSelvedge ? ['*'] : [...new Set(heads.flatMap(({ type }) => listOf(type)))]
    const query = [
      idQuery(heads.map(({ id }) => id)),
      `type=${types.map(encodeURIComponent).join(',')}&limit=${heads.length}&options=sysAttrs`,
    ].join('&')
    const see = (): Promise<Confirmation> =>
      live.confirmAbsent(() => live.request('GET', `/entities?${query}`))
    const answer = await fetchReply(areEntities, see, ports.once)
    if (answer === undefined) return 'held'
    if (answer.isTooLarge === true) return 'too-large'
    const there = answer.json ?? []
    const others = await foreignOf(there.map(({ id }) => id))
    if (isStopped(task)) return 'ended'
    if (others === undefined || following.isHeld()) return 'held'
    return new Map(there.map((entity) => [entity.id, { entity, isForeign: others.get(entity.id) }]))
  }

  /** Also covers changes the live lane has not sent; they would arrive later with older values otherwise. */
  async function compareNow(task: ReconcileTask, part: readonly EntityView[]): Promise<PassResult> {
    const found = await lookUp(
      task,
      part.map((view) => view.entity()),
    )
    if (typeof found === 'string') return found
    const steps = part.flatMap(({ id }) => {
      const view = following.entity(id)
      const there = found.get(id)
      return view === undefined ? [] : comparedSteps(task, view, there?.entity, there?.isForeign)
    })
    return (await send(task, steps)) ? 'done' : 'ended'
  }

  /** Deletes at the centre what was deleted here, except attributes of other clients. */
  async function removeNow(task: ReconcileTask, part: readonly TombstoneRow[]): Promise<PassResult> {
    const found = await lookUp(
      task,
      part.map(({ doc }) => JSON.parse(doc) as Entity),
    )
    if (typeof found === 'string') return found
    const steps = part.flatMap((tombstone) => {
      const there = found.get(tombstone.id)
      if (there === undefined || following.entity(tombstone.id) !== undefined) return []
      const stays = keysToKeep(tombstone.at, there.entity, there.isForeign)
      if (stays === undefined) task.unknown++
      const keys = remoteKeys(there.entity)
      if (stays === undefined || (keys.length > 0 && keys.every((key) => stays.has(key)))) return []
      task.surplus++
      // If foreign attributes are known, all others came from here, whatever the entity had when deleted.
      const ours =
        there.isForeign && keys.filter((key) => lookups.selection.takesAttribute(key.split(' ', 1)[0]!))
      return removalSteps(tombstone, undefined, lookups).map((step) =>
        step.kind === 'remove'
          ? { ...step, had: new Set([...(ours ?? step.had)].filter((key) => !stays.has(key))) }
          : step,
      )
    })
    return (await send(task, steps)) ? 'done' : 'ended'
  }

  async function removeAll(task: ReconcileTask, tombstones: readonly TombstoneRow[]): Promise<boolean> {
    for (const part of idParts(tombstones, ({ id }) => id))
      if (!(await inLiveTurns(task, part, (some) => removeNow(task, some)))) return false
    return true
  }

  function comparedSteps(
    task: ReconcileTask,
    view: EntityView,
    there: Entity | undefined,
    isForeign: IsForeign | undefined,
  ): readonly Step[] {
    const onNewer = (): void => {
      task.newer = (task.newer ?? 0) + 1
    }
    const whole = stepsOfEntity(view, 0, lookups)
    if (whole.length > 0 && !task.isDry) current.markSent(view.id)
    const { placedBefore } = task
    const all = [
      ...(there === undefined
        ? []
        : surplusOf(view, there, { ...ports, isForeign: isForeign ?? (() => true), onNewer })),
      ...differenceOf(whole, there, {
        times: view.times(),
        placedBefore,
        isForeign,
        onNewer,
        isHeld: (key, instance) => digests.holds(view.id, key, instance),
      }),
    ]
    if (there === undefined) task.missing++
    else if (all.length > 0) task.different++
    return all
  }

  /** Attributes of other clients at the centre, if it reports them; undefined if it cannot now. */
  async function foreignOf(all: readonly string[]): Promise<ReadonlyMap<string, IsForeign> | undefined> {
    if (all.length === 0 || (await live.isSelvedge()) !== true) return new Map()
    const theirs = await ports.once(() => requestForeign(all, ports.alias, live.confirmAbsentSelvedge))
    return theirs && new Map([...theirs.keysById].map(([id, keys]) => [id, (key) => keys.includes(key)]))
  }

  async function pages(task: ReconcileTask): Promise<boolean> {
    const page = following.entities(task.after, limits.uplinkEntitiesPerRequest.value)
    const ids = page.flatMap(([, view]) => (isOurs(view) ? [view.id] : []))
    if (!(await compare(task, ids))) return false
    task.compared += ids.length
    const last = page.at(-1)
    if (last === undefined) task.phase = 'deleted'
    task.after = last?.[0] ?? 0
    return true
  }

  /** Pages list existing entities only, so deleted ones are queried separately. */
  async function deleted(task: ReconcileTask): Promise<boolean> {
    const page = following.tombstonesSince(task.after, limits.uplinkEntitiesPerRequest.value)
    const last = page.at(-1)
    const isLast = last === undefined || page.length < limits.uplinkEntitiesPerRequest.value
    const tombstones = page.filter(
      (tombstone) =>
        following.entity(tombstone.id) === undefined &&
        following.tombstonesAfter(tombstone.id, tombstone.n).length === 0 &&
        removalSteps(tombstone, undefined, lookups).length > 0,
    )
    const again = page.flatMap(({ id }) => {
      const now = following.entity(id)
      return now !== undefined && wasRecreated(task, now) && isOurs(now) ? [id] : []
    })
    if (!(await compare(task, again)) || !(await removeAll(task, tombstones))) return false
    if (isLast) {
      const isSelvedge = await ports.until(
        async () => (await centre.isSelvedge()) ?? later('the centre does not report now what it is'),
      )
      if (isSelvedge === undefined || isStopped(task)) return false
      task.phase = isSelvedge ? 'histories' : 'done'
    }
    task.after = isLast ? 0 : last.n
    return true
  }

  const past = createPastPhases({ ...ports, fetchReply, isOurs })
  const phases = { buckets, pages, deleted, ...past, done: ended, cancelled: ended }
  return Object.freeze({
    /** Does the next portion of a task. False when the uplink was closed, or the task ended. */
    portion: (task: ReconcileTask) => phases[task.phase](task),
  })
}

const ended = (): Promise<boolean> => Promise.resolve(true)
