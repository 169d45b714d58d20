/**
 * The change log as the followers of this process share it: a row that several of them want is read and
 * decoded once, and so are the names of streams. Rows that a slower follower still wants stay in memory,
 * within a ceiling; beyond it, that follower reads them from disk again.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, CodedRow } from '#broker/changes/change-feed.ts'
import { createNamedStreams, type NamedStreams } from './change-batch.ts'

/** One follower's place in the log. */
export interface SharedReader {
  /** Rows after the reader's place, in order; undefined if the log does not reach back that far. */
  rows(): Iterable<CodedRow> | undefined
  /** Moves the reader to a row. */
  move(to: number): void
  close(): void
}

export interface SharedLog {
  readonly streams: NamedStreams
  read(from: number): SharedReader
}

export function createSharedLog(following: ChangeFeed): SharedLog {
  const readers = new Set<{ at: number }>()
  const kept = new Map<number, CodedRow>()
  let bytes = 0

  function drop(n: number, row: CodedRow): void {
    kept.delete(n)
    bytes -= row.bytes
  }

  function keep(row: CodedRow): void {
    kept.set(row.n, row)
    bytes += row.bytes
    for (const [n, one] of kept) {
      if (kept.size <= limits.pluginRowsKept.value && bytes <= limits.pluginRowBytesKept.value) return
      drop(n, one)
    }
  }

  /** Drops the rows that every reader has passed. */
  function dropPassed(): void {
    const passed = Math.min(...[...readers].map(({ at }) => at))
    for (const [n, row] of kept) if (n <= passed) drop(n, row)
  }

  /** Reads rows from disk, and keeps those that another reader has not passed. */
  function* fromDisk(rows: Iterable<CodedRow>, reader: { readonly at: number }): Iterable<CodedRow> {
    const others = Math.min(...[...readers].flatMap((one) => (one === reader ? [] : [one.at])))
    for (const row of rows) {
      if (row.n > others) keep(row)
      yield row
    }
  }

  function* fromMemory(reader: { readonly at: number }): Iterable<CodedRow> {
    let { at } = reader
    for (let row = kept.get(at + 1); row !== undefined; row = kept.get(at + 1)) {
      at++
      yield row
    }
    yield* fromDisk(following.codedAfter(at) ?? [], reader)
  }

  return Object.freeze({
    streams: createNamedStreams(following),
    read(from) {
      const reader = { at: from }
      readers.add(reader)
      return {
        rows() {
          // Times of a clock that was not set are corrected later.
          const isShared = !following.isHeld()
          if (isShared && kept.has(reader.at + 1)) return fromMemory(reader)
          const rows = following.codedAfter(reader.at)
          return isShared && rows !== undefined ? fromDisk(rows, reader) : rows
        },
        move(to) {
          reader.at = to
          dropPassed()
        },
        close() {
          readers.delete(reader)
          dropPassed()
        },
      }
    },
  } satisfies SharedLog)
}
