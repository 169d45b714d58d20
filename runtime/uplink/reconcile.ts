/**
 * Comparing what went up with what the other broker holds, and sending the difference. A gateway like this one tells digests,
 * which narrow it down: entities by buckets of their ids, histories by days. Any other broker is asked for the entities
 * page by page. One portion is in memory at a time, and how far it is is part of the uplink's state, so it survives a
 * restart. Nothing that is newer over there is touched, and nothing is deleted but what was deleted here.
 */
import { limits } from '#base/limits.ts'
import type { Digests, HistoryDigests } from '#broker/digests.ts'
import type { Following, Span } from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import { toIdList } from '#ngsi-ld/digest.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import { listOf } from '#ngsi-ld/json.ts'
import { areEntities, type Seen } from './absence.ts'
import type { Centre } from './centre.ts'
import { differenceOf, type IsOthers, surplusOf } from './difference.ts'
import type { Ghosts } from './ghosts.ts'
import { idParts, idQuery } from './id-parts.ts'
import { halvesOf, type Outcome } from './outcome.ts'
import type { Head, Layer, Step } from './plan.ts'
import type { Present, Stand } from './present.ts'
import { headOfPast, type LeavingPorts, stepsOfEntity, stepsOfGrave } from './reading.ts'
import { areBuckets, areHistories, areOthers, isBucket, type Told, toldBy } from './told.ts'

/** How far a comparison is, and what it found. */
export interface ReconcileTask {
  phase: 'buckets' | 'pages' | 'histories' | 'graves' | 'done' | 'cancelled'
  /** The row of the last entity that was compared, or the number by which the last one was deleted. */
  after: number
  readonly isDry: boolean
  readonly reason: 'asked' | 'long-cut' | 'restored' | 'scope'
  /** Where all stood over there before the settings said otherwise. */
  readonly placedBefore?: string | undefined
  readonly startedAt: number
  endedAt?: number
  compared: number
  /** Entities that are not over there, or not as they are here. */
  missing: number
  different: number
  /** Attribute instances that are newer over there, and stay. */
  newer?: number
  /** Entities, and histories of entities, of which there is no telling, because alone they are more than one answer may hold. */
  tooLarge?: number
  /** Entities over there that were deleted here. */
  surplus: number
  /** Entities over there that came from here, of which nothing is known here; they stay. */
  unknown: number
  /** Days of an attribute whose history differs, and observations of them that were sent. */
  days: number
  observations: number
}

export const newTask = (
  now: number,
  {
    isDry = false,
    reason,
    placedBefore,
  }: { readonly isDry?: boolean } & Pick<ReconcileTask, 'reason' | 'placedBefore'>,
): ReconcileTask => ({
  ...(placedBefore === undefined ? {} : { placedBefore }),
  ...{ phase: 'buckets', after: -1, isDry, reason, startedAt: now },
  ...{
    compared: 0,
    missing: 0,
    different: 0,
    newer: 0,
    tooLarge: 0,
    surplus: 0,
    unknown: 0,
    days: 0,
    observations: 0,
  },
})

export interface ReconcilePorts {
  readonly following: Following
  readonly digests: Digests
  readonly centre: Centre
  /** The same by the way of the live lane, for what is asked in its stead. */
  readonly live: Centre
  readonly present: Present
  readonly reading: LeavingPorts
  /** Types of entities that go up, where only types decide. */
  readonly types: readonly string[] | undefined
  readonly alias: string
  /** Asks until there is an answer that tells; undefined when the uplink was closed meanwhile. */
  readonly until: <T>(ask: () => Promise<T | (Outcome & { kind: 'later' })>) => Promise<T | undefined>
  /** Settles when something may be sent; with false when the uplink was closed. */
  readonly ready: () => Promise<boolean>
  /** Whether a task was ended, or begun anew, since. */
  readonly isStopped: (task: ReconcileTask) => boolean
  /** Sends until it was taken; false when the uplink was closed meanwhile. */
  readonly deliver: (layer: Layer) => Promise<boolean>
  /** The same of what is current, by the live lane, in whose stead that is. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
  /** Has go what telling of the past brought back over there; false when the uplink was closed. */
  readonly settle: Ghosts['settle']
}

export interface Reconciler {
  /** Does the next portion of a task. False when the uplink was closed, or the task ended, meanwhile. */
  portion(task: ReconcileTask): Promise<boolean>
}

