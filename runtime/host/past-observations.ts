/**
 * Observations of a span of commit times, read from history for a plugin whose cursor the log no longer
 * contains. Streams come first, then the instances of change records.
 */
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { ChangeFeed, CommitSpan } from '#broker/changes/change-feed.ts'
import type { PastObservation } from '#contract'
import { observedIn } from './change-batch.ts'

export async function* pastObservations(
  {
    following,
    clock,
  }: {
    readonly following: Pick<ChangeFeed, 'observations' | 'changes' | 'streamOf'>
    readonly clock: Pick<Clock, 'monotonic'>
  },
  span: CommitSpan,
): AsyncGenerator<readonly PastObservation[]> {
  const yieldIfDue = createYield(clock.monotonic, limits.pluginBatchMs.value)
  const most = limits.pluginSliceObservations.value
  for (const [s, read] of following.observations(span)) {
    const stream = following.streamOf(s)
    if (stream === undefined) continue
    const { id, name, dataset } = stream
    const part = await read(yieldIfDue)
    for (let from = 0; from < part.length; from += most) {
      const length = Math.min(most, part.length - from)
      yield Array.from({ length }, (_, i) => ({
        id,
        name,
        dataset,
        time: part.timeAt(from + i),
        value: part.valueAt(from + i),
      }))
      await yieldIfDue()
    }
  }
  for (const read of following.changes(span)) {
    const past = read()
    const found = (past?.instances ?? []).flatMap(
      ([name, instance]) => observedIn(past!.id, name, instance) ?? [],
    )
    for (let from = 0; from < found.length; from += most) yield found.slice(from, from + most)
    await yieldIfDue()
  }
}
