/**
 * Sources of the history of one entity: change records (folded or still in the log), chunks of its streams,
 * and their unfolded tails. Each source yields instances with client corrections applied. The reader sorts
 * and bounds them.
 */

import type { Names } from '#broker/commit/interned-names.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import { identityOf, type Streams } from '#broker/state/streams.ts'
import type { Tail } from '#broker/state/unwritten.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { fromShape } from '#ngsi-ld/entity/merge.ts'
import { type TimedInstance, type TimeProperty, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { decodeChunk, type Series, type StreamInstance } from '#store/chunks/chunk-codec.ts'
import type { Entities } from '#store/entities/entity-rows.ts'
import { decodeEntityChanges } from '#store/history/entity-changes.ts'
import type { HistoryEdits } from '#store/history/history-edits.ts'
import type { History } from '#store/history/history-rows.ts'
import type { Records } from '#store/tables/records.ts'
import {
  type Corrections,
  countBefore,
  replacementOf,
  type StreamCorrections,
  timesBetween,
} from './corrections.ts'
import { observationId, recordInstanceId } from './instance-ids.ts'
import type { TemporalQuery } from './temporal-requests.ts'

export interface EvolutionPorts {
  readonly entities: Entities
  readonly history: History
  readonly edits: HistoryEdits
  readonly records: Records
  readonly names: Names
  readonly live: LiveState
  readonly streams: Streams
}

export interface ObservedWindow {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/** An entity in the succession of those with one id, and its corrections. */
export type Life = readonly [rid: number, corrections: Corrections]

/** An instance with its attribute. */
export interface FoundInstance {
  /** Another gateway stated when it was written. */
  readonly isStated?: boolean
  readonly name: string
  readonly dataset: string
  readonly one: TimedInstance
}

interface ChangeRecord {
  readonly n: number
  readonly kind: string
  readonly at: number
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
    type?: string | null,
    /** For an instance restored from another gateway: when it was first written, ms. */
    at?: number,
  ])[]
  /** The scopes after the change, if it touched them; null if it removed them. */
  readonly scope?: string | readonly string[] | null
}

const earliest = Number.MIN_SAFE_INTEGER
const latest = Number.MAX_SAFE_INTEGER
/** Years 0000 to 9999: the range of times in chunks. */
export const chunkTimes: ObservedWindow = { from: -62_167_219_200_000, to: 253_402_300_799_999 }

export function windowOf(query: TemporalQuery): ObservedWindow {
  const at = query.timeAtMs ?? 0
  if (query.timerel === 'before') return { from: earliest, to: at }
  if (query.timerel === 'after') return { from: at, to: latest }
  if (query.timerel === 'between') return { from: at, to: query.endTimeAtMs ?? latest }
  return { from: earliest, to: latest }
}

/** Whether a query includes an attribute, or one instance of it. */
export const isWanted = (query: TemporalQuery, name: string, dataset?: string): boolean =>
  (query.attrs === undefined || query.attrs.has(name)) &&
  (dataset === undefined || query.datasets === undefined || query.datasets.has(dataset || '@none'))

/** Yields the instances in change records, newest record first if the query has lastN. */
export function* inChangeRecords(
  ports: EvolutionPorts,
  rid: number,
  query: TemporalQuery,
  corrections: Corrections,
): Generator<FoundInstance> {
  for (const text of changeTexts(ports, rid, query.lastN !== undefined)) {
    const record = JSON.parse(text) as ChangeRecord
    const accepted = (name: string, dataset: string, one: TimedInstance): FoundInstance[] => {
      if (!isWanted(query, name, dataset) || corrections.isRecordErased(name, dataset, record.n)) return []
      const corrected = corrections.corrected(name === 'scope' ? timedScope(one, query) : one)
      return corrected === undefined ? [] : [{ name, dataset, one: corrected }]
    }
    for (const [i, [name, dataset, instance, type, at = record.at]] of record.instances.entries()) {
      const base = { createdAt: at, modifiedAt: at, number: record.n }
      const instanceId = recordInstanceId(record.n, i)
      if (instance === null) {
        const nothing = name === 'scope' ? noScope : deletedInstance(type ?? 'Property', dataset)
        yield* accepted(name, dataset, { ...base, instance: nothing, instanceId, deletedAt: at })
      } else {
        const observedAt = dateTimeToMs(instance.observedAt ?? '')
        const timed = observedAt === undefined ? base : { ...base, observedAt }
        const recorded = accepted(name, dataset, { ...timed, instance, instanceId })
        yield* at === record.at ? recorded : recorded.map((one) => ({ ...one, isStated: true }))
      }
    }
    if (record.scope === undefined) continue
    const [at, instanceId] = [record.at, recordInstanceId(record.n, 'scope')]
    const base = { createdAt: at, modifiedAt: at, number: record.n, instanceId }
    if (record.scope === null) yield* accepted('scope', '', { ...base, instance: noScope, deletedAt: at })
    else {
      const instance = { type: 'Property', value: [...listOf(record.scope)] }
      yield* accepted('scope', '', { ...base, instance })
    }
  }
}

