/**
 * What one log row, or an entity that changed while nobody followed, means for the other broker, as steps. Names and
 * values are those of the documents. Pure but for looking up what a row points to.
 */
import type {
  Dropped,
  Followed,
  FollowedChange,
  FollowedObservation,
  FollowedStream,
  Following,
} from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/datetime.ts'
import { type AttributeInstance, attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { chainOf } from '#ngsi-ld/via.ts'
import type { TombstoneRow } from '#store/entities.ts'
import type { Placing } from './placing.ts'
import type { Attributes, Came, Head, Step, Went } from './plan.ts'
import type { UplinkSelection } from './selection.ts'

export interface ReadingPorts {
  readonly selection: UplinkSelection
  readonly streamOf: (s: number) => FollowedStream | undefined
  readonly instanceOf: Following['instanceOf']
  readonly entity: (id: string) => EntityView | undefined
  /** What an entity was when it was deleted, as far as that is still known. */
  readonly graveOf: (rid: number) => TombstoneRow | undefined
  /** All that went of what ever was under an id, the last at the end. */
  readonly droppedOf: Following['droppedOf']
  /** What an entity was when it was deleted with a log number, as far as that is still known. */
  readonly grave: (id: string, n: number) => TombstoneRow | undefined
  /** Whether something that came by a chain of brokers came from where it would go. */
  readonly isFromThere: (heard: string | undefined) => boolean
  readonly placing: Placing
}

/** What is read of what happened, for an uplink of a selection. */
export const readingOf = (
  following: Following,
  { selection, placing }: { readonly selection: UplinkSelection; readonly placing: Placing },
  isThere: (name: string) => boolean,
): ReadingPorts & LeavingPorts => ({
  isFromThere: (heard) => chainOf(heard).some(isThere),
  ...{ selection, placing, streamOf: following.streamOf, instanceOf: following.instanceOf },
  ...{ entity: following.entity, grave: following.graveAt, graveOf: following.graveOf },
  ...{ gravesAfter: following.gravesAfter, droppedOf: following.droppedOf },
})

/**
 * `isPast` tells that an entity was told as it is since then: then a row belongs to its past. So do rows of what is gone
 * since; that it went comes later in the log.
 */
export function stepsOf(
  row: Followed,
  isPast: (id: string) => boolean,
  ports: ReadingPorts & LeavingPorts,
): readonly Step[] {
  const { n, what, heard } = row
  const at = datedAt(row)
  if (ports.isFromThere(heard)) return []
  if (!('id' in what)) return what.flatMap((one) => stepsOfObservation(one, { n, heard, isPast }, ports))
  if (what.kind !== 'deleted') return stepsOfChange(what, { at, heard, isPast: isPast(what.id) }, ports)
  // One that came again and was told since then stays.
  if (isPast(what.id) && ports.entity(what.id) !== undefined) return []
  return stepsOfGrave(ports.grave(what.id, n), heard, ports)
}

/** The commit time (ms) that what a row says bears: of an item of a batch that of the first one. */
export const datedAt = ({ at, what }: Followed): number => ('id' in what ? what.at : at)

/** The same for what is read without a pause: streams and entities are looked up once. */
export function rememberedOnce<T extends ReadingPorts>(ports: T): T {
  const streams = new Map<number, FollowedStream | undefined>()
  const views = new Map<string, EntityView | undefined>()
  const drops = new Map<string, readonly Dropped[]>()
  const recall = <K, V>(known: Map<K, V>, key: K, look: (key: K) => V): V => {
    if (!known.has(key)) known.set(key, look(key))
    return known.get(key) as V
  }
  return {
    ...ports,
    streamOf: (s) => recall(streams, s, ports.streamOf),
    droppedOf: (id) => recall(drops, id, ports.droppedOf),
    entity: (id) => recall(views, id, (one) => parsedOnce(ports.entity(one))),
  }
}

function parsedOnce(view: EntityView | undefined): EntityView | undefined {
  let entity: Entity | undefined
  return view && { ...view, entity: () => (entity ??= view.entity()) }
}

interface Passing {
  readonly n: number
  readonly heard: string | undefined
  readonly isPast: (id: string) => boolean
}

function stepsOfObservation(
  { s, time, value, isLate }: FollowedObservation,
  { n, heard, isPast }: Passing,
  ports: ReadingPorts & LeavingPorts,
): Step[] {
  const { selection, streamOf, instanceOf, entity } = ports
  const stream = streamOf(s)
  if (stream === undefined || !selection.takesAttribute(stream.name)) return []
  const instance = instanceOf(stream, { n, time, value })
  const { id, type, name, mirror } = stream
  const now = selection.dependsOnValues || isPast(id) ? entity(id)?.entity() : undefined
  const was = selection.dependsOnValues && stream.isGone ? buriedIn(ports.graveOf(stream.rid)) : undefined
  if (!selection.takes({ ...(was ?? now ?? { id, type }), [name]: instance })) return []
  const attributes = new Map([[name, [instance]]])
  const step = { entity: { id, type }, attributes, heard }
  if (isLate || stream.isGone || isPast(id)) {
    const back =
      isPast(id) && now !== undefined ? [...broughtBack(now, { id, type, heard }, attributes, ports)] : []
    // Where it met the selection when it was deleted, the row of that tells it.
    const gone =
      was === undefined || selection.takes(was)
        ? []
        : leavesOf({ entity: { id, type }, told: attributes, lost: [] }, ports)
    return [{ kind: 'past', ...step, entity: headOfPast({ id, type }, ports) }, ...back, ...gone]
  }
  const shown = mirror === undefined ? undefined : entity(id)?.entity()[mirror]
  if (
    mirror === undefined ||
    shown === undefined ||
    Array.isArray(shown) ||
    !selection.takesAttribute(mirror)
  )
    return [{ kind: 'put', ...step }]
  attributes.set(mirror, [{ ...(shown as AttributeInstance), value: msToDateTime(time) }])
  return [{ kind: 'put', ...step, mirror }]
}

function stepsOfChange(
  change: FollowedChange,
  {
    at,
    heard,
    isPast,
  }: { readonly at: number; readonly heard: string | undefined; readonly isPast: boolean },
  ports: ReadingPorts & LeavingPorts,
): Step[] {
  const { selection, entity } = ports
  const view = entity(change.id)
  const now = view?.entity()
  const grave = view === undefined ? ports.graveOf(change.rid) : undefined
  const then = now ?? buriedIn(grave)
  const type = change.type ?? then?.type ?? []
  const bornBy = view?.times().attributes['']?.[2] ?? grave?.heard ?? undefined
  const head = headOf({ ...change, type }, bornBy, ports)
  if (then === undefined || !selection.takes(then)) return []
  const put = new Map<string, AttributeInstance[]>()
  const past = new Map<string, AttributeInstance[]>()
  const drops: (Step & { kind: 'drop' })[] = []
  for (const [name, dataset, instance, , since = at] of change.instances) {
    // Where an entity stood is not told: over there it stands where it is placed now.
    if (name === 'scope' || !selection.takesAttribute(name)) continue
    if (instance !== null) {
      put.set(name, [...(put.get(name) ?? []), instance])
      past.set(name, [...(past.get(name) ?? []), dated(instance, since)])
    } else if (!ports.isFromThere(change.heard?.[keyOf(name, dataset)]))
      drops.push({ kind: 'drop', entity: head, name, dataset, heard, at: since })
  }
  if (change.kind === 'temporal' || isPast || now === undefined) {
    const gone = drops.filter(({ name, dataset }) => now === undefined || !hasInstance(now, name, dataset))
    if (put.size === 0) return gone
    const back = now === undefined || !isPast ? [] : [...broughtBack(now, head, put, ports)]
    return [
      ...gone,
      { kind: 'past', entity: headOfPast({ id: change.id, type }, ports), attributes: past, heard },
      ...back,
    ]
  }
  if (change.scope === null && head.scope === undefined && !ports.isFromThere(bornBy))
    drops.push({ kind: 'drop', entity: head, name: 'scope', dataset: '', heard })
  if (put.size > 0 || change.kind === 'created' || change.scope != null || head.scope !== undefined)
    return [...drops, { kind: 'put', entity: head, attributes: put, heard }]
  return drops
}

const buriedIn = (grave: TombstoneRow | undefined): Entity | undefined =>
  grave && (JSON.parse(grave.doc) as Entity)

/** What is told of the past of an entity: one that is gone is created by it, and has the scope that it had. */
export function headOfPast(
  { id, type }: Head,
  { entity, gravesAfter, isFromThere, placing }: PlacingPorts,
): Head {
  const grave = entity(id) === undefined ? gravesAfter(id, 0).at(-1) : undefined
  if (grave === undefined) return { id, type }
  const was = JSON.parse(grave.doc) as Entity
  const scope = placing.scope(was.scope, isFromThere(grave.heard ?? undefined))
  return { id, type, ...(scope === undefined ? {} : { scope }) }
}

/** What an entity is, as a change says it: its scope only where that was touched. */
function headOf(
  { id, type, kind, scope }: Pick<FollowedChange, 'id' | 'kind' | 'scope'> & Pick<Head, 'type'>,
  bornBy: string | undefined,
  { placing, isFromThere }: Pick<ReadingPorts, 'placing' | 'isFromThere'>,
): Head {
  const isTold = kind === 'created' || scope !== undefined
  const placed = isTold ? placing.scope(scope ?? undefined, isFromThere(bornBy)) : undefined
  return { id, type, ...(placed === undefined ? {} : { scope: placed }) }
}

/** What was not observed gets the time of its writing. */
const dated = (instance: AttributeInstance, at: number): AttributeInstance =>
  instance.observedAt === undefined ? { ...instance, modifiedAt: msToDateTime(at) } : instance

export interface LeavingPorts
  extends Pick<ReadingPorts, 'entity' | 'selection' | 'isFromThere' | 'placing' | 'droppedOf'> {
  readonly gravesAfter: Following['gravesAfter']
}

/** By which it is known where an entity is, or was. */
export type PlacingPorts = Pick<LeavingPorts, 'entity' | 'gravesAfter' | 'isFromThere' | 'placing'>

/** What is to go of an entity where it is not there any more. */
export interface Leaving {
  readonly entity: Head
  /** What was told of its past. */
  readonly told: Attributes
  /** What it lost before it was deleted, as `name` or `name datasetId`. */
  readonly lost: readonly string[]
}

/** Steps by which goes what was told of an entity, or it lost, and is not there any more. */
export function leavesOf({ entity, told, lost }: Leaving, ports: LeavingPorts): readonly Step[] {
  const now = ports.entity(entity.id)?.entity()
  // What came again is told without what it was, when that is told.
  if (now !== undefined) return [...broughtBack(now, entity, told, ports)]
  const graves = ports.gravesAfter(entity.id, 0)
  const grave = graves.at(-1)
  const back = [...told].flatMap(([name, all]) => all.map(({ datasetId = '' }) => keyOf(name, datasetId)))
  const steps: readonly Step[] =
    grave === undefined
      ? [{ kind: 'remove', entity, had: new Set() }]
      : told.size + lost.length > 0
        ? removalOf(grave, undefined, ports)
        : stepsOfGrave(grave, undefined, ports)
  // What it was before it came again and went for good is there, too, where neither was told.
  const before = graves.flatMap((one) => stepsOfGrave(one, undefined, ports))
  const had = [...before, ...steps].flatMap((step) => (step.kind === 'remove' ? [...step.had] : []))
  const seen = seenOf([...told.values()].flat()) ?? 0
  return steps.map((step) =>
    step.kind === 'remove'
      ? { ...step, had: new Set([...had, ...back, ...lost]), seen: Math.max(step.seen ?? 0, seen) }
      : step,
  )
}

/**
 * Steps by which goes what an entity was before it came again, as far as it is not that now. It stays where it can: its
 * values may have gone up already.
 */
export function endsOf(
  head: Head,
  now: Entity,
  {
    graves,
    ...ports
  }: Pick<ReadingPorts, 'selection' | 'isFromThere'> & {
    readonly graves: readonly TombstoneRow[]
  },
): readonly Step[] {
  return graves.flatMap((grave) => {
    const was = JSON.parse(grave.doc) as Entity
    const ends = stepsOfGrave(grave, undefined, ports)
    if (ends.length === 0 || String(was.type) !== String(now.type)) return ends
    return attributeNames(was)
      .filter((name) => ports.selection.takesAttribute(name))
      .flatMap((name) =>
        instancesOf(was, name)
          .filter(({ datasetId = '' }) => !hasInstance(now, name, datasetId))
          .map(
            ({ datasetId = '' }): Step => ({
              ...{ kind: 'drop', entity: head, name, dataset: datasetId, at: grave.at },
            }),
          ),
      )
  })
}

/** Drops of what an entity has no more and the past of it brings back. */
function* broughtBack(
  now: Entity,
  { heard, ...entity }: Head & Came,
  told: Attributes,
  { droppedOf }: Pick<ReadingPorts, 'droppedOf'>,
): Generator<Step> {
  for (const [name, instances] of told) {
    const datasets = new Set(
      instances.flatMap(({ observedAt, datasetId = '' }) => (observedAt === undefined ? [] : [datasetId])),
    )
    for (const dataset of datasets) {
      if (hasInstance(now, name, dataset)) continue
      const key = keyOf(name, dataset)
      const at = droppedOf(entity.id).findLast((one) => one.key === key)?.at
      yield { kind: 'drop', entity, name, dataset, heard, at, seen: seenOf(instances) }
    }
  }
}

/** That an attribute instance goes, which is named as `keyOf` does. */
export function dropOf(entity: Head, key: string, went: Went & Came): Step {
  const [name = '', dataset = ''] = key.split(' ')
  return { kind: 'drop', entity, name, dataset, ...went }
}

/** How an attribute instance is named. */
export const keyOf = (name: string, dataset: string): string => (dataset === '' ? name : `${name} ${dataset}`)

/**
 * That an entity is gone, which is told where it was selected as it was last. What came from where it would go stays there, and
 * so does what this gateway did not send.
 */
export function stepsOfGrave(
  grave: TombstoneRow | undefined,
  heard: string | undefined,
  ports: Pick<ReadingPorts, 'selection' | 'isFromThere'>,
): readonly Step[] {
  const was = buriedIn(grave)
  return was === undefined || !ports.selection.takes(was) ? [] : removalOf(grave!, heard, ports)
}

/** The same of what is there, whatever it was last. */
function removalOf(
  grave: TombstoneRow,
  heard: string | undefined,
  { selection, isFromThere }: Pick<ReadingPorts, 'selection' | 'isFromThere'>,
): readonly Step[] {
  if (isFromThere(grave.heard ?? undefined)) return []
  const was = JSON.parse(grave.doc) as Entity
  const { id, type } = was
  const had = new Set(instanceKeys(was).filter((key) => selection.takesAttribute(key.split(' ', 1)[0]!)))
  const seen = seenOf(attributeNames(was).flatMap((name) => instancesOf(was, name)))
  return [{ kind: 'remove', entity: { id, type }, had, heard, at: grave.at, seen }]
}

/** The latest time (ms) at which any of these was observed. */
function seenOf(instances: readonly AttributeInstance[]): number | undefined {
  const times = instances.flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.max(a, b))
}

