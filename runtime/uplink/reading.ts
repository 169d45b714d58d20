/**
 * What one log row, or an entity that changed while nobody followed, means for the other broker, as steps. Names and
 * values are those of the documents. Pure but for looking up what a row points to.
 */
import type { Followed, FollowedChange, FollowedObservation, FollowedStream } from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import { type AttributeInstance, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import type { Head, Step } from './plan.ts'
import type { UplinkSelection } from './selection.ts'

export interface ReadingPorts {
  readonly selection: UplinkSelection
  readonly streamOf: (s: number) => FollowedStream | undefined
  readonly entity: (id: string) => EntityView | undefined
  /** Whether a change came from where it would go. */
  readonly isFromThere: (change: FollowedChange) => boolean
}

/** `isPast` tells that newer values of the entity were sent already: then these belong to its past. */
export function stepsOf(row: Followed, isPast: (rid: number) => boolean, ports: ReadingPorts): Step[] {
  const { what } = row
  if ('id' in what) return stepsOfChange(what, isPast(what.rid), ports)
  return what.flatMap((one) => stepOfObservation(one, isPast, ports))
}

function stepOfObservation(
  { s, time, value, isLate }: FollowedObservation,
  isPast: (rid: number) => boolean,
  { selection, streamOf, entity }: ReadingPorts,
): Step[] {
  const stream = streamOf(s)
  if (stream === undefined || stream.isGone || !selection.takesAttribute(stream.name)) return []
  const instance = fromShape(stream.shape, value, time)
  const { id, type, name, mirror } = stream
  const seen = selection.dependsOnValues ? entity(id)?.entity() : ({ id, type } as Entity)
  if (seen === undefined || !selection.takes({ ...seen, [name]: instance })) return []
  const attributes = new Map([[name, [instance]]])
  if (isLate || isPast(stream.rid)) return [{ kind: 'past', entity: { id, type }, attributes }]
  const shown = mirror === undefined ? undefined : entity(id)?.entity()[mirror]
  if (shown !== undefined && !Array.isArray(shown) && selection.takesAttribute(mirror!))
    attributes.set(mirror!, [{ ...(shown as AttributeInstance), value: msToDateTime(time) }])
  return [{ kind: 'put', entity: { id, type }, attributes }]
}

function stepsOfChange(change: FollowedChange, isPast: boolean, ports: ReadingPorts): Step[] {
  const { selection, entity } = ports
  if (ports.isFromThere(change)) return []
  const now = entity(change.id)?.entity()
  const type = change.type ?? now?.type ?? []
  const head: Head = { id: change.id, type, ...(change.scope == null ? {} : { scope: change.scope }) }
  if (change.kind === 'deleted')
    return selection.takes({ id: change.id, type }) || selection.dependsOnValues
      ? [{ kind: 'remove', entity: head }]
      : []
  if (now === undefined || !selection.takes(now)) return []
  const put = new Map<string, AttributeInstance[]>()
  const steps: Step[] = []
  for (const [name, dataset, instance] of change.instances) {
    if (!selection.takesAttribute(name)) continue
    if (instance === null) steps.push({ kind: 'drop', entity: head, name, dataset })
    else put.set(name, [...(put.get(name) ?? []), instance])
  }
  if (change.kind === 'temporal' || isPast) {
    const observed = new Map(
      [...put].map(([name, all]) => [name, all.filter((one) => one.observedAt !== undefined)] as const),
    )
    for (const [name, all] of observed) if (all.length === 0) observed.delete(name)
    const gone = steps.filter((step) => step.kind === 'drop' && !hasInstance(now, step.name, step.dataset))
    return observed.size === 0 ? gone : [...gone, { kind: 'past', entity: head, attributes: observed }]
  }
  if (put.size > 0 || change.kind === 'created' || change.scope !== undefined)
    steps.push({ kind: 'put', entity: head, attributes: put })
  return steps
}

const hasInstance = (entity: Entity, name: string, dataset: string): boolean =>
  instancesOf(entity, name).some(({ datasetId = '' }) => datasetId === dataset)

/** What of an entity became something else after a commit time, as it is now. */
export function stepOfEntity(view: EntityView, since: number, selection: UplinkSelection): Step | undefined {
  const times = view.times()
  if (times.modified < since) return undefined
  const entity = view.entity()
  if (!selection.takes(entity)) return undefined
  const attributes = new Map<string, AttributeInstance[]>()
  for (const name of Object.keys(entity)) {
    if (name === 'id' || name === 'type' || name === 'scope' || !selection.takesAttribute(name)) continue
    const newer = instancesOf(entity, name).filter(({ datasetId }) => {
      const key = datasetId === undefined ? name : `${name} ${datasetId}`
      return (times.attributes[key]?.[1] ?? times.modified) >= since
    })
    if (newer.length > 0) attributes.set(name, newer)
  }
  const { id, type, scope } = entity
  return { kind: 'put', entity: { id, type, ...(scope === undefined ? {} : { scope }) }, attributes }
}
