/**
 * Streams whose published value is newer than their document, by attribute name. Their numbers are stored
 * contiguously, so that a search scans a hundred thousand of them in the time of a few documents. Only a
 * number within the bounds, or a value that is not a number, needs the full test.
 */
import type { Json } from '#contract/pipeline.ts'
import type { ValueTest } from '#store/query/newer-values.ts'

/** An entity that has live streams. */
export interface LiveEntity {
  readonly rid: number
  readonly id: string
  types: readonly string[]
  readonly streams: LiveStream[]
  /** Log number that its document on disk includes. */
  written: number
  /** Monotonic ms since when it has values that its document does not include; undefined when none. */
  dirtySince: number | undefined
}

/** Instances not yet folded, in arrival order; the first `committed` of them are on disk. */
export interface Tail {
  times: number[]
  modified: number[]
  values: Json[]
  /** Each shape with the index from which it applies; the first entry starts at 0. */
  shapes: { from: number; shape: string }[]
  committed: number
  /** How many of the first instances the group being written packs into chunks. */
  folding: number
  /** Approximate memory of the instances. */
  bytes: number
  /** No instance of the tail has a smaller log number; 0 when the tail is empty. */
  firstNumber: number
  /** Monotonic ms when the oldest instance arrived. */
  since: number
}

/**
 * A live observed attribute instance. Fields named `next...` and `newest...` are staged, the others
 * published.
 */
export interface LiveStream {
  readonly s: number
  readonly entity: LiveEntity
  readonly name: string
  readonly dataset: string
  shape: string
  /** Log number since which it has this shape, as far as known. */
  shapedAt: number
  /** Attribute rendered from observedAt (sosa:resultTime), if any. */
  mirror: string | undefined
  time: number
  value: Json
  modified: number
  number: number
  /** The Via chain of the value; undefined if it originates here. */
  via: string | undefined
  nextTime: number
  nextValue: Json
  nextModified: number
  nextNumber: number
  nextVia: string | undefined
  newestTime: number
  newestValue: Json
  newestTimeBefore: number
  newestValueBefore: Json
  touched: boolean
  /** Position among the unwritten streams of its attribute name; -1 when the document includes the value. */
  dirtyAt: number
  readonly tail: Tail
  /** True when this object may no longer be used: deleted, or dropped from memory. */
  dropped: boolean
  /**
   * Candidate subscriptions, as cached by the matcher, and the matcher version at which they were selected.
   */
  candidates: unknown
  candidatesVersion: number
}

/** The streams of one attribute; each knows its index as `dirtyAt`. */
interface Column {
  readonly streams: LiveStream[]
  /** The value of each stream, NaN if it is not a number. */
  numbers: Float64Array
  /** The entity of each stream. */
  rids: Float64Array
}

const columnSize = 16
const none: Column = { streams: [], numbers: new Float64Array(0), rids: new Float64Array(0) }

export function createUnwritten() {
  const columns = new Map<string, Column>()

  const columnOf = (name: string): Column => {
    const known = columns.get(name)
    if (known !== undefined) return known
    const column = { streams: [], numbers: new Float64Array(columnSize), rids: new Float64Array(columnSize) }
    columns.set(name, column)
    return column
  }

  return Object.freeze({
    /** Adds a stream, or updates its value. */
    note(stream: LiveStream): void {
      const column = columnOf(stream.name)
      if (stream.dirtyAt < 0) {
        stream.dirtyAt = column.streams.push(stream) - 1
        if (stream.dirtyAt >= column.numbers.length) {
          column.numbers = doubled(column.numbers)
          column.rids = doubled(column.rids)
        }
        column.rids[stream.dirtyAt] = stream.entity.rid
      }
      column.numbers[stream.dirtyAt] = typeof stream.value === 'number' ? stream.value : Number.NaN
    },

    /**
     * Removes a stream whose document includes the value, or that was deleted; the last one takes its index.
     */
    remove(stream: LiveStream): void {
      if (stream.dirtyAt < 0) return
      const { streams, numbers, rids } = columns.get(stream.name)!
      const last = streams.pop()!
      if (last !== stream) {
        streams[stream.dirtyAt] = last
        numbers[stream.dirtyAt] = numbers[streams.length]!
        rids[stream.dirtyAt] = rids[streams.length]!
        last.dirtyAt = stream.dirtyAt
      }
      stream.dirtyAt = -1
      if (streams.length === 0) columns.delete(stream.name)
    },

    isEmpty: (name: string): boolean => !columns.has(name),

    /** The entities of the streams of an attribute whose value matches. */
    fitting(name: string, { fits, low, high }: ValueTest): number[] {
      const { streams, numbers, rids } = columns.get(name) ?? none
      const found: number[] = []
      for (let at = 0; at < streams.length; at++) {
        const number = numbers[at]!
        // A single, well-predicted branch; both comparisons are false for NaN.
        if ((Number(number < low) | Number(number > high)) !== 0) continue
        if (fits(Number.isNaN(number) ? streams[at]!.value : number)) found.push(rids[at]!)
      }
      return found
    },

    /** The streams from which an attribute of this name is rendered. */
    mirrored: (mirror: string): readonly LiveStream[] =>
      [...columns.values()].flatMap(({ streams }) => streams.filter((stream) => stream.mirror === mirror)),
  })
}

function doubled(numbers: Float64Array): Float64Array {
  const larger = new Float64Array(2 * numbers.length)
  larger.set(numbers)
  return larger
}
