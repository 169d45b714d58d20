/** Followers of one log: each row is read from disk once, within a ceiling of memory. */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, CodedRow } from '#broker/changes/change-feed.ts'
import { createSharedLog, type SharedReader } from './shared-log.ts'

const rowOf = (n: number): CodedRow => ({
  n,
  at: n,
  via: undefined,
  bytes: 30,
  what: { triples: Float64Array.of(14, n, 1), others: [] },
})

/** A log of so many rows that notes which are read. */
function logOf(length: number, isHeld = false) {
  const read: number[] = []
  const rows = function* (after: number): Generator<CodedRow> {
    for (let n = after + 1; n <= length; n++) {
      read.push(n)
      yield rowOf(n)
    }
  }
  const feed = { codedAfter: rows, isHeld: () => isHeld } as Partial<ChangeFeed> as ChangeFeed
  return { read, log: createSharedLog(feed) }
}

/** Takes this many rows. */
function take(reader: SharedReader, count: number): number[] {
  const taken: number[] = []
  for (const { n } of reader.rows()!) {
    taken.push(n)
    if (taken.length === count) break
  }
  reader.move(taken.at(-1)!)
  return taken
}

it('reads a row once for all followers, whoever is ahead', () => {
  const { read, log } = logOf(9)
  const [a, b, c] = [log.read(0), log.read(0), log.read(2)]
  expect(take(a, 3)).toEqual([1, 2, 3])
  expect(take(b, 5)).toEqual([1, 2, 3, 4, 5])
  expect(take(a, 6)).toEqual([4, 5, 6, 7, 8, 9])
  expect(take(c, 7)).toEqual([3, 4, 5, 6, 7, 8, 9])
  expect(take(b, 4)).toEqual([6, 7, 8, 9])
  expect(read).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
})

it('reads rows again for a follower that is too far behind', () => {
  const most = limits.pluginRowsKept.value
  const { read, log } = logOf(3 * most)
  const [fast, slow] = [log.read(0), log.read(0)]
  expect(take(fast, 3 * most).length).toBe(3 * most)
  expect(take(slow, 3 * most)).toEqual(Array.from({ length: 3 * most }, (_, i) => i + 1))
  expect(read.length).toBe(2 * 3 * most)
})

it('shares nothing while the clock is not set, since times are corrected later', () => {
  const { read, log } = logOf(3, true)
  const [a, b] = [log.read(0), log.read(0)]
  for (const reader of [a, b]) expect(take(reader, 3)).toEqual([1, 2, 3])
  expect(read).toEqual([1, 2, 3, 1, 2, 3])
})

it('forgets rows when the followers that want them have ended', () => {
  const { read, log } = logOf(3)
  const [a, b] = [log.read(0), log.read(0)]
  take(a, 3)
  b.close()
  take(log.read(0), 3)
  expect(read).toEqual([1, 2, 3, 1, 2, 3])
})
