/**
 * The backfill lane: tells the other broker what was observed in a span of commit times, slice by slice, from chunks and tails.
 * A slice is as long as gives it a good size; of it, one stream is in memory at a time. Entities that were deleted meanwhile
 * go when their history has gone up.
 */
import { limits } from '#base/limits.ts'
import type { FollowedPast, Following, Span } from '#broker/following.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import { type AttributeInstance, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { type Attributes, type Layer, layersOf, type Step } from './plan.ts'
import { keyOf, type ReadingPorts, stepsOfGrave } from './reading.ts'
import type { UplinkSelection } from './selection.ts'

export interface BackfillPorts {
  readonly following: Following
  readonly reading: Pick<ReadingPorts, 'selection' | 'isFromThere'>
  /** Sends until it was taken; false when the uplink was closed meanwhile. */
  readonly deliver: (layer: Layer) => Promise<boolean>
}

/** Tells the next slice of a span. Returns where it ends, or undefined when the uplink was closed meanwhile. */
export async function fillSpan(
  span: Span,
  sizes: { sliceMs: number },
  ports: BackfillPorts,
): Promise<number | undefined> {
  const { following, reading, deliver } = ports
  const { selection } = reading
  const begins = following.firstCommit(span.from) ?? span.to
  const to = Math.min(span.to, Math.max(span.from + sizes.sliceMs, begins))
  const byEntity = Map.groupBy(
    following.observations({ from: span.from, to }).flatMap(([s, read]) => {
      const stream = following.streamOf(s)
      return stream === undefined || !selection.takesAttribute(stream.name) ? [] : [{ stream, read }]
    }),
    ({ stream }) => stream.rid,
  )
  let count = 0
  const waiting = [...byEntity.values()]
  const work = async (): Promise<boolean> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { id, type } = next[0]!.stream
      const attributes = new Map<string, AttributeInstance[]>()
      for (const { stream, read } of next) {
        const instances = read().instances.filter((instance) => takes(id, type, stream.name, instance))
        if (instances.length === 0) continue
        attributes.set(stream.name, [...(attributes.get(stream.name) ?? []), ...instances])
        count += instances.length
      }
      if (attributes.size === 0) continue
      const step: Step = { kind: 'past', entity: { id, type }, attributes }
      if (!(await deliver({ kind: 'past', steps: [step] }))) return false
      if (!(await takeBack(step, { from: to, to: span.to }, ports))) return false
    }
    return true
  }
  /** Asked with what the entity is now, and the value as it was. */
  const takes = (id: string, type: Entity['type'], name: string, instance: AttributeInstance): boolean => {
    const seen = selection.dependsOnValues ? following.entity(id)?.entity() : undefined
    return selection.takes({ ...(seen ?? { id, type }), [name]: instance })
  }
  const workers = await Promise.all(Array.from({ length: limits.uplinkRequestsInFlight.value }, work))
  if (workers.includes(false)) return undefined
  for (const read of following.changes({ from: span.from, to })) {
    const past = read()
    const step = past && stepOfPast(past, selection)
    if (step === undefined) continue
    if (!(await deliver({ kind: 'past', steps: [step] }))) return undefined
    if (!(await takeBack(step, { from: to, to: span.to }, ports))) return undefined
  }
  const gone = following
    .gravesWithin({ from: span.from, to })
    .filter(({ id }) => following.entity(id) === undefined)
    .flatMap((grave) => stepsOfGrave(grave, undefined, reading))
  for (const layer of layersOf(gone)) if (!(await deliver(layer))) return undefined
  sizes.sliceMs = nextSliceMs(sizes.sliceMs, count)
  return to
}

const keysOf = (attributes: Attributes): readonly string[] =>
  [...attributes].flatMap(([name, instances]) =>
    instances.map(({ datasetId = '' }) => keyOf(name, datasetId)),
  )

/** Instances, by attribute and dataset, that an entity does not have. */
function goneFrom(
  now: Entity,
  attributes: Attributes,
): readonly (readonly [name: string, dataset: string])[] {
  return [...attributes].flatMap(([name, instances]) => {
    const there = new Set(instancesOf(now, name).map(({ datasetId = '' }) => datasetId))
    const told = new Set(instances.map(({ datasetId = '' }) => datasetId))
    return [...told].filter((dataset) => !there.has(dataset)).map((dataset) => [name, dataset] as const)
  })
}

/** What was told of the past made something be there that is not any more. `rest` is what is still to be told. */
async function takeBack(
  step: Step,
  rest: Span,
  { following, reading, deliver }: BackfillPorts,
): Promise<boolean> {
  if (step.kind !== 'past') return true
  const { entity, attributes } = step
  const now = following.entity(entity.id)?.entity()
  if (now === undefined) {
    // One whose end is still to be told goes then.
    if (following.gravesWithin(rest).some(({ id }) => id === entity.id)) return true
    const grave = following.graveAfter(entity.id, 0)
    const had = new Set(keysOf(attributes))
    const gone: readonly Step[] =
      grave === undefined ? [{ kind: 'remove', entity, had }] : stepsOfGrave(grave, undefined, reading)
    for (const layer of layersOf(gone)) if (!(await deliver(layer))) return false
    return true
  }
  const drops = goneFrom(now, attributes).map(
    ([name, dataset]): Step => ({ kind: 'drop', entity, name, dataset }),
  )
  if (drops.length === 0) return true
  if (!(await deliver({ kind: 'drop', steps: drops }))) return false
  // It may have come again while this was under way.
  const after = following.entity(entity.id)?.entity()
  if (after === undefined || goneFrom(after, attributes).length === drops.length) return true
  const back = [...attributes.keys()].map((name) => [name, instancesOf(after, name)] as const)
  const put: Step = { kind: 'put', entity, attributes: new Map(back.filter(([, all]) => all.length > 0)) }
  return deliver({ kind: 'put', steps: [put] })
}

function stepOfPast({ id, type, instances }: FollowedPast, selection: UplinkSelection): Step | undefined {
  const attributes = new Map<string, AttributeInstance[]>()
  for (const [name, instance, at] of instances) {
    if (!selection.takesAttribute(name)) continue
    if (!selection.dependsOnValues && !selection.takes({ id, type })) continue
    const told = instance.observedAt === undefined ? { ...instance, modifiedAt: msToDateTime(at) } : instance
    attributes.set(name, [...(attributes.get(name) ?? []), told])
  }
  return attributes.size === 0 ? undefined : { kind: 'past', entity: { id, type }, attributes }
}

/** Longer after few observations, shorter after many. */
function nextSliceMs(sliceMs: number, count: number): number {
  const good = limits.uplinkSliceObservations.value
  if (count > 2 * good) return Math.max(limits.uplinkSliceMs.value / 16, sliceMs / 2)
  return count < good / 2 ? Math.min(limits.uplinkSliceMsMax.value, sliceMs * 2) : sliceMs
}
