/**
 * Whose is what is over there, when something that went here is to go there, too: what others wrote stays. Another gateway like this
 * one says it. Of any other broker it is told by times: what was written there long after it had gone here is of others, but for
 * what is older by its observation, as the past of what is gone is, where telling it brings that back.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { toIdList } from '#ngsi-ld/federation/digest.ts'
import type { Confirmation } from '#uplink/connection/absence.ts'
import type { DeletionTimes } from '#uplink/steps/step-plan.ts'
import type { Outcome } from './outcome.ts'
import { areForeignAttributes, remoteInstance, remoteKeys, remoteTime, replyOf } from './response-shapes.ts'

/** What others wrote, by entity id, as `name` or `name datasetId`. */
export interface ForeignAttributes {
  readonly keysById: ReadonlyMap<string, readonly string[]>
}

/** Asks a gateway like this one. */
export async function requestForeign(
  ids: readonly string[],
  alias: string,
  seeOwn: (path: string) => Promise<Confirmation>,
): Promise<ForeignAttributes | (Outcome & { kind: 'later' })> {
  const question = `others=${encodeURIComponent(toIdList(ids))}&through=${encodeURIComponent(alias)}`
  const told = replyOf(await seeOwn(`/selvedge/v1/digests?${question}`), areForeignAttributes)
  return 'kind' in told ? told : { keysById: new Map(Object.entries(told.json?.others ?? {})) }
}

/** Whether something went so long ago (commit time, ms) that others may have written since what it was. */
const isLongAgo = (at: number | undefined, now: number): at is number =>
  at !== undefined && now - at > limits.uplinkArrivalMs.value

/**
 * What others wrote of entities since they, or attributes of them, went here, by the times with which they are told; an entity
 * without attributes that came into being since is named as `''`.
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

/** By how much (ms) the clock over there is ahead of that here, as an answer says that came at a time (ms). */
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