export function createReconciler(ports: ReconcilePorts): Reconciler {
  const { following, digests, centre, live, present, reading, isStopped } = ports
  const isOurs = (view: EntityView): boolean =>
    !reading.isFromThere(view.times().attributes['']?.[2]) && reading.selection.takes(view.entity())

  /** The JSON of an answer of that shape; undefined when a broker says that there is no such thing. */
  const told = <T>(is: (json: unknown) => json is T, see: () => Promise<Seen>) =>
    ports.until<Told<T>>(async () => toldBy(await see(), is))

  const send = async (task: ReconcileTask, steps: readonly Step[]): Promise<boolean> => {
    if (isStopped(task)) return false
    return task.isDry || ports.deliverNow(steps)
  }

  /** Where digests are told, the buckets that differ are compared; else all is, page by page. */
  async function buckets(task: ReconcileTask): Promise<boolean> {
    const chosen = `through=${encodeURIComponent(ports.alias)}${
      ports.types === undefined ? '' : `&type=${ports.types.map(encodeURIComponent).join(',')}`
    }`
    const answer = await told(areBuckets, () => centre.seeOwn(`/selvedge/v1/digests?${chosen}`))
    if (answer === undefined) return false
    const theirs = answer.json?.buckets
    const ours = theirs && (await digests.buckets(isOurs, reading.placing.entity))
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
    const answer = await told(isBucket, () =>
      centre.seeOwn(`/selvedge/v1/digests?bucket=${bucket}&${chosen}`),
    )
    if (answer === undefined) return false
    const theirs = new Map(Object.entries(answer.json?.entities ?? {}))
    const ours = await digests.bucket(bucket, isOurs, reading.placing.entity)
    const others = [...ours].flatMap(([id, hash]) => (theirs.get(id) === hash ? [] : [id]))
    if (!(await compare(task, others))) return false
    return present.turn(() => {
      const steps: Step[] = []
      for (const id of theirs.keys()) {
        if (ours.has(id) || following.entity(id) !== undefined) continue
        const gone = stepsOfGrave(following.gravesAfter(id, 0).at(-1), undefined, reading)
        if (gone.length === 0) task.unknown++
        else task.surplus++
        steps.push(...gone)
      }
      return send(task, steps)
    })
  }

  /** Compares entities with what is over there, and sends what is not there or not the same. */
  async function compare(task: ReconcileTask, ids: readonly string[]): Promise<boolean> {
    const views = ids.flatMap((id) => following.entity(id) ?? [])
    for (const part of idParts(views, ({ id }) => id)) if (!(await comparePart(task, part))) return false
    return true
  }

  async function comparePart(task: ReconcileTask, part: readonly EntityView[]): Promise<boolean> {
    while (await ports.ready()) {
      const outcome = await present.turn(() => compareNow(task, part))
      if (outcome === 'held') continue
      if (outcome !== 'too-large') return outcome === 'done'
      if (part.length === 1) {
        passOver(task)
        return true
      }
      for (const half of halvesOf(part)) if (!(await comparePart(task, half))) return false
      return true
    }
    return false
  }

  /** In the stead of the live lane: what it has not told yet is told by this, and would be older behind it. */
  async function compareNow(
    task: ReconcileTask,
    part: readonly EntityView[],
  ): Promise<'done' | 'ended' | 'held' | 'too-large'> {
    const types = [...new Set(part.flatMap((view) => listOf(view.entity().type)))]
    const query = [
      idQuery(part.map(({ id }) => id)),
      `type=${types.map(encodeURIComponent).join(',')}&limit=${part.length}&options=sysAttrs`,
    ].join('&')
    const answer = await told(areEntities, () => live.see(() => live.ask('GET', `/entities?${query}`)))
    if (answer === undefined) return 'ended'
    if (answer.isTooLarge === true) return 'too-large'
    const there = new Map((answer.json ?? []).map((entity) => [entity.id, entity]))
    const others = await othersOf(part.filter(({ id }) => there.has(id)))
    if (others === undefined || isStopped(task)) return 'ended'
    if (following.isHeld()) return 'held'
    const steps = part.flatMap(({ id }) => {
      const view = following.entity(id)
      return view === undefined ? [] : comparedSteps(task, view, there.get(id), others.get(id))
    })
    return (await send(task, steps)) ? 'done' : 'ended'
  }

  function comparedSteps(
    task: ReconcileTask,
    view: EntityView,
    there: Entity | undefined,
    isOthers: IsOthers = () => true,
  ): readonly Step[] {
    const onNewer = (): void => {
      task.newer = (task.newer ?? 0) + 1
    }
    const whole = stepsOfEntity(view, 0, reading)
    if (whole.length > 0 && !task.isDry) present.mark(view.id)
    const { placedBefore } = task
    const all = [
      ...(there === undefined ? [] : surplusOf(view, there, { ...ports, isOthers, onNewer })),
      ...differenceOf(whole, there, { times: view.times(), placedBefore, isOthers, onNewer }),
    ]
    if (there === undefined) task.missing++
    else if (all.length > 0) task.different++
    return all
  }

  /** What others wrote over there, as far as that is told; undefined when the uplink was closed. */
  async function othersOf(part: readonly EntityView[]): Promise<ReadonlyMap<string, IsOthers> | undefined> {
    if (part.length === 0 || (await live.isSelvedge()) !== true) return new Map()
    const ids = toIdList(part.map(({ id }) => id))
    const question = `/selvedge/v1/digests?others=${encodeURIComponent(ids)}&through=${encodeURIComponent(ports.alias)}`
    const answer = await told(areOthers, () => live.seeOwn(question))
    if (answer === undefined) return undefined
    const all = Object.entries(answer.json?.others ?? {})
    return new Map(all.map(([id, keys]) => [id, (key) => keys.includes(key)]))
  }

  async function pages(task: ReconcileTask): Promise<boolean> {
    const page = following.entities(task.after, limits.uplinkEntitiesPerRequest.value)
    const ids = page.flatMap(([, view]) => (isOurs(view) ? [view.id] : []))
    if (!(await compare(task, ids))) return false
    task.compared += ids.length
    const last = page.at(-1)
    const isLast = last === undefined || page.length < limits.uplinkEntitiesPerRequest.value
    task.phase = isLast ? ((await centre.isSelvedge()) === true ? 'histories' : 'done') : 'pages'
    task.after = isLast ? 0 : last[0]
    return true
  }

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
  async function graves(task: ReconcileTask): Promise<boolean> {
    const page = following.gravesBehind(task.after, limits.reconcileHistories.value)
    const ours = page.flatMap((grave): Head[] => {
      const isLater = following.entity(grave.id) !== undefined
      if (isLater || following.gravesAfter(grave.id, grave.n).length > 0) return []
      const [gone] = stepsOfGrave(grave, undefined, reading)
      return gone === undefined ? [] : [headOfPast(gone.entity, reading)]
    })
    if (!(await historiesOf(task, ours))) return false
    if (task.phase === 'done') return true
    const last = page.at(-1)
    if (last === undefined || page.length < limits.reconcileHistories.value) task.phase = 'done'
    else task.after = last.n
    return true
  }

  const digestsThere = (ids: readonly string[]) =>
    told(areHistories, () => centre.seeOwn(`/selvedge/v1/digests?id=${encodeURIComponent(toIdList(ids))}`))

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
        else passOver(task)
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
  async function tellOwed(id: string): Promise<Stand | undefined> {
    while (await ports.ready()) {
      const stand = await present.turn(async () => {
        if (following.isHeld()) return undefined
        const owed = present.owed(id)
        return (await ports.deliverNow(owed.steps)) ? owed.stand : undefined
      })
      if (stand !== undefined) return stand
    }
    return undefined
  }

  /** Sends the days of a history that are not over there as they are here. */
  async function fill(
    task: ReconcileTask,
    {
      head,
      own,
      there,
    }: { readonly head: Head; readonly own: HistoryDigests; readonly there: HistoryDigests },
  ): Promise<boolean> {
    let stand: Stand | undefined
    for (const [key, days] of Object.entries(own)) {
      const name = key.split(' ', 1)[0]!
      if (!reading.selection.takesAttribute(name)) continue
      for (const [day, [count, sum]] of Object.entries(days)) {
        const theirs = there[key]?.[day]
        if (theirs?.[0] === count && theirs[1] === sum) continue
        task.days++
        if (task.isDry) continue
        if (isStopped(task)) return false
        stand ??= await tellOwed(head.id)
        if (stand === undefined) return false
        const until = stand.newest.get(key) ?? Number.POSITIVE_INFINITY
        const from = dateTimeToMs(`${day}T00:00:00Z`)!
        // What was committed since may have a time that is still to be put right.
        const span = { from, to: from + dayMs, upTo: stand.at }
        for await (const some of digests.observed(head.id, key, span)) {
          if (isStopped(task)) return false
          const instances = some.filter(({ observedAt = '' }) => (dateTimeToMs(observedAt) ?? 0) <= until)
          if (instances.length === 0) continue
          task.observations += instances.length
          const attributes = new Map([[name, instances]])
          const step: Step = { kind: 'past', entity: head, attributes }
          if (!(await ports.deliver({ kind: 'past', steps: [step] }))) return false
          if (!(await ports.settle(head, attributes))) return false
        }
      }
    }
    return true
  }

  const phases = { buckets, pages, histories, graves, ...{ done: ended, cancelled: ended } }
  return Object.freeze({ portion: (task) => phases[task.phase](task) } satisfies Reconciler)
}

function passOver(task: ReconcileTask): void {
  task.tooLarge = (task.tooLarge ?? 0) + 1
}

const ended = (): Promise<boolean> => Promise.resolve(true)
const dayMs = 86_400_000
const allTimes: Span = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER }
