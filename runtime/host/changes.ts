/**
 * The log as plugins follow it: what became of entities, each named once per batch as it is now, so that a follower that is
 * behind does less for it and not more. A follower keeps its cursor with what it derives; nothing is pinned for it, and
 * where the log does not reach back any more it reads everything anew.
 */

import { limits } from '#base/limits/limits.ts'
import { collectDiscarded, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Followed, FollowedChange, Following } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { ChangeBatch, ChangesPort, EntityState, Follower, ObservedValue } from '#contract'
import type { ObservationBatch } from '#store/chunks/observation-blob.ts'

export interface ChangesPorts {
  readonly following: Following
  /** Calls back after each commit; returns what ends that. */
  readonly onCommit: (listener: () => void) => () => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}

/** Of whom the followers are. */
export interface Owner {
  readonly name: string
  /** A follower failed too often. */
  quarantine(error: unknown): void
}

export function createChanges(ports: ChangesPorts, owner: Owner): ChangesPort {
  const { following } = ports
  return Object.freeze({
    position: () => following.position().n,
    entities(behind, limit) {
      // Whoever reads all of them reads large ones, too.
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

/** Takes batches one after the other, resting between them, until it is closed or failed too often. */
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
        // Who is far behind works half of the time.
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

/** Where in a batch of observations one is. */
interface Place {
  batch: ObservationBatch
  at: number
}

/** At most so many entities that the next batch comes soon; the rows beyond wait. */
function batchOf(
  rows: readonly Row[],
  { following, streams }: { readonly following: Following; readonly streams: Streams },
  follower: Follower,
): ChangeBatch {
  /** What the last change of each entity says of it. */
  const touched = new Map<string, FollowedChange>()
  const newest = new Map<number, Place>()
  /** Streams of which an entity has to be read to know what they are of. */
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
    // What is of another type by then is not read; whether it has become one of these since is told by a later row.
    const found = isFollowed(follower, type) ? following.entityWithRid(id) : undefined
    const state = found && stateOf(found.rid, found.view)
    if (state !== undefined && isFollowed(follower, state.types)) changed.push(state)
    // It may have been one of those, and is not any more.
    else deleted.push(id)
  }
  const observed = [...newest].flatMap(([s, place]) => observedAt(place, streams.of(s)) ?? [])
  return { through: last.n, at: last.at, changed, deleted, observed }
}

/** Whether what is of these types is told; a change that names none may be of any. */
const isFollowed = ({ types }: Follower, type: string | readonly string[] | undefined): boolean =>
  types === undefined || type === undefined || [type].flat().some((one) => types.has(one))

const isChange = (what: Row['what']): what is FollowedChange => what !== undefined && 'id' in what

/**
 * Thousands of values may come of one stream between two batches, and only the newest is told. Returns how many streams
 * are new here, and not known from earlier batches either.
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

/** What a stream is a stream of, which never changes. */
type Named = Pick<ObservedValue, 'id' | 'name'>

type Streams = ReturnType<typeof createStreams>

function createStreams(following: Following) {
  const known = new Map<number, Named>()
  return Object.freeze({
    has: (s: number): boolean => known.has(s),
    /** Undefined where neither an entity nor its tombstone is left. */
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
