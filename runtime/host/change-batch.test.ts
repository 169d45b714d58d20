/** A batch of each observation is complete and bounded, however many observations one commit holds. */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, CodedRow } from '#broker/changes/change-feed.ts'
import type { Follower } from '#contract'
import { batchOf, createNamedStreams } from './change-batch.ts'

const follower: Follower = { observes: 'each', take: () => undefined, readAnew: () => 0 }
const feed = { streamOf: (s: number) => ({ id: `urn:x:${s}`, name: 'a', dataset: '' }) } as ChangeFeed

/** A log row with so many observations of stream 7. */
const rowOf = (n: number, count: number): CodedRow => ({
  n,
  at: n,
  via: undefined,
  bytes: 6 * count,
  what: { triples: Float64Array.from({ length: 3 * count }, (_, i) => [14, i, 1][i % 3]!), others: [] },
})

it('passes a commit of 300,000 observations whole', () => {
  const batch = batchOf([rowOf(1, 300_000)], { following: feed, streams: createNamedStreams(feed) }, follower)
  expect([batch?.observed.length, batch?.through]).toEqual([300_000, 1])
})

it('ends at the limit of observations, and leaves the remaining rows to the next batch', () => {
  const most = limits.pluginSliceObservations.value
  const rows = [rowOf(1, most - 1), rowOf(2, 1), rowOf(3, 1)]
  const batch = batchOf(rows, { following: feed, streams: createNamedStreams(feed) }, follower)
  expect([batch?.observed.length, batch?.through]).toEqual([most, 2])
})

it('passes over entities of other types, and reads no row beyond the end of the batch', () => {
  const read: number[] = []
  const rows = function* (): Generator<CodedRow> {
    for (let n = 1; ; n++) {
      read.push(n)
      yield {
        n,
        at: n,
        via: undefined,
        bytes: 100,
        what: { ...change, id: `urn:x:${n}`, kind: n < 100 ? 'updated' : 'deleted' },
      }
    }
  }
  const batch = batchOf(
    rows(),
    { following: feed, streams: createNamedStreams(feed) },
    { ...follower, types: new Set(['Wanted']) },
  )
  const most = limits.pluginBatchEntities.value
  expect(batch).toMatchObject({ changed: [], observed: [], through: 99 + most })
  expect([batch?.deleted.length, batch?.deleted[0], read.length]).toEqual([most, 'urn:x:100', 99 + most])
})

const change = { rid: 1, by: 'http', at: 1, type: 'Other', instances: [] } as const
