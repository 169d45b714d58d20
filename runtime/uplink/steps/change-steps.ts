/**
 * Translates a log row, or an entity that changed while the uplink was behind, into steps. Names and values
 * are those of the documents. Pure except for lookups.
 */

import type {
  ChangeFeed,
  Followed,
  FollowedChange,
  FollowedObservation,
  FollowedStream,
} from '#broker/changes/change-feed.ts'
import type { DeletedInstance } from '#broker/state/deletions.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { chainOf } from '#ngsi-ld/federation/via.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import {
  type DeletionLookups,
  deletionsAfterPast,
  eraseSteps,
  hasInstance,
  keyOf,
  lastDocument,
  pastHead,
  removalSteps,
  resurrectedDrops,
} from './deletion-steps.ts'
import type { ScopePrefix } from './scope-prefix.ts'
import type { Head, Step } from './step-plan.ts'
import type { UplinkSelection } from './uplink-selection.ts'

export interface ChangeLookups extends Omit<DeletionLookups, 'tombstonesAfter'> {
  readonly streamOf: (s: number) => FollowedStream | undefined
  readonly instanceOf: ChangeFeed['instanceOf']
  /** The last state of a deleted entity, while that is still known. */
  readonly tombstoneOf: (rid: number) => TombstoneRow | undefined
  /** The last state of an entity deleted with a log number, while that is still known. */
  readonly tombstoneAt: (id: string, n: number) => TombstoneRow | undefined
}

/** Creates the lookups of an uplink. */
export const createLookups = (
  following: ChangeFeed,
  { selection, scopePrefix }: { readonly selection: UplinkSelection; readonly scopePrefix: ScopePrefix },
  isThere: (name: string) => boolean,
): ChangeLookups & DeletionLookups => ({
  isFromCentre: (via) => chainOf(via).some(isThere),
  selection,
  scopePrefix,
  streamOf: following.streamOf,
  instanceOf: following.instanceOf,
  entity: following.entity,
  tombstoneAt: following.tombstoneAt,
  tombstoneOf: following.tombstoneOf,
  tombstonesAfter: following.tombstonesAfter,
  deletionsUnder: following.deletionsUnder,
})

/**
 * Steps for a log row. `isPast` says that a later state of the entity was already sent: then the row belongs
 * to the past. So do rows of entities deleted since; their deletion follows later in the log.
 */
export function stepsOf(
  row: Followed,
  isPast: (id: string) => boolean,
  ports: ChangeLookups & DeletionLookups,
): readonly Step[] {
  const { n, what, via } = row
  const at = commitTimeOf(row)
  if (ports.isFromCentre(via)) return []
  if (!('id' in what)) return what.flatMap((one) => stepsOfObservation(one, { n, via, isPast }, ports))
  if (what.kind === 'erased') {
    // The current state was sent with the erasure.
    const now = isPast(what.id) ? undefined : ports.entity(what.id)?.entity()
    const { name = '', dataset = '*' } = what
    return now === undefined ? [] : eraseSteps(now, [{ name, dataset }], ports, via)
  }
  if (what.kind !== 'deleted') return stepsOfChange(what, { at, via, isPast: isPast(what.id) }, ports)
  // A re-created entity that was sent since is not deleted.
  if (isPast(what.id) && ports.entity(what.id) !== undefined) return []
  return removalSteps(ports.tombstoneAt(what.id, n), via, ports)
}

/** Commit time (ms) of a row; for an item of a batch, that of its first item. */
export const commitTimeOf = ({ at, what }: Followed): number => ('id' in what ? what.at : at)

/** Same lookups, caching streams and entities while a batch is read without interruption. */
export function memoized<T extends ChangeLookups>(ports: T): T {
  const streams = new Map<number, FollowedStream | undefined>()
  const views = new Map<string, EntityView | undefined>()
  const drops = new Map<string, readonly DeletedInstance[]>()
  const recall = <K, V>(known: Map<K, V>, key: K, look: (key: K) => V): V => {
    if (!known.has(key)) known.set(key, look(key))
    return known.get(key) as V
  }
  return {
    ...ports,
    streamOf: (s) => recall(streams, s, ports.streamOf),
    deletionsUnder: (id) => recall(drops, id, ports.deletionsUnder),
    entity: (id) => recall(views, id, (one) => parsedOnce(ports.entity(one))),
  }
}

function parsedOnce(view: EntityView | undefined): EntityView | undefined {
  let entity: Entity | undefined
  return view && { ...view, entity: () => (entity ??= view.entity()) }
}

interface RowContext {
  readonly n: number
  readonly via: string | undefined
  readonly isPast: (id: string) => boolean
}

