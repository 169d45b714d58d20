/**
 * Corrections of one entity's history as readers apply them: erased instances are omitted, and a replaced
 * instance is shown as its replacement under its original id. Corrections concern few instances, so readers
 * of a stream first check the time, and read uncorrected instances without further lookups.
 */
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { HistoryEditRow, HistoryEdits } from '#store/history/history-edits.ts'
import { observationId, observationIn, recordPrefix, streamPrefix } from './instance-ids.ts'

export interface Corrections {
  /** Whether an instance recorded under this log number is erased. */
  isRecordErased(name: string, dataset: string, number: number): boolean
  /** An instance of a change record after correction; undefined if it was removed. */
  corrected(instance: TimedInstance): TimedInstance | undefined
  /** Corrections of one stream of the entity, the stream of this attribute instance. */
  ofStream(s: number, name: string, dataset: string): StreamCorrections
  /** Log number up to which everything of the entity was erased; 0 if never. */
  readonly erasedNumber: number
}

/** An observation that was replaced (body is the instance as JSON) or removed (body is null). */
export interface ObservationEdit extends HistoryEditRow {
  /** Its original observedAt, ms. */
  readonly time: number
}

export interface StreamCorrections {
  /** Observations committed up to this time (ms) are erased. */
  readonly erasedUntil: number
  /**
   * Distinct original times between `first` and `last`, inclusive, of replaced or removed observations;
   * ascending.
   */
  timesWithin(first: number, last: number): readonly number[]
  /** The correction of an observation; undefined if there is none. */
  editOf(time: number, value: Json): ObservationEdit | undefined
  /** The replaced observations, in order of their original time. */
  readonly replaced: readonly ObservationEdit[]
}

export function correctionsOf(store: HistoryEdits, rid: number): Corrections {
  const erased = store.erased(rid)
  const fitting = (name: string, dataset: string) =>
    erased.filter(
      (row) => row.name === '' || (row.name === name && (row.dataset === '*' || row.dataset === dataset)),
    )
  let ofRecords: ReadonlyMap<string, HistoryEditRow> | undefined
  return {
    isRecordErased: (name, dataset, number) =>
      erased.length > 0 && fitting(name, dataset).some(({ n }) => number <= n),
    corrected(instance) {
      ofRecords ??= new Map(store.edits(rid, recordPrefix).map((row) => [row.instance, row]))
      const edit = ofRecords.get(instance.instanceId)
      return edit === undefined ? instance : replacementOf(edit, instance)
    },
    ofStream(s, name, dataset) {
      const erasedUntil = Math.max(Number.NEGATIVE_INFINITY, ...fitting(name, dataset).map(({ at }) => at))
      return streamCorrectionsOf(s, store.edits(rid, streamPrefix(s)), erasedUntil)
    },
    erasedNumber: erased.find(({ name }) => name === '')?.n ?? 0,
  }
}

/** The replacement of an instance; undefined if it was removed. */
export function replacementOf(
  { instance: instanceId, at, body }: HistoryEditRow,
  { createdAt, number }: Pick<TimedInstance, 'createdAt' | 'number'>,
): TimedInstance | undefined {
  if (body === null) return undefined
  const instance = JSON.parse(body) as AttributeInstance
  const logged = number === undefined ? {} : { number }
  const observedAt = dateTimeToMs(instance.observedAt ?? '')
  const times = { createdAt, modifiedAt: at, ...(observedAt === undefined ? {} : { observedAt }) }
  return { instance, instanceId, ...times, ...logged }
}

const none: readonly number[] = []

function streamCorrectionsOf(
  s: number,
  rows: readonly HistoryEditRow[],
  erasedUntil: number,
): StreamCorrections {
  if (rows.length === 0)
    return { erasedUntil, timesWithin: () => none, editOf: () => undefined, replaced: [] }
  const edits = rows
    .map((row): ObservationEdit => ({ ...row, time: observationIn(row.instance)!.time }))
    .sort((a, b) => a.time - b.time)
  const times = edits.map(({ time }) => time)
  const byTime = Map.groupBy(edits, ({ time }) => time)
  /** Cached results, since hashing dominates the cost and each value is looked up twice. */
  const found = new Map<number, readonly [value: Json, edit: ObservationEdit | undefined]>()
  return {
    erasedUntil,
    timesWithin: (first, last) => timesBetween(times, first, last),
    editOf(time, value) {
      const there = byTime.get(time)
      if (there === undefined) return undefined
      const known = found.get(time)
      if (known !== undefined && known[0] === value) return known[1]
      const id = observationId(s, time, value)
      const edit = there.find(({ instance }) => instance === id)
      found.set(time, [value, edit])
      return edit
    },
    replaced: edits.filter(({ body }) => body !== null),
  }
}

/** The members of an ascending list of times (ms) between `first` and `last`, inclusive. */
export const timesBetween = (times: readonly number[], first: number, last: number): readonly number[] =>
  times.slice(countBefore(times, first), countBefore(times, last + 1))

/** The number of times (ms) in an ascending list before `time`. */
export function countBefore(times: ArrayLike<number>, time: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (times[middle]! < time) low = middle + 1
    else high = middle
  }
  return low
}