/** All attribute instances of an entity, as `name` or `name datasetId`. */
export const instanceKeys = (entity: Entity): readonly string[] =>
  attributeNames(entity).flatMap((name) =>
    instancesOf(entity, name).map(({ datasetId = '' }) => keyOf(name, datasetId)),
  )

const hasInstance = (entity: Entity, name: string, dataset: string): boolean =>
  instancesOf(entity, name).some(({ datasetId = '' }) => datasetId === dataset)

/**
 * What of an entity became something else after a commit time, as it is now: a step for each way by which it came, none for
 * what came from where it would go.
 */
export function stepsOfEntity(
  view: EntityView,
  since: number,
  { selection, isFromThere, placing }: Pick<ReadingPorts, 'selection' | 'isFromThere' | 'placing'>,
): readonly Step[] {
  const times = view.times()
  if (times.modified < since) return []
  const entity = view.entity()
  if (!selection.takes(entity)) return []
  const bornBy = times.attributes['']?.[2]
  const byWay = new Map<string | undefined, Map<string, AttributeInstance[]>>()
  if (times.created >= since && !isFromThere(bornBy)) byWay.set(bornBy, new Map())
  for (const name of attributeNames(entity)) {
    if (!selection.takesAttribute(name)) continue
    for (const instance of instancesOf(entity, name)) {
      const [, modified, heard] = times.attributes[keyOf(name, instance.datasetId ?? '')] ?? []
      if ((modified ?? times.modified) < since || isFromThere(heard)) continue
      const attributes = byWay.get(heard) ?? new Map<string, AttributeInstance[]>()
      attributes.set(name, [...(attributes.get(name) ?? []), instance])
      byWay.set(heard, attributes)
    }
  }
  // Types and scopes have no times of their own.
  if (byWay.size === 0 && bornBy === undefined) byWay.set(undefined, new Map())
  const { id, type } = entity
  const scope = placing.scope(entity.scope, isFromThere(bornBy))
  const head = { id, type, ...(scope === undefined ? {} : { scope }) }
  return [...byWay].map(([heard, attributes]) => ({
    ...{ kind: 'put', entity: head, attributes, heard },
  }))
}
