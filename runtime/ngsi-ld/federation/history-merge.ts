/**
 * Merges histories of one entity [NGSI-LD 4.3.6, 4.5.5]: the instances of all sources without duplicates. If
 * a source is solely responsible for an attribute, only its instances count; auxiliary sources only fill
 * gaps. Aggregates of a merged history are computed from its instances.
 */

import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { type AggregateMethod, createAggregation } from '#ngsi-ld/history/aggregate.ts'
import { beginningOf, type CutEvolution } from '#ngsi-ld/history/temporal-part.ts'
import { type TemporalSelection, type TimedInstance, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import type { Duration } from '#ngsi-ld/values/duration.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { EntityCopy } from './distribution.ts'

/** The history of an entity at one source, and the extent of its claim. */
export interface HistoryCopy extends Pick<EntityCopy, 'mode' | 'claim'> {
  readonly history: CutEvolution & { readonly entity: Entity }
  /** The end of an incomplete history: its last time, with `lastN` its first. */
  readonly end?: number | undefined
}

export interface MergeSelection extends TemporalSelection {
  readonly lastN?: number | undefined
  readonly limit: number
}

const isSole = ({ mode }: HistoryCopy): boolean => mode === 'exclusive' || mode === 'redirect'

/**
 * Orders instances by the time property; keeps the first `limit` of each attribute, with `lastN` the last.
 */
export function mergeHistories(
  copies: readonly HistoryCopy[],
  selection: MergeSelection,
): HistoryCopy['history'] {
  const { lastN, limit, timeproperty } = selection
  const isBackwards = lastN !== undefined
  const ends = copies.flatMap(({ end }) => end ?? [])
  const end = ends.length === 0 ? undefined : isBackwards ? Math.max(...ends) : Math.min(...ends)
  const time = (one: TimedInstance): number => timeOf(one, timeproperty) ?? one.modifiedAt
  const attributes = new Map<string, readonly TimedInstance[]>()
  const cut = new Set<string>()
  for (const name of new Set(copies.flatMap(({ history }) => [...history.attributes.keys()]))) {
    const responsible = responsibleCopies(copies, name)
    const all = instancesOf(responsible, name, time).sort((a, b) => time(a) - time(b))
    const covered = all.filter(
      (one) => end === undefined || (isBackwards ? time(one) >= end : time(one) <= end),
    )
    if (covered.length < all.length || (end !== undefined && covered.some((one) => time(one) === end)))
      cut.add(name)
    const wanted = isBackwards ? covered.slice(-lastN) : covered
    if (wanted.length > limit || responsible.some(({ history }) => history.cut.has(name))) cut.add(name)
    attributes.set(name, beginningOf(wanted, limit, selection))
  }
  return { ...headOf(copies), attributes, cut }
}

/**
 * The copies that count for an attribute: those of solely responsible sources, if any, and of auxiliary
 * sources.
 */
function responsibleCopies(copies: readonly HistoryCopy[], name: string): readonly HistoryCopy[] {
  const isResponsible = (copy: HistoryCopy): boolean =>
    isSole(copy) && (copy.claim === 'all' || copy.claim.has(name))
  if (!copies.some(isResponsible)) return copies
  return copies.filter((copy) => copy.mode === 'auxiliary' || isResponsible(copy))
}

function instancesOf(
  responsible: readonly HistoryCopy[],
  name: string,
  time: (one: TimedInstance) => number,
): TimedInstance[] {
  const held = new Map<string, TimedInstance>()
  const datasets = new Set<string>()
  const listOf = ({ history }: HistoryCopy): readonly TimedInstance[] => history.attributes.get(name) ?? []
  const keyOf = (one: TimedInstance): string => {
    const { instance, deletedAt } = one
    const { datasetId = '' } = instance
    return `${datasetId} ${time(one)} ${deletedAt === undefined ? '' : '-'} ${JSON.stringify(contentOf(one))}`
  }
  for (const copy of responsible.filter(({ mode }) => mode !== 'auxiliary'))
    for (const one of listOf(copy)) {
      datasets.add(one.instance.datasetId ?? '')
      if (!held.has(keyOf(one))) held.set(keyOf(one), one)
    }
  for (const copy of responsible.filter(({ mode }) => mode === 'auxiliary'))
    for (const one of listOf(copy))
      if (!datasets.has(one.instance.datasetId ?? '') && !held.has(keyOf(one))) held.set(keyOf(one), one)
  return [...held.values()]
}

const contentOf = ({ instance }: TimedInstance) => instance[kindOf(instance).member] ?? null

function headOf(
  copies: readonly HistoryCopy[],
): Pick<HistoryCopy['history'], 'id' | 'type' | 'entity' | 'created' | 'modified' | 'deleted'> {
  const main = copies.filter(({ mode }) => mode !== 'auxiliary')
  const known = (main.length > 0 ? main : copies).map(({ history }) => history)
  const alive = known.filter(({ deleted }) => deleted === undefined)
  const speaking = alive.length > 0 ? alive : known
  const types = [...new Set(speaking.flatMap(({ type }) => type))]
  const least = (times: readonly number[]) => (times.length === 0 ? undefined : Math.min(...times))
  const most = (times: readonly number[]) => (times.length === 0 ? undefined : Math.max(...times))
  return {
    id: speaking[0]!.id,
    type: types.length === 1 ? types[0]! : types,
    entity: speaking[0]!.entity,
    created: least(known.flatMap(({ created }) => created ?? [])),
    modified: most(known.flatMap(({ modified }) => modified ?? [])),
    deleted: alive.length > 0 ? undefined : most(known.flatMap(({ deleted }) => deleted ?? [])),
  }
}

export interface SumSelection extends TemporalSelection {
  readonly methods: ReadonlySet<AggregateMethod>
  readonly duration?: Duration | undefined
}

/** Aggregates of a history; one entry per attribute, kind and datasetId. */
export function sumUp(
  { attributes }: Pick<CutEvolution, 'attributes'>,
  { methods, duration, timerel, timeAtMs, endTimeAtMs, timeproperty }: SumSelection,
): Map<string, readonly JsonObject[]> {
  const live = [...attributes].map(
    ([name, list]) => [name, list.filter(({ deletedAt }) => deletedAt === undefined)] as const,
  )
  const time = (one: TimedInstance): number => timeOf(one, timeproperty)!
  const from = timerel === 'before' ? undefined : timeAtMs
  let start = from ?? Number.POSITIVE_INFINITY
  if (from === undefined)
    for (const [, list] of live) for (const one of list) start = Math.min(start, time(one))
  const to = timerel === 'before' ? timeAtMs : endTimeAtMs
  const result = new Map<string, readonly JsonObject[]>()
  for (const [name, list] of live) {
    const groups = Map.groupBy(list, ({ instance }) => `${kindOf(instance).name} ${instance.datasetId ?? ''}`)
    const entries = [...groups.values()].map((group): JsonObject => {
      const { instance } = group[0]!
      const { name: type, member } = kindOf(instance)
      const sum = createAggregation(methods, { from, to, duration }, start, type)
      for (const one of group) sum.add(time(one), one.instance[member] ?? null)
      const { datasetId } = instance
      return { type, ...(datasetId === undefined ? {} : { datasetId }), ...sum.results() }
    })
    if (entries.length > 0) result.set(name, entries)
  }
  return result
}