/** The value of the scope of an entity after its scopes were deleted. */
const noScope = { type: 'Property', value: [] }

/** A scope set without observedAt counts as observed when it was set [NGSI-LD 4.5.6]. */
function timedScope(one: TimedInstance, { unobserved }: TemporalQuery): TimedInstance {
  if (unobserved === true || one.observedAt !== undefined || one.deletedAt !== undefined) return one
  const { modifiedAt } = one
  const instance = { ...one.instance, observedAt: msToDateTime(modifiedAt) }
  return { ...one, instance, observedAt: modifiedAt }
}

/** Observations of one attribute instance in change records, which streams may also contain. */
export interface RecordedObservations {
  has(time: number, value: Json): boolean
  /** Their times between `first` and `last`, inclusive; ascending. */
  timesWithin(first: number, last: number): readonly number[]
}

const none: readonly number[] = []
const nothingRecorded: RecordedObservations = { has: () => false, timesWithin: () => none }

/**
 * Takes the instances in change records of all lives of an entity, each observation once. The record of a
 * creation contains the first reading of a device, which the device may send again. A deleted and re-created
 * entity may receive the same observation in each life. Returns, by attribute instance, the observations
 * taken, which streams may also contain.
 */
export function takeChanges(
  ports: EvolutionPorts,
  lives: readonly Life[],
  { query, take }: { query: TemporalQuery; take: (recorded: FoundInstance) => void },
): (name: string, dataset: string) => RecordedObservations {
  const recorded = new Map<
    string,
    { readonly texts: Set<string>; readonly values: Set<string>; readonly times: number[] }
  >()
  const keyOf = (name: string, dataset: string): string => `${name} ${dataset}`
  // An instance stated by another gateway may occur twice: as past and as current, or in two lives.
  const written = new Set<string>()
  const isWrittenTwice = ({ name, one: { instance, modifiedAt }, isStated }: FoundInstance): boolean => {
    if (isStated !== true) return false
    const text = JSON.stringify([name, modifiedAt, instance])
    if (written.has(text)) return true
    written.add(text)
    return false
  }
  for (const [rid, corrections] of query.lastN === undefined ? lives : lives.toReversed())
    for (const one of inChangeRecords(ports, rid, query, corrections)) {
      const { observedAt, deletedAt, instance } = one.one
      if (observedAt !== undefined && deletedAt === undefined) {
        const key = keyOf(one.name, one.dataset)
        const known = recorded.get(key) ?? { texts: new Set<string>(), values: new Set<string>(), times: [] }
        recorded.set(key, known)
        const text = JSON.stringify(instance)
        if (known.texts.has(text)) continue
        known.texts.add(text)
        known.values.add(identityOf(observedAt, instance.value ?? null))
        known.times.push(observedAt)
      } else if (deletedAt === undefined && isWrittenTwice(one)) continue
      take(one)
    }
  for (const { times } of recorded.values()) times.sort((a, b) => a - b)
  return (name, dataset) => {
    const known = recorded.get(keyOf(name, dataset))
    return known === undefined ? nothingRecorded : observationsOf(known.times, known.values)
  }
}

/** A set of observations from their times, ascending, and their identities. */
export const observationsOf = (
  times: readonly number[],
  identities: ReadonlySet<string>,
): RecordedObservations => ({
  has: (time, value) => isOneOf(times, time) && identities.has(identityOf(time, value)),
  timesWithin: (first, last) => timesBetween(times, first, last),
})

const isOneOf = (times: readonly number[], time: number): boolean => times[countBefore(times, time)] === time

