/**
 * Finds stored instances by their id, for requests that modify or remove one (GS CIM 009, 5.6.14 and 5.6.15).
 * An observation may be stored by the record of a creation and in a stream, or in several lives of a
 * re-created entity. Readers show it once, so a correction concerns all copies.
 */

import { identityOf } from '#broker/state/streams.ts'
import type { TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { replacementOf } from './corrections.ts'
import {
  createObservationFinder,
  type EvolutionPorts,
  type FoundInstance,
  inChangeRecords,
  type Life,
  observedInstance,
} from './evolution-sources.ts'
import { observationId, observationIn } from './instance-ids.ts'

export interface StoredInstance {
  readonly rid: number
  readonly instanceId: string
}

interface Found {
  readonly rid: number
  /** Its original dataset: a correction may have moved it to another one, where it is nobody's copy. */
  readonly dataset: string
  readonly one: TimedInstance
}

/** The instance with an id, and all copies of the same observation; empty if there is none. */
export function sameObservations(
  ports: EvolutionPorts,
  lives: readonly Life[],
  name: string,
  instanceId: string,
): readonly StoredInstance[] {
  const instance = found(ports, lives, name, instanceId)
  if (instance === undefined) return []
  const { rid, one } = instance
  const own = { rid, instanceId }
  if (one.observedAt === undefined || one.deletedAt !== undefined) return [own]
  const others = lives.flatMap((life) => [
    ...sameInRecords(ports, life, name, instance),
    ...sameInStreams(ports, life, name, instance),
  ])
  return [own, ...others.filter((other) => other.instanceId !== instanceId)]
}

function found(
  ports: EvolutionPorts,
  lives: readonly Life[],
  name: string,
  instanceId: string,
): Found | undefined {
  const s = observationIn(instanceId)?.s
  for (const life of lives) {
    const instance =
      s === undefined
        ? recorded(ports, life, name).find(({ one }) => one.instanceId === instanceId)
        : observed(ports, life, name, instanceId)
    if (instance !== undefined) return { ...instance, rid: life[0] }
  }
  return undefined
}

const recorded = (ports: EvolutionPorts, [rid, corrections]: Life, name: string) => {
  const query = { timeproperty: 'createdAt', attrs: new Set([name]), limit: 0 } as const
  return inChangeRecords(ports, rid, query, corrections)
}

/** The corrected observation of a stream; undefined if it was erased or removed. */
function observed(
  ports: EvolutionPorts,
  [rid, corrections]: Life,
  name: string,
  instanceId: string,
): Omit<Found, 'rid'> | undefined {
  const { s, time } = observationIn(instanceId)!
  const row = ports.history.stream(s)
  if (row?.rid !== rid || ports.names.text(row.name) !== name) return undefined
  const own = corrections.ofStream(s, name, row.dataset)
  const stored = createObservationFinder(
    ports,
    s,
  )(time).find(
    ({ modified, value }) => observationId(s, time, value) === instanceId && modified > own.erasedUntil,
  )
  if (stored === undefined) return undefined
  const edit = own.editOf(time, stored.value)
  const one =
    edit === undefined
      ? observedInstance(s, stored.shape, stored)
      : replacementOf(edit, { createdAt: stored.modified })
  return one && { dataset: row.dataset, one }
}

function sameInRecords(
  ports: EvolutionPorts,
  life: Life,
  name: string,
  { dataset, one: { instance, observedAt } }: Found,
): StoredInstance[] {
  const text = JSON.stringify(instance)
  const isSame = (each: FoundInstance): boolean =>
    each.dataset === dataset &&
    each.one.deletedAt === undefined &&
    each.one.observedAt === observedAt &&
    JSON.stringify(each.one.instance) === text
  return [...recorded(ports, life, name)]
    .filter(isSame)
    .map(({ one: { instanceId } }) => ({ rid: life[0], instanceId }))
}

function sameInStreams(
  ports: EvolutionPorts,
  [rid, corrections]: Life,
  name: string,
  { dataset, one: { instance, observedAt = 0 } }: Found,
): StoredInstance[] {
  const { value } = instance
  if (value === undefined) return []
  const identity = identityOf(observedAt, value)
  return ports.history.streamsOf(rid).flatMap((row) => {
    if (ports.names.text(row.name) !== name || row.dataset !== dataset) return []
    const own = corrections.ofStream(row.s, name, row.dataset)
    const isLeft = createObservationFinder(
      ports,
      row.s,
    )(observedAt).some(
      (one) =>
        identityOf(one.time, one.value) === identity &&
        one.modified > own.erasedUntil &&
        own.editOf(one.time, one.value) === undefined,
    )
    return isLeft ? [{ rid, instanceId: observationId(row.s, observedAt, value) }] : []
  })
}
