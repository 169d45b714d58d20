/**
 * The backfill lane: sends the observations that were committed in a span of time, slice by slice. It reads
 * them from chunks (folded history) and tails (observations that are not folded yet). The slice length adapts
 * to a target size; only the columns of a few streams and a few requests are in memory.
 *
 * Sending the history of an entity that was deleted here re-creates the entity at the centre. Once the
 * history of its slice is sent, the entity is deleted there again.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { ChangeFeed, FollowedPast, FollowedStream } from '#broker/changes/change-feed.ts'
import type { CommittedPart } from '#broker/history/committed-part.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { Level } from '#uplink/progress/budget.ts'
import type { Losses } from '#uplink/progress/losses.ts'
import type { PendingSpan } from '#uplink/progress/uplink-state.ts'
import { type DeletionLookups, pastHead, removalSteps } from '#uplink/steps/deletion-steps.ts'
import type { Attributes, Head, Layer, Step } from '#uplink/steps/step-plan.ts'

export interface BackfillPorts {
  readonly following: ChangeFeed
  readonly lookups: DeletionLookups
  readonly losses: Pick<Losses, 'begin' | 'keep' | 'leastSliceMs'>
  /** Sends until accepted; false when the uplink was closed. */
  readonly deliver: (layer: Layer) => Promise<boolean>
  /**
   * Deletes at the centre what sending the past of a deleted entity resurrected. The live lane does this in
   * its own order, because the entity may be re-created meanwhile. False when the uplink was closed.
   */
  readonly ensureDeleted: (entity: Head, past: Attributes, lost?: readonly string[]) => Promise<boolean>
  /**
   * Ensures that the centre holds a matching entity in full before its past is sent. False when the uplink
   * was closed.
   */
  readonly ensureSynced: (id: string, values: Attributes) => Promise<boolean>
  readonly yieldIfDue: YieldIfDue
}

/** Sends the next slice of a span. Returns its end, or undefined when the uplink was closed. */
export async function fillSpan(
  span: PendingSpan,
  sizes: { sliceMs: number },
  ports: BackfillPorts,
): Promise<number | undefined> {
  const { following, lookups, losses, ensureDeleted, yieldIfDue } = ports
  losses.begin(span.from)
  const { selection } = lookups
  const begins = following.firstCommit(span.from) ?? span.to
  const level = span.level ?? 'full'
  const sliceMs = Math.max(sizes.sliceMs, losses.leastSliceMs(level))
  const to = Math.min(span.to, Math.max(span.from + sliceMs, begins))
  span.read = to
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
      const sent = await sendStreams(next, level, ports)
      if (sent === undefined) return false
      count += sent
    }
    return true
  }
  const workers = await Promise.all(Array.from({ length: limits.uplinkRequestsInFlight.value }, work))
  if (workers.includes(false)) return undefined
  for (const read of following.changes({ from: span.from, to })) {
    await yieldIfDue()
    const past = read()
    if (past !== undefined && !(await sendPast(past, ports))) return undefined
  }
  // Deletions of one id are handled together, however often it was re-created.
  const gone = new Map(
    following.tombstonesBetween({ from: span.from, to }).map((tombstone) => [tombstone.id, tombstone]),
  )
  for (const tombstone of gone.values())
    for (const { entity } of removalSteps(tombstone, undefined, lookups))
      if (!(await ensureDeleted(entity, new Map()))) return undefined
  sizes.sliceMs = nextSliceMs(sizes.sliceMs, count)
  return to
}

interface Part {
  readonly stream: FollowedStream
  readonly read: (yieldIfDue: YieldIfDue) => Promise<CommittedPart>
}

/**
 * Sends the streams of one entity in requests of bounded size. Returns the number of observations sent, or
 * undefined when the uplink was closed.
 */
