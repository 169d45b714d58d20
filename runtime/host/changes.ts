/**
 * The log of changes for plugins. A batch names each changed entity once, in its current state, so a follower
 * that is behind has less work per change. A follower stores its cursor with its derived data. Nothing is
 * retained for followers: if the log no longer reaches back to the cursor, the follower reads everything
 * again.
 */

import { limits } from '#base/limits/limits.ts'
import { inNextTurn } from '#base/load/yielding.ts'
import { collectDiscarded, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { ChangesPort, Follower } from '#contract'
import { batchOf, stateOf } from './change-batch.ts'
import { pastObservations } from './past-observations.ts'
import type { SharedLog } from './shared-log.ts'

export interface ChangesPorts {
  readonly following: ChangeFeed
  readonly shared: SharedLog
  /** Calls the listener after each commit; returns a function that ends this. */
  readonly onCommit: (listener: () => void) => () => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}

/** The plugin that owns the followers. */
export interface Owner {
  readonly name: string
  /** Called when a follower failed too often. */
  disable(error: unknown): void
}

/** A follower works at most a fifth of the time, so that several of them leave most of it to ingest. */
const restPerWork = 4

export function createChanges(ports: ChangesPorts, owner: Owner): ChangesPort {
  const { following, shared, onCommit, clock, log } = ports

  /** Delivers batches in order with rests in between, until it is closed or has failed too often. */
  function follow(from: number, follower: Follower): { close(): void } {
    const { streams } = shared
    const reader = shared.read(from)
    let cursor = from
    let failures = 0
    let isBusy = false
    let isClosed = false
    let timer: NodeJS.Timeout | undefined

    const isBehind = (): boolean => following.position().n > cursor
    const wake = (delay: number): void => {
      if (isClosed || isBusy || timer !== undefined) return
      timer = setTimeout(() => {
        timer = undefined
        isBusy = true
        inNextTurn(() => void step())
      }, delay)
    }

    async function step(): Promise<void> {
      if (isClosed) return
      const begunAt = clock.monotonic()
      let rest = limits.pluginRestMs.value
      try {
        const rows = reader.rows()
        const isEnough = (): boolean => clock.monotonic() - begunAt > limits.pluginBatchMs.value
        const batch = rows && batchOf(rows, { following, streams, isEnough }, follower)
        if (rows === undefined) cursor = await follower.readAnew()
        else if (batch !== undefined) {
          await follower.take(batch)
          cursor = batch.through
          const restAfterWork = restPerWork * (clock.monotonic() - begunAt)
          const isFarBehind = following.position().n - cursor > limits.pluginBatchRows.value
          rest = isFarBehind ? restAfterWork : Math.max(rest, restAfterWork)
        }
        reader.move(cursor)
        failures = 0
      } catch (error) {
        failures++
        rest = Math.min(limits.pluginRestMs.value * 2 ** failures, limits.pluginRetryMs.value)
        log.error('plugin.failed', {
          plugin: owner.name,
          during: 'a batch of changes',
          attempt: failures,
          error,
        })
        if (failures >= limits.pluginAttemptsMax.value) {
          close()
          owner.disable(error)
        }
      }
      isBusy = false
      if (failures > 0 || isBehind()) wake(rest)
    }

    function close(): void {
      isClosed = true
      unwatch()
      reader.close()
      clearTimeout(timer)
    }

    const unwatch = onCommit(() => wake(limits.pluginRestMs.value))
    if (isBehind()) wake(0)
    return { close }
  }

  return Object.freeze({
    position: () => following.position().n,
    lastCommitAt: () => following.position().at,
    entities(behind, limit) {
      // A full read passes large entities, so discarded memory is collected.
      collectDiscarded()
      const page = following.entities(behind, Math.min(limit, limits.pluginBatchEntities.value))
      for (const [, view] of page) noteDiscarded(view.text().length)
      return page.map(([rid, view]) => stateOf(rid, view))
    },
    entity(id) {
      const found = following.entityWithRid(id)
      return found && stateOf(found.rid, found.view)
    },
    follow,
    history: (span) => pastObservations(ports, span),
  } satisfies ChangesPort)
}
