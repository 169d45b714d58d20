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
  inChangeRecords,
  type Life,
  observedInstance,
} from './evolution-sources.ts'
import { observationId, observationIn } from './instance-ids.ts'

export interface StoredInstance {
  readonly rid: number
  readonly instanceId: string
}

/** The instance with an id, and all copies of the same observation; empty if there is none. */
export function sameObservations(
  ports: EvolutionPorts,
  lives: readonly Life[],
  name: string,
  instanceId: string,
): readonly StoredInstance[] {
  const [owner, one] = found(ports, lives, name, instanceId) ?? []
  if (owner === undefined || one === undefined) return []
  const own = { rid: owner, instanceId }
  if (one.observedAt === undefined || one.deletedAt !== undefined) return [own]
  const others = lives.flatMap((life) => [
    ...sameInRecords(ports, life, name, one),
    ...sameInStreams(ports, life, name, one),
  ])
  return [own, ...others.filter((other) => other.instanceId !== instanceId)]
}

function found(
  ports: EvolutionPorts,
  lives: readonly Life[],
  name: string,
  instanceId: string,
): readonly [rid: number, one: TimedInstance] | undefined {
  const s = observationIn(instanceId)?.s
  for (const life of lives) {
    const one =
      s === undefined
        ? recorded(ports, life, name).find((each) => each.instanceId === instanceId)
        : observed(ports, life, name, instanceId)
    if (one !== undefined) return [life[0], one]
  }
  return undefined
}

const recorded = (ports: EvolutionPorts, [rid, corrections]: Life, name: string) => {
  const query = { timeproperty: 'createdAt', attrs: new Set([name]), limit: 0 } as const
  return inChangeRecords(ports, rid, query, corrections).map(({ one }) => one)
}

/** The corrected observation of a stream; undefined if it was erased or removed. */
function observed(
  ports: EvolutionPorts,
  [rid, corrections]: Life,
  name: string,
  instanceId: string,
): TimedInstance | undefined {
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
  return edit === undefined
    ? observedInstance(s, stored.shape, stored)
    : replacementOf(edit, { createdAt: stored.modified })
}

function sameInRecords(
  ports: EvolutionPorts,
  life: Life,
  name: string,
  { instance, observedAt }: TimedInstance,
): StoredInstance[] {
  const text = JSON.stringify(instance)
  const isSame = (each: TimedInstance): boolean =>
    each.deletedAt === undefined && each.observedAt === observedAt && JSON.stringify(each.instance) === text
  return [...recorded(ports, life, name)]
    .filter(isSame)
    .map(({ instanceId }) => ({ rid: life[0], instanceId }))
}

function sameInStreams(
  ports: EvolutionPorts,
  [rid, corrections]: Life,
  name: string,
  { instance, observedAt = 0 }: TimedInstance,
): StoredInstance[] {
  const { value, datasetId = '' } = instance
  if (value === undefined) return []
  const identity = identityOf(observedAt, value)
  return ports.history.streamsOf(rid).flatMap((row) => {
    if (ports.names.text(row.name) !== name || row.dataset !== datasetId) return []
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
