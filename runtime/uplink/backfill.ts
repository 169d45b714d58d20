/**
 * The backfill lane: tells the other broker what was observed in a span of commit times, slice by slice, from chunks and tails.
 * A slice is as long as gives it a good size; of it, one stream is in memory at a time. Entities that were deleted meanwhile
 * go when their history has gone up.
 */
import { limits } from '#base/limits.ts'
import type { FollowedPast, Following } from '#broker/following.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance, Entity } from '#ngsi-ld/entity.ts'
import type { Losses } from './losses.ts'
import type { Attributes, Head, Layer, Step } from './plan.ts'
import { headOfPast, type LeavingPorts, stepsOfGrave } from './reading.ts'
import type { Waiting } from './state.ts'

export interface BackfillPorts {
  readonly following: Following
  readonly reading: LeavingPorts
  readonly losses: Pick<Losses, 'begin' | 'keep' | 'leastSliceMs'>
  /** Sends until it was taken; false when the uplink was closed meanwhile. */
  readonly deliver: (layer: Layer) => Promise<boolean>
  /**
   * Has what is gone go over there, too, after its past was told. The live lane does it in its order, since what is gone
   * may come again meanwhile. False when the uplink was closed.
   */
  readonly settle: (entity: Head, told: Attributes) => Promise<boolean>
}

/** Tells the next slice of a span. Returns where it ends, or undefined when the uplink was closed meanwhile. */
export async function fillSpan(
  span: Waiting,
  sizes: { sliceMs: number },
  ports: BackfillPorts,
): Promise<number | undefined> {
  const { following, reading, losses, deliver, settle } = ports
  losses.begin()
  const { selection } = reading
  const begins = following.firstCommit(span.from) ?? span.to
  const level = span.level ?? 'full'
  const sliceMs = Math.max(sizes.sliceMs, losses.leastSliceMs(level))
  const to = Math.min(span.to, Math.max(span.from + sliceMs, begins))
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
        const all = read().instances.filter((instance) => takes(id, type, stream.name, instance))
        const instances = losses.keep(stream.s, all, level)
        if (instances.length === 0) continue
        attributes.set(stream.name, [...(attributes.get(stream.name) ?? []), ...instances])
        count += instances.length
      }
      if (attributes.size === 0) continue
      const step = { kind: 'past', entity: headOfPast({ id, type }, reading), attributes } as const
      if (!(await deliver({ kind: 'past', steps: [step] }))) return false
      if (!(await settle(step.entity, attributes))) return false
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
    const step = past && stepOfPast(past, reading)
    if (step === undefined) continue
    if (!(await deliver({ kind: 'past', steps: [step] }))) return undefined
    if (!(await settle(step.entity, step.attributes))) return undefined
  }
  for (const grave of following.gravesWithin({ from: span.from, to }))
    for (const { entity } of stepsOfGrave(grave, undefined, reading))
      if (!(await settle(entity, new Map()))) return undefined
  sizes.sliceMs = nextSliceMs(sizes.sliceMs, count)
  return to
}

function stepOfPast(
  { id, type, instances }: FollowedPast,
  reading: LeavingPorts,
): (Step & { kind: 'put' | 'past' }) | undefined {
  const { selection } = reading
  const attributes = new Map<string, AttributeInstance[]>()
  for (const [name, instance, at] of instances) {
    if (!selection.takesAttribute(name)) continue
    if (!selection.dependsOnValues && !selection.takes({ id, type })) continue
    const told = instance.observedAt === undefined ? { ...instance, modifiedAt: msToDateTime(at) } : instance
    attributes.set(name, [...(attributes.get(name) ?? []), told])
  }
  return attributes.size === 0
    ? undefined
    : { kind: 'past', entity: headOfPast({ id, type }, reading), attributes }
}

/** Longer after few observations, shorter after many. */
function nextSliceMs(sliceMs: number, count: number): number {
  const good = limits.uplinkSliceObservations.value
  if (count > 2 * good) return Math.max(limits.uplinkSliceMs.value / 16, sliceMs / 2)
  return count < good / 2 ? Math.min(limits.uplinkSliceMsMax.value, sliceMs * 2) : sliceMs
}