function* changeTexts(ports: EvolutionPorts, rid: number, isBackwards: boolean): Generator<string> {
  const parts = ports.history.entityChanges(rid)
  // Records that a group folded on disk, but has not published, are in both.
  const folded = parts.at(-1)?.n1 ?? 0
  const unfolded = function* (): Generator<string> {
    for (const n of ports.streams.unfolded(rid)) {
      const row = n > folded ? ports.records.logAt(n) : undefined
      if (row !== undefined) yield Buffer.from(row.body).toString()
    }
  }
  if (isBackwards) {
    yield* [...unfolded()].toReversed()
    for (const part of parts.toReversed()) yield* decodeEntityChanges(part).toReversed()
  } else {
    for (const part of parts) yield* decodeEntityChanges(part)
    yield* unfolded()
  }
}

function deletedInstance(type: string, dataset: string): AttributeInstance {
  const { member } = kindOf({ type })
  const nothing = member === 'languageMap' ? { '@none': ngsiLdNull } : ngsiLdNull
  return { type, [member]: nothing, ...(dataset === '' ? {} : { datasetId: dataset }) }
}

/** An observation of a stream as an instance. */
export function observedInstance(
  s: number,
  shape: string,
  { time, modified, value }: { readonly time: number; readonly modified: number; readonly value: Json },
): TimedInstance {
  return {
    instance: fromShape(shape, value, time),
    observedAt: time,
    createdAt: modified,
    modifiedAt: modified,
    instanceId: observationId(s, time, value),
  }
}

/**
 * The replacements of a stream's observations whose originals are not erased. Originals are not looked up for
 * replacements outside the window.
 */
export function* replacedOf(
  ports: EvolutionPorts,
  s: number,
  { replaced, erasedUntil, editOf }: StreamCorrections,
  { property, fits }: { property: TimeProperty; fits: (time: number) => boolean },
): Generator<TimedInstance> {
  if (replaced.length === 0) return
  const find = createObservationFinder(ports, s)
  for (const edit of replaced) {
    const foreseen = replacementOf(edit, { createdAt: edit.at })!
    const time = timeOf(foreseen, property)
    if (property !== 'createdAt' && (time === undefined || !fits(time))) continue
    const before = find(edit.time).find(({ value }) => editOf(edit.time, value) === edit)
    if (before === undefined || before.modified <= erasedUntil) continue
    if (property === 'createdAt' && !fits(before.modified)) continue
    yield { ...foreseen, createdAt: before.modified }
  }
}

/**
 * Finds the observations of a time, chunk before tail: readers show an observation that was sent twice as it
 * was first sent. Consecutive times in one chunk decode it once.
 */
export function createObservationFinder(
  ports: EvolutionPorts,
  s: number,
): (time: number) => readonly StreamInstance[] {
  const tail = Map.groupBy(
    tailWithin(ports.live.stream(s)?.tail, { ...chunkTimes, to: chunkTimes.to + 1 }),
    ({ time }) => time,
  )
  let known: { readonly t0: number; readonly t1: number; readonly series: () => Series } | undefined
  return (time) => {
    const later = tail.get(time) ?? []
    if (known === undefined || time < known.t0 || time > known.t1) {
      const row = ports.history.chunkAt(s, time)
      if (row === undefined) return later
      let series: Series | undefined
      known = { t0: row.t0, t1: row.t1, series: () => (series ??= decodeChunk(row)) }
    }
    if (time > known.t1) return later
    const { times, modified, values, shapes, shapeOf } = known.series()
    const found: StreamInstance[] = []
    for (let i = countBefore(times, time); times[i] === time; i++)
      found.push({ time, modified: modified[i]!, value: values[i]!, shape: shapes[shapeOf?.[i] ?? 0]! })
    found.push(...later)
    return found
  }
}

/** Committed instances of a tail within a span of observedAt, in order of time. */
export function tailWithin(tail: Tail | undefined, span: ObservedWindow): StreamInstance[] {
  if (tail === undefined) return []
  const positions: number[] = []
  for (let i = 0; i < tail.committed; i++) {
    if (tail.times[i]! >= span.from && tail.times[i]! < span.to) positions.push(i)
  }
  positions.sort((a, b) => tail.times[a]! - tail.times[b]!)
  return positions.map((i) => ({
    time: tail.times[i]!,
    modified: tail.modified[i]!,
    value: tail.values[i]!,
    shape: tail.shapes.findLast(({ from }) => from <= i)!.shape,
  }))
}
