/**
 * What one log row, or an entity that changed while nobody followed, means for the other broker, as steps. Names and
 * values are those of the documents. Pure but for looking up what a row points to.
 */
import type { Followed, FollowedChange, FollowedObservation, FollowedStream } from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import { type AttributeInstance, attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import type { TombstoneRow } from '#store/entities.ts'
import type { Head, Step } from './plan.ts'
import type { UplinkSelection } from './selection.ts'

export interface ReadingPorts {
  readonly selection: UplinkSelection
  readonly streamOf: (s: number) => FollowedStream | undefined
  readonly entity: (id: string) => EntityView | undefined
  /** What an entity was when it was deleted with a log number, as far as that is still known. */
  readonly grave: (id: string, n: number) => TombstoneRow | undefined
  /** Whether something that came by a chain of brokers came from where it would go. */
  readonly isFromThere: (heard: string | undefined) => boolean
}

/** `isPast` tells that newer values of the entity were sent already: then these belong to its past. */
export function stepsOf(
  row: Followed,
  isPast: (rid: number) => boolean,
  ports: ReadingPorts,
): readonly Step[] {
  const { n, what, heard } = row
  if (ports.isFromThere(heard)) return []
  if ('id' in what && what.kind === 'deleted') return stepsOfGrave(ports.grave(what.id, n), heard, ports)
  if ('id' in what) return stepsOfChange(what, { heard, isPast: isPast(what.rid) }, ports)
  return what.flatMap((one) => stepOfObservation(one, { heard, isPast }, ports))
}

function stepOfObservation(
  { s, time, value, isLate }: FollowedObservation,
  { heard, isPast }: { readonly heard: string | undefined; readonly isPast: (rid: number) => boolean },
  { selection, streamOf, entity }: ReadingPorts,
): Step[] {
  const stream = streamOf(s)
  if (stream === undefined || stream.isGone || !selection.takesAttribute(stream.name)) return []
  const instance = fromShape(stream.shape, value, time)
  const { id, type, name, mirror, bornBy } = stream
  const seen = selection.dependsOnValues ? entity(id)?.entity() : ({ id, type } as Entity)
  if (seen === undefined || !selection.takes({ ...seen, [name]: instance })) return []
  const attributes = new Map([[name, [instance]]])
  const step = { entity: { id, type }, attributes, heard, isOwn: bornBy === undefined }
  if (isLate || isPast(stream.rid)) return [{ kind: 'past', ...step }]
  const shown = mirror === undefined ? undefined : entity(id)?.entity()[mirror]
  if (shown !== undefined && !Array.isArray(shown) && selection.takesAttribute(mirror!))
    attributes.set(mirror!, [{ ...(shown as AttributeInstance), value: msToDateTime(time) }])
  return [{ kind: 'put', ...step }]
}

function stepsOfChange(
  change: FollowedChange,
  { heard, isPast }: { readonly heard: string | undefined; readonly isPast: boolean },
  ports: ReadingPorts,
): Step[] {
  const { selection, entity } = ports
  const view = entity(change.id)
  const now = view?.entity()
  const type = change.type ?? now?.type ?? []
  const head: Head = { id: change.id, type, ...(change.scope == null ? {} : { scope: change.scope }) }
  if (now === undefined || !selection.takes(now)) return []
  const came = { heard, isOwn: view!.times().attributes['']?.[2] === undefined }
  const put = new Map<string, AttributeInstance[]>()
  const steps: Step[] = []
  for (const [name, dataset, instance] of change.instances) {
    if (!selection.takesAttribute(name)) continue
    if (instance !== null) put.set(name, [...(put.get(name) ?? []), instance])
    else if (!ports.isFromThere(change.heard?.[keyOf(name, dataset)]))
      steps.push({ kind: 'drop', entity: head, name, dataset, ...came })
  }
  if (change.kind === 'temporal' || isPast) {
    const observed = new Map(
      [...put].map(([name, all]) => [name, all.filter((one) => one.observedAt !== undefined)] as const),
    )
    for (const [name, all] of observed) if (all.length === 0) observed.delete(name)
    const gone = steps.filter((step) => step.kind === 'drop' && !hasInstance(now, step.name, step.dataset))
    return observed.size === 0
      ? gone
      : [...gone, { kind: 'past', entity: head, attributes: observed, ...came }]
  }
  if (put.size > 0 || change.kind === 'created' || change.scope !== undefined)
    steps.push({ kind: 'put', entity: head, attributes: put, ...came })
  return steps
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
  { selection, isFromThere }: Pick<ReadingPorts, 'selection' | 'isFromThere'>,
): readonly Step[] {
  if (grave === undefined || isFromThere(grave.heard ?? undefined)) return []
  const was = JSON.parse(grave.doc) as Entity
  if (!selection.takes(was)) return []
  const { id, type } = was
  const had = new Set(instanceKeys(was).filter((key) => selection.takesAttribute(key.split(' ', 1)[0]!)))
  return [{ kind: 'remove', entity: { id, type }, had, heard }]
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
  { selection, isFromThere }: Pick<ReadingPorts, 'selection' | 'isFromThere'>,
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
  const { id, type, scope } = entity
  const head = { id, type, ...(scope === undefined ? {} : { scope }) }
  return [...byWay].map(([heard, attributes]) => ({
    ...{ kind: 'put', entity: head, attributes, heard, isOwn: bornBy === undefined },
  }))
}
