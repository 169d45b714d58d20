/**
 * The rows of a group: one for each time at which a stream of the group has a value, in order of time. A
 * stream without a value at that time has the one before, or else the one after. Rows are complete up to the
 * time that every stream has reached. Pure: rows depend on the values, not on the order of their arrival.
 */
import { type CachedSeries, firstFrom } from './cached-series.ts'
import { spanOf, type Temporal } from './temporal.ts'

export interface Rows {
  readonly times: readonly number[]
  /** Per row: number of its span of hours. */
  readonly spans: readonly number[]
  /** Per row: which row of its span it is, from 0. */
  readonly ordinals: readonly number[]
  /** Values, one array per stream. */
  readonly columns: readonly Float64Array[]
  /** Number of rows that are complete. */
  readonly complete: number
}

/** A window over the rows from `first` to `last`. */
export interface RowWindow {
  readonly start: number
  readonly end: number
  readonly columns: readonly Float64Array[]
}

/** @param from time of the first row; earlier values only fill. */
export function rowsOf(streams: readonly CachedSeries[], temporal: Temporal, from: number): Rows {
  const times: number[] = []
  const spans: number[] = []
  const ordinals: number[] = []
  for (const time of timesOf(streams, from)) {
    const span = spanOf(time, temporal)
    if (span === undefined) continue
    ordinals.push(spans.at(-1) === span ? ordinals.at(-1)! + 1 : 0)
    spans.push(span)
    times.push(time)
  }
  const reached = reachedBy(streams)
  const complete = reached === undefined ? 0 : firstFrom(times, reached + 1)
  return { times, spans, ordinals, columns: streams.map((stream) => columnOf(stream, times)), complete }
}

/** The time up to which every stream has values. */
export function reachedBy(streams: readonly CachedSeries[]): number | undefined {
  let reached = Number.POSITIVE_INFINITY
  for (const { times } of streams) {
    const last = times.at(-1)
    if (last === undefined) return undefined
    reached = Math.min(reached, last)
  }
  return reached
}

/** All times of the streams from a time on, each once. */
function timesOf(streams: readonly CachedSeries[], from: number): readonly number[] {
  const all = new Set<number>()
  for (const { times } of streams)
    for (let i = firstFrom(times, from); i < times.length; i++) all.add(times[i]!)
  return [...all].sort((a, b) => a - b)
}

function columnOf({ times, values }: CachedSeries, rows: readonly number[]): Float64Array {
  const column = new Float64Array(rows.length)
  if (times.length === 0) return column.fill(Number.NaN)
  let at = -1
  for (const [i, time] of rows.entries()) {
    while (at + 1 < times.length && times[at + 1]! <= time) at++
    column[i] = values[Math.max(at, 0)]!
  }
  return column
}

/**
 * The windows of complete rows that end at a time or later. A window lies within one span of hours, and every
 * stream has a value of its own within it.
 */
export function* windowsOf(
  rows: Rows,
  streams: readonly CachedSeries[],
  { window, step, since }: Pick<Temporal, 'window' | 'step'> & { readonly since: number },
): Generator<RowWindow> {
  const { times, ordinals, columns, complete } = rows
  for (let last = firstFrom(times, since); last < complete; last++) {
    const first = last - window + 1
    const ordinal = ordinals[last]! - window + 1
    if (first < 0 || ordinal < 0 || ordinal % step !== 0) continue
    const [start, end] = [times[first]!, times[last]!]
    const isWhole = streams.every((stream) => {
      const at = firstFrom(stream.times, start)
      return at < stream.times.length && stream.times[at]! <= end
    })
    if (isWhole) yield { start, end, columns: columns.map((column) => column.subarray(first, last + 1)) }
  }
}

/**
 * The time from which on rows are kept, when there are more than `most`: as many rows remain as `most`
 * allows, and windows keep their steps.
 */
export function keptFrom(
  { times, ordinals }: Pick<Rows, 'times' | 'ordinals'>,
  { step, most }: Pick<Temporal, 'step'> & { readonly most: number },
): number | undefined {
  if (times.length <= most) return undefined
  let at = times.length - most
  at -= Math.min(at, ordinals[at]! % step)
  return at === 0 ? undefined : times[at]
}