async function sendStreams(
  parts: readonly Part[],
  level: Level,
  ports: BackfillPorts,
): Promise<number | undefined> {
  const { lookups, losses, deliver, ensureDeleted, ensureSynced, yieldIfDue } = ports
  const { id, type } = parts[0]!.stream
  const entity = pastHead({ id, type }, lookups)
  /**
   * The last instance of each stream: identifies a resurrected attribute and the time of its last
   * observation.
   */
  const lastByName = new Map<string, AttributeInstance[]>()
  let count = 0
  let request = new Map<string, AttributeInstance[]>()
  let room = limits.uplinkInstancesPerRequest.value
  const send = async (): Promise<boolean> => {
    if (request.size === 0) return true
    const step = { kind: 'past', entity, attributes: request } as const
    request = new Map()
    room = limits.uplinkInstancesPerRequest.value
    if (!(await ensureSynced(id, step.attributes))) return false
    return deliver({ kind: 'past', steps: [step] })
  }
  for (const { stream, read } of parts) {
    const { name } = stream
    const part = await read(yieldIfDue)
    const places = losses.keep(part, await placesOf(stream, part, ports), level)
    for (const place of places) {
      const instance = part.instanceAt(place)
      const known = request.get(name)
      if (known === undefined) request.set(name, [instance])
      else known.push(instance)
      if (--room > 0) continue
      if (!(await send())) return undefined
      await yieldIfDue()
    }
    if (places.length > 0)
      lastByName.set(name, [...(lastByName.get(name) ?? []), part.instanceAt(places.at(-1)!)])
    count += places.length
  }
  if (!(await send())) return undefined
  if (lastByName.size > 0 && !(await ensureDeleted(entity, lastByName))) return undefined
  return count
}

/** Sends past values of an entity that are not observations. False when the uplink was closed. */
async function sendPast(past: FollowedPast, ports: BackfillPorts): Promise<boolean> {
  const { deliver, ensureDeleted, ensureSynced } = ports
  const lost = lostOf(past, ports)
  const step = stepOfPast(past, ports)
  if (step === undefined)
    return lost.length === 0 || ensureDeleted(pastHead(past, ports.lookups), new Map(), lost)
  const { entity, attributes } = step
  if (!(await ensureSynced(entity.id, attributes))) return false
  return (await deliver({ kind: 'past', steps: [step] })) && ensureDeleted(entity, attributes, lost)
}

/**
 * Attributes an entity lost before it was deleted. If the entity exists or was re-created, the live lane
 * sends their deletion.
 */
function lostOf(
  { id, rid, dropped }: FollowedPast,
  { following, lookups: { selection, isFromCentre } }: Pick<BackfillPorts, 'following' | 'lookups'>,
): readonly string[] {
  const then =
    dropped.length === 0 || following.entityWithRid(id) !== undefined ? undefined : following.lastState(rid)
  if (then === undefined || !selection.takes(then)) return []
  const ours = dropped.filter(
    ({ name, via }) => name !== 'scope' && selection.takesAttribute(name) && !isFromCentre(via),
  )
  return [...new Set(ours.map(({ key }) => key))]
}

/**
 * Indexes of the selected values of a part. The selection is tested with the entity as it is now, or was when
 * deleted, and each past value.
 */
async function placesOf(
  { id, rid, type, name }: FollowedStream,
  part: CommittedPart,
  { following, lookups: { selection }, yieldIfDue }: BackfillPorts,
): Promise<readonly number[]> {
  const all = [...Array(part.length).keys()]
  if (!selection.dependsOnValues) return selection.takes({ id, type }) ? all : []
  const entity = following.lastState(rid) ?? { id, type }
  const taken: number[] = []
  for (const place of all) {
    if (selection.takes({ ...entity, [name]: part.instanceAt(place) })) taken.push(place)
    if (place % placesPerYield === 0) await yieldIfDue()
  }
  return taken
}

/** Values tested between two checks for a yield. */
const placesPerYield = 64

function stepOfPast(
  { id, rid, type, instances }: FollowedPast,
  { following, lookups }: Pick<BackfillPorts, 'following' | 'lookups'>,
): (Step & { kind: 'put' | 'past' }) | undefined {
  const { selection } = lookups
  const entity = (selection.dependsOnValues && following.lastState(rid)) || { id, type }
  const attributes = new Map<string, AttributeInstance[]>()
  for (const [name, instance, at, via] of instances) {
    if (lookups.isFromCentre(via)) continue
    if (!selection.takesAttribute(name) || !selection.takes({ ...entity, [name]: instance })) continue
    const dated = instance.observedAt === undefined ? { ...instance, modifiedAt: msToDateTime(at) } : instance
    attributes.set(name, [...(attributes.get(name) ?? []), dated])
  }
  return attributes.size === 0
    ? undefined
    : { kind: 'past', entity: pastHead({ id, type }, lookups), attributes }
}

/** Lengthens the slice after few observations, and shortens it after many. */
function nextSliceMs(sliceMs: number, count: number): number {
  const target = limits.uplinkSliceObservations.value
  if (count > 2 * target) return Math.max(limits.uplinkSliceMs.value / 16, sliceMs / 2)
  return count < target / 2 ? Math.min(limits.uplinkSliceMsMax.value, sliceMs * 2) : sliceMs
}
