/**
 * Streams whose published value is newer than what their document says, by the name of their attribute. Their numbers lie
 * side by side, so that a search looks at a hundred thousand of them in the time of a few documents; only where a number
 * is within its bounds, or the value is none, it is asked further.
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
  /** Shape from an index on; the first entry starts at 0. */
  shapes: { from: number; shape: string }[]
  committed: number
  /** So many of the first are packed into chunks by the group being written. */
  leaving: number
  /** Roughly what the instances hold in memory. */
  bytes: number
  /** No instance of the tail has a smaller log number; 0 when the tail is empty. */
  firstNumber: number
  /** Monotonic ms when the oldest instance came. */
  since: number
}

/** One observed attribute instance. Fields named `next...` and `newest...` are staged, the others published. */
export interface LiveStream {
  readonly s: number
  readonly entity: LiveEntity
  readonly name: string
  readonly dataset: string
  shape: string
  /** Log number since which that is the shape, as far as is known. */
  shapedAt: number
  /** Attribute rendered from observedAt (sosa:resultTime), if any. */
  mirror: string | undefined
  time: number
  value: Json
  modified: number
  number: number
  /** Through which other brokers the value came; undefined where it began here. */
  heard: string | undefined
  nextTime: number
  nextValue: Json
  nextModified: number
  nextNumber: number
  nextHeard: string | undefined
  newestTime: number
  newestValue: Json
  newestTimeBefore: number
  newestValueBefore: Json
  touched: boolean
  /** Position among the unwritten streams of its attribute name; -1 when the document includes the value. */
  dirtyAt: number
  readonly tail: Tail
  /** True when this object may no longer be used: deleted, or dropped from memory. */
  gone: boolean
  /** Subscriptions that may care, as the matcher keeps them, and its version they were found at. */
  candidates: unknown
  candidatesVersion: number
}

/** The streams of one attribute; each knows its place as `dirtyAt`. */
interface Column {
  readonly streams: LiveStream[]
  /** The value of each, NaN where it is no number. */
  numbers: Float64Array
  /** The entity of each. */
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
    /** Takes in a stream, or its new value. */
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

    /** The document says the value, or the stream is gone; the last one takes its place. */
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

    /** The entities of the streams of an attribute whose value fits. */
    fitting(name: string, { fits, low, high }: ValueTest): number[] {
      const { streams, numbers, rids } = columns.get(name) ?? none
      const found: number[] = []
      for (let at = 0; at < streams.length; at++) {
        const number = numbers[at]!
        // One jump that is nearly always taken; of NaN both are false.
        if ((Number(number < low) | Number(number > high)) !== 0) continue
        if (fits(Number.isNaN(number) ? streams[at]!.value : number)) found.push(rids[at]!)
      }
      return found
    },

    /** The streams that an attribute of this name is rendered from. */
    mirrored: (mirror: string): readonly LiveStream[] =>
      [...columns.values()].flatMap(({ streams }) => streams.filter((stream) => stream.mirror === mirror)),
  })
}

function doubled(numbers: Float64Array): Float64Array {
  const larger = new Float64Array(2 * numbers.length)
  larger.set(numbers)
  return larger
}
