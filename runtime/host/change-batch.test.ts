/** A batch of each observation is complete and bounded, however many observations one commit holds. */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { Follower } from '#contract'
import { batchOf, createNamedStreams, type FollowedRow } from './change-batch.ts'

const follower: Follower = { observes: 'each', take: () => undefined, readAnew: () => 0 }
const feed = { streamOf: (s: number) => ({ id: `urn:x:${s}`, name: 'a', dataset: '' }) } as ChangeFeed

/** A log row with so many observations of stream 7. */
const rowOf = (n: number, count: number): FollowedRow => ({
  n,
  at: n,
  via: undefined,
  what: { triples: Float64Array.from({ length: 3 * count }, (_, i) => [14, i, 1][i % 3]!), others: [] },
})

it('passes a commit of 300,000 observations whole', () => {
  const batch = batchOf([rowOf(1, 300_000)], { following: feed, streams: createNamedStreams(feed) }, follower)
  expect([batch.observed.length, batch.through]).toEqual([300_000, 1])
})

it('ends at the limit of observations, and leaves the remaining rows to the next batch', () => {
  const most = limits.pluginSliceObservations.value
  const rows = [rowOf(1, most - 1), rowOf(2, 1), rowOf(3, 1)]
  const batch = batchOf(rows, { following: feed, streams: createNamedStreams(feed) }, follower)
  expect([batch.observed.length, batch.through]).toEqual([most, 2])
})