function stepsOfObservation(
  { s, time, value, isLate }: FollowedObservation,
  { n, via, isPast }: RowContext,
  ports: ChangeLookups & DeletionLookups,
): Step[] {
  const { selection, streamOf, instanceOf, entity } = ports
  const stream = streamOf(s)
  if (stream === undefined || !selection.takesAttribute(stream.name)) return []
  const instance = instanceOf(stream, { n, time, value })
  const { id, type, name, mirror } = stream
  const now = selection.dependsOnValues || isPast(id) ? entity(id)?.entity() : undefined
  const was =
    selection.dependsOnValues && stream.isEnded ? lastDocument(ports.tombstoneOf(stream.rid)) : undefined
  if (!selection.takes({ ...(was ?? now ?? { id, type }), [name]: instance })) return []
  const attributes = new Map([[name, [instance]]])
  const step = { entity: { id, type }, attributes, via }
  if (isLate || stream.isEnded || isPast(id)) {
    const back =
      isPast(id) && now !== undefined ? [...resurrectedDrops(now, { id, type, via }, attributes, ports)] : []
    // If it matched the selection when it was deleted, the row of its deletion covers this.
    const gone =
      was === undefined || selection.takes(was)
        ? []
        : deletionsAfterPast({ entity: { id, type }, past: attributes, lost: [] }, ports)
    return [{ kind: 'past', ...step, entity: pastHead({ id, type }, ports) }, ...back, ...gone]
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
  { at, via, isPast }: { readonly at: number; readonly via: string | undefined; readonly isPast: boolean },
  ports: ChangeLookups & DeletionLookups,
): Step[] {
  const { selection, entity } = ports
  const view = entity(change.id)
  const now = view?.entity()
  const tombstone = view === undefined ? ports.tombstoneOf(change.rid) : undefined
  const then = now ?? lastDocument(tombstone)
  const type = change.type ?? then?.type ?? []
  const bornBy = view?.times().attributes['']?.[2] ?? tombstone?.via ?? undefined
  const head = headOf({ ...change, type }, bornBy, ports)
  if (then === undefined || !selection.takes(then)) return []
  // The scope is part of the head, as placed at the centre.
  const instances = change.instances.filter(([name]) => name !== 'scope' && selection.takesAttribute(name))
  const put = new Map<string, AttributeInstance[]>()
  for (const [name, , instance, , since = at] of instances)
    if (instance !== null) put.set(name, [...(put.get(name) ?? []), withModifiedAt(instance, since)])
  const drops = instances.flatMap(([name, dataset, instance, , since = at]): (Step & { kind: 'drop' })[] =>
    instance !== null || ports.isFromCentre(change.via?.[keyOf(name, dataset)])
      ? []
      : [{ kind: 'drop', entity: head, name, dataset, via, at: since }],
  )
  if (change.kind === 'temporal' || isPast || now === undefined) {
    const gone = drops.filter(({ name, dataset }) => now === undefined || !hasInstance(now, name, dataset))
    if (put.size === 0) return gone
    const back = now === undefined || !isPast ? [] : [...resurrectedDrops(now, head, put, ports)]
    return [
      ...gone,
      { kind: 'past', entity: pastHead({ id: change.id, type }, ports), attributes: put, via },
      ...back,
    ]
  }
  if (change.scope === null && head.scope === undefined && !ports.isFromCentre(bornBy))
    drops.push({ kind: 'drop', entity: head, name: 'scope', dataset: '', via })
  const isHeadChanged = change.kind === 'created' || head.statesTypes === true || change.scope != null
  if (put.size > 0 || isHeadChanged || head.scope !== undefined)
    return [...drops, { kind: 'put', entity: head, attributes: put, via }]
  return drops
}

/** The head of an entity in a change; its scope only if that was changed. */
function headOf(
  {
    id,
    type,
    kind,
    scope,
    retyped,
  }: Pick<FollowedChange, 'id' | 'kind' | 'scope' | 'retyped'> & Pick<Head, 'type'>,
  bornBy: string | undefined,
  { scopePrefix, isFromCentre }: Pick<ChangeLookups, 'scopePrefix' | 'isFromCentre'>,
): Head {
  const isThere = isFromCentre(bornBy)
  const sendsScope = kind === 'created' || scope !== undefined
  const placed = sendsScope ? scopePrefix.scope(scope ?? undefined, isThere) : undefined
  const statesTypes = !isThere && (kind === 'created' || retyped === true)
  return {
    id,
    type,
    ...(placed === undefined ? {} : { scope: placed }),
    ...(statesTypes ? { statesTypes } : {}),
  }
}

/** Adds the commit time to an instance that is not an observation. */
const withModifiedAt = (instance: AttributeInstance, at: number): AttributeInstance =>
  instance.observedAt === undefined ? { ...instance, modifiedAt: msToDateTime(at) } : instance

/** Removes the commit time. */
export function withoutTime(instance: AttributeInstance): AttributeInstance {
  if (instance['modifiedAt'] === undefined) return instance
  const { modifiedAt: _, ...rest } = instance
  return rest
}

/**
 * The parts of an entity that changed after a commit time, in their current state: one step for each Via
 * chain, none for what came from the centre.
 */
export function stepsOfEntity(
  view: EntityView,
  since: number,
  { selection, isFromCentre, scopePrefix }: Pick<ChangeLookups, 'selection' | 'isFromCentre' | 'scopePrefix'>,
): readonly Step[] {
  const times = view.times()
  if (times.modified < since) return []
  const entity = view.entity()
  if (!selection.takes(entity)) return []
  const bornBy = times.attributes['']?.[2]
  const byVia = new Map<string | undefined, Map<string, AttributeInstance[]>>()
  if (times.created >= since && !isFromCentre(bornBy)) byVia.set(bornBy, new Map())
  for (const name of attributeNames(entity).filter((one) => selection.takesAttribute(one)))
    for (const instance of instancesOf(entity, name)) {
      const [, modified = times.modified, via] = times.attributes[keyOf(name, instance.datasetId ?? '')] ?? []
      if (modified < since || isFromCentre(via)) continue
      const attributes = byVia.get(via) ?? new Map<string, AttributeInstance[]>()
      attributes.set(name, [...(attributes.get(name) ?? []), withModifiedAt(instance, modified)])
      byVia.set(via, attributes)
    }
  const isThere = isFromCentre(bornBy)
  // Types and scopes have no modification times of their own.
  if (byVia.size === 0 && !isThere) byVia.set(bornBy, new Map())
  const { id, type } = entity
  const scope = scopePrefix.scope(entity.scope, isThere)
  const head: Head = {
    id,
    type,
    ...(scope === undefined ? {} : { scope }),
    ...(isThere ? {} : { statesTypes: true }),
  }
  return [...byVia].map(([via, attributes]) => ({ kind: 'put', entity: head, attributes, via }))
}
