/**
 * Decides which attributes at the central broker were written by other clients, so that propagating a local
 * deletion does not remove them. A Selvedge reports them. For other brokers, modification times decide: an
 * attribute modified long after its deletion here is foreign. An observation no later than the deletion is
 * not foreign, even if modified since: an upload of history may have brought it back.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { toIdList } from '#ngsi-ld/federation/digest.ts'
import type { Confirmation } from '#uplink/connection/absence.ts'
import type { DeletionTimes } from '#uplink/steps/step-plan.ts'
import type { SendOutcome } from './outcome.ts'
import { areForeignAttributes, remoteInstance, remoteKeys, remoteTime, replyOf } from './response-shapes.ts'

/** Attributes written by other clients, by entity id, as `name` or `name datasetId`. */
export interface ForeignAttributes {
  readonly keysById: ReadonlyMap<string, readonly string[]>
}

/** Requests them from a Selvedge. */
export async function requestForeign(
  ids: readonly string[],
  alias: string,
  confirmAbsentSelvedge: (path: string) => Promise<Confirmation>,
): Promise<ForeignAttributes | (SendOutcome & { kind: 'later' })> {
  const query = `others=${encodeURIComponent(toIdList(ids))}&through=${encodeURIComponent(alias)}`
  const reply = replyOf(await confirmAbsentSelvedge(`/selvedge/v1/digests?${query}`), areForeignAttributes)
  return 'kind' in reply ? reply : { keysById: new Map(Object.entries(reply.json?.others ?? {})) }
}

/**
 * Whether a deletion (commit time, ms) is so long ago that other clients may have re-created the value since.
 */
const isLongAgo = (at: number | undefined, now: number): at is number =>
  at !== undefined && now - at > limits.uplinkArrivalMs.value

/**
 * Attributes other clients wrote since their deletion here, by the times in the response; an entity without
 * attributes created since is named as `''`.
 */
export function foreignByTimes(
  there: ReadonlyMap<string, Entity>,
  steps: readonly (DeletionTimes & { readonly entity: Pick<Entity, 'id'> })[],
  { now, ahead }: { readonly now: number; readonly ahead: number },
): ForeignAttributes {
  const found = steps.map(({ entity: { id }, at, seen }) => {
    const one = there.get(id)
    return [id, one === undefined || !isLongAgo(at, now) ? [] : keysSince(one, { at, seen, ahead })] as const
  })
  return { keysById: new Map(found) }
}

/** How far (ms) the centre's clock is ahead, by the Date of a response received at `now` (ms). */
export function clockLeadMs({ date = '' }: IncomingHttpHeaders, now: number): number {
  const there = Date.parse(date)
  return Number.isNaN(there) ? 0 : there - now
}

function keysSince(
  there: Entity,
  { at, seen = at, ahead }: DeletionTimes & { readonly at: number; readonly ahead: number },
): readonly string[] {
  const isSince = (time: number | undefined): boolean =>
    time !== undefined && time > at + ahead + limits.uplinkArrivalMs.value
  const born = remoteTime(there['createdAt'])
  const keys = remoteKeys(there)
  if (keys.length === 0) return isSince(born) ? [''] : []
  return keys.filter((key) => {
    const one = remoteInstance(there, key)
    return one !== undefined && isSince(writtenAt(one) ?? born) && !isObservedBy(one, Math.max(at, seen))
  })
}

const writtenAt = ({ modifiedAt, createdAt }: AttributeInstance): number | undefined =>
  remoteTime(modifiedAt) ?? remoteTime(createdAt)

const isObservedBy = ({ observedAt }: AttributeInstance, at: number): boolean =>
  (remoteTime(observedAt) ?? Number.POSITIVE_INFINITY) <= at
