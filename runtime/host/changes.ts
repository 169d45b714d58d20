/**
 * The log of changes for plugins. A batch names each changed entity once, in its current state, so a follower
 * that is behind has less work per change. A follower stores its cursor with its derived data. Nothing is
 * retained for followers: if the log no longer reaches back to the cursor, the follower reads everything
 * again.
 */

import { limits } from '#base/limits/limits.ts'
import { collectDiscarded, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { ChangeFeed, Followed, FollowedChange } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { ChangeBatch, ChangesPort, EntityState, Follower, ObservedValue } from '#contract'
import type { ObservationBatch } from '#store/chunks/observation-blob.ts'

export interface ChangesPorts {
  readonly following: ChangeFeed
  /** Calls the listener after each commit; returns a function that ends this. */
  readonly onCommit: (listener: () => void) => () => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}

/** The plugin that owns the followers. */
export interface Owner {
  readonly name: string
  /** Called when a follower failed too often. */
  quarantine(error: unknown): void
}

export function createChanges(ports: ChangesPorts, owner: Owner): ChangesPort {
  const { following } = ports
  return Object.freeze({
    position: () => following.position().n,
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
    follow: (from, follower) => follow(ports, owner, from, follower),
  } satisfies ChangesPort)
}

function stateOf(rid: number, view: EntityView): EntityState {
  let types: readonly string[] | undefined
  return {
    rid,
    id: view.id,
    get types() {
      types ??= [view.entity().type].flat()
      return types
    },
    entity: view.entity,
    text: view.text,
    times: view.times,
  }
}

/** Delivers batches one after the other with rests in between, until it is closed or has failed too often. */
function follow(
  { following, onCommit, clock, log }: ChangesPorts,
  owner: Owner,
  from: number,
  follower: Follower,
): { close(): void } {
  const streams = createStreams(following)
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
      void step()
    }, delay)
  }

  async function step(): Promise<void> {
    isBusy = true
    const begunAt = clock.monotonic()
    let rest = limits.pluginRestMs.value
    try {
      const rows = following.codedAfter(cursor, limits.pluginBatchRows.value, {
        observes: follower.observes === true,
        isEnough: () => clock.monotonic() - begunAt > limits.pluginBatchMs.value,
      })
      if (rows === undefined) cursor = await follower.readAnew()
      else if (rows.length > 0) {
        const batch = batchOf(rows, { following, streams }, follower)
        if (batch.changed.length > 0 || batch.deleted.length > 0 || batch.observed.length > 0)
          await follower.take(batch)
        cursor = batch.through
        // A follower far behind works at most half of the time.
        if (following.position().n - cursor > limits.pluginBatchRows.value)
          rest = Math.min(rest, clock.monotonic() - begunAt)
      }
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
        owner.quarantine(error)
      }
    }
    isBusy = false
    if (failures > 0 || isBehind()) wake(rest)
  }

  function close(): void {
    isClosed = true
    unwatch()
    clearTimeout(timer)
  }

  const unwatch = onCommit(() => wake(limits.pluginRestMs.value))
  if (isBehind()) wake(0)
  return { close }
}

type Row = Followed<ObservationBatch | undefined>

/** A position in a batch of observations. */
interface Place {
  batch: ObservationBatch
  at: number
}

/**
 * Builds a batch of a bounded number of entities, so that the next one follows soon; the remaining rows wait.
 */
function batchOf(
  rows: readonly Row[],
  { following, streams }: { readonly following: ChangeFeed; readonly streams: Streams },
  follower: Follower,
): ChangeBatch {
  /** The last change of each entity. */
  const touched = new Map<string, FollowedChange>()
  const newest = new Map<number, Place>()
  /** Number of streams whose entity has to be read. */
  let unknown = 0
  let last = rows[0]!
  for (const row of rows) {
    if (touched.size + unknown >= limits.pluginBatchEntities.value) break
    last = row
    if (isChange(row.what)) touched.set(row.what.id, row.what)
    else if (row.what !== undefined) unknown += note(newest, row.what, streams)
  }
  const changed: EntityState[] = []
  const deleted: string[] = []
  for (const [id, { type }] of touched) {
    // An entity that had another type at this change is not read; a later row reports a change of type.
    const found = isFollowed(follower, type) ? following.entityWithRid(id) : undefined
    const state = found && stateOf(found.rid, found.view)
    if (state !== undefined && isFollowed(follower, state.types)) changed.push(state)
    // It may have had one of the followed types before.
    else deleted.push(id)
  }
  const observed = [...newest].flatMap(([s, place]) => observedAt(place, streams.of(s)) ?? [])
  return { through: last.n, at: last.at, changed, deleted, observed }
}

/** Whether a follower wants entities of these types; a change without a type may concern any. */
const isFollowed = ({ types }: Follower, type: string | readonly string[] | undefined): boolean =>
  types === undefined || type === undefined || [type].flat().some((one) => types.has(one))

const isChange = (what: Row['what']): what is FollowedChange => what !== undefined && 'id' in what

/**
 * Keeps only the newest value of each stream, since thousands may arrive between two batches. Returns the
 * number of streams that are new here and unknown from earlier batches.
 */
function note(newest: Map<number, Place>, batch: ObservationBatch, streams: Pick<Streams, 'has'>): number {
  const { triples } = batch
  let unknown = 0
  for (let at = 0; at < triples.length; at += 3) {
    const coded = triples[at]!
    if (coded % 2 === 1) continue
    const s = coded / 2
    const known = newest.get(s)
    if (known === undefined) {
      newest.set(s, { batch, at })
      if (!streams.has(s)) unknown++
    } else {
      known.batch = batch
      known.at = at
    }
  }
  return unknown
}

function observedAt(
  { batch: { triples, others }, at }: Place,
  stream: Named | undefined,
): ObservedValue | undefined {
  if (stream === undefined) return undefined
  const value = triples[at + 2]!
  const other = Number.isNaN(value) ? others.find(([position]) => position * 3 === at) : undefined
  return { ...stream, time: triples[at + 1]!, value: other === undefined ? value : other[1] }
}

/** The entity and attribute of a stream, which never change. */
type Named = Pick<ObservedValue, 'id' | 'name'>

type Streams = ReturnType<typeof createStreams>

function createStreams(following: ChangeFeed) {
  const known = new Map<number, Named>()
  return Object.freeze({
    has: (s: number): boolean => known.has(s),
    /** Undefined if neither the entity nor its tombstone exists. */
    of(s: number): Named | undefined {
      const kept = known.get(s)
      if (kept !== undefined) return kept
      const found = following.streamOf(s)
      if (found === undefined) return undefined
      if (known.size >= limits.pluginStreamsKept.value) known.clear()
      const { id, name } = found
      known.set(s, { id, name })
      return { id, name }
    },
  })
}
