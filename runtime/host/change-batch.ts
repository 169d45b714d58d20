/**
 * The contents of a batch of changes: each changed entity once, in its current state, and the observations
 * that the follower wants. An observation is only decoded; its entity is read once per stream, while the
 * stream is still unknown.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, CodedRow, FollowedChange } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { ChangeBatch, EntityState, Follower, Json, Observation, PastObservation } from '#contract'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { ObservationBatch } from '#store/chunks/observation-blob.ts'

export function stateOf(rid: number, view: EntityView): EntityState {
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

/** A position in a row of observations. */
interface Place {
  row: CodedRow
  batch: ObservationBatch
  at: number
}

export interface BatchPorts {
  readonly following: ChangeFeed
  readonly streams: NamedStreams
  /** Ends the batch after any row. */
  readonly isEnough?: () => boolean
}

/**
 * Builds a batch of a bounded number of rows, entities and observations, so that the next one follows soon.
 * Further rows are not read. A row is never divided, since the cursor of a follower is the number of a row.
 * Returns undefined without rows.
 */
export function batchOf(
  rows: Iterable<CodedRow>,
  { following, streams, isEnough = () => false }: BatchPorts,
  follower: Follower,
): ChangeBatch | undefined {
  /** The last change of each entity. */
  const touched = new Map<string, FollowedChange>()
  const newest = new Map<number, Place>()
  const each: Observation[] = []
  /** Number of streams whose entity has to be read. */
  let unknown = 0
  let last: CodedRow | undefined
  let count = 0
  for (const row of rows) {
    last = row
    if (isChange(row.what)) {
      if (concerns(follower, row.what) || touched.has(row.what.id)) touched.set(row.what.id, row.what)
      if (follower.observes === 'each') each.push(...observedBy(row.what, row))
    } else if (follower.observes !== undefined) {
      if (follower.observes === 'each') {
        const read = streams.read()
        addObservations(each, { row, batch: row.what }, streams)
        unknown += streams.read() - read
      } else unknown += note(newest, { row, batch: row.what }, streams)
    }
    if (++count >= limits.pluginBatchRows.value || isEnough()) break
    if (touched.size + unknown >= limits.pluginBatchEntities.value) break
    if (each.length >= limits.pluginSliceObservations.value) break
  }
  if (last === undefined) return undefined
  for (const [s, place] of newest) {
    const stream = streams.of(s)
    if (stream !== undefined) each.push(observedAt(place, stream))
  }
  return { through: last.n, at: last.at, ...statesOf(touched, following, follower), observed: each }
}

/** The current states of changed entities that a follower wants, and the ids of the others. */
function statesOf(
  touched: ReadonlyMap<string, FollowedChange>,
  following: ChangeFeed,
  follower: Follower,
): Pick<ChangeBatch, 'changed' | 'deleted'> {
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
  return { changed, deleted }
}

/** Whether a follower wants entities of these types; a change without a type may concern any. */
const isFollowed = ({ types }: Follower, type: string | readonly string[] | undefined): boolean =>
  types === undefined || type === undefined || [type].flat().some((one) => types.has(one))

/** Whether a follower wants the type of a changed entity, or the entity may have had a wanted type before. */
const concerns = (follower: Follower, { kind, type, retyped }: FollowedChange): boolean =>
  kind === 'deleted' || retyped === true || isFollowed(follower, type)

const isChange = (what: CodedRow['what']): what is FollowedChange => 'id' in what

/**
 * Keeps only the newest value of each stream, since thousands may arrive between two batches. Returns the
 * number of streams that are new here and unknown from earlier batches.
 */
function note(
  newest: Map<number, Place>,
  { row, batch }: Pick<Place, 'row' | 'batch'>,
  streams: Pick<NamedStreams, 'has'>,
): number {
  const { triples } = batch
  let unknown = 0
  for (let at = 0; at < triples.length; at += 3) {
    const coded = triples[at]!
    if (coded % 2 === 1) continue
    const s = coded / 2
    if (!newest.has(s) && !streams.has(s)) unknown++
    newest.set(s, { row, batch, at })
  }
  return unknown
}

function observedAt(
  { row, batch: { triples, others }, at }: Place,
  { id, name, dataset }: Named,
  otherValues?: ReadonlyMap<number, Json>,
): Observation {
  const number = triples[at + 2]!
  const value = Number.isNaN(number) ? (otherValues ?? new Map(others)).get(at / 3)! : number
  const isLate = triples[at]! % 2 === 1
  const { n, at: committed, via } = row
  // Members by name: copied ones take longer, and there is one of these per observation and follower.
  return { id, name, dataset, time: triples[at + 1]!, value, n, committed, isLate, via }
}

/** Adds every observation of a row, in order of arrival. */
function addObservations(
  each: Observation[],
  { row, batch }: Pick<Place, 'row' | 'batch'>,
  streams: Pick<NamedStreams, 'of'>,
): void {
  const otherValues = new Map(batch.others)
  for (let at = 0; at < batch.triples.length; at += 3) {
    const stream = streams.of(Math.floor(batch.triples[at]! / 2))
    if (stream !== undefined) each.push(observedAt({ row, batch, at }, stream, otherValues))
  }
}

/** Observations in a change record: the first of a stream, and those written together with other changes. */
export function observedBy(change: FollowedChange, row: Pick<CodedRow, 'n' | 'at' | 'via'>): Observation[] {
  return change.instances.flatMap(([name, dataset, instance]) => {
    const past = instance === null ? undefined : observedIn(change.id, name, instance)
    const more = { n: row.n, committed: row.at, isLate: change.kind === 'temporal', via: row.via }
    return past === undefined ? [] : [{ ...past, dataset, ...more }]
  })
}

/** The observation that an attribute instance holds; undefined without observedAt or value. */
export function observedIn(
  id: string,
  name: string,
  instance: AttributeInstance,
): PastObservation | undefined {
  const { observedAt, datasetId, value } = instance as AttributeInstance & { readonly value?: Json }
  const time = typeof observedAt === 'string' ? dateTimeToMs(observedAt) : undefined
  if (time === undefined || value === undefined) return undefined
  return { id, name, dataset: typeof datasetId === 'string' ? datasetId : '', time, value }
}

/** The entity and attribute of a stream, which never change. */
type Named = Pick<Observation, 'id' | 'name' | 'dataset'>

export type NamedStreams = ReturnType<typeof createNamedStreams>

export function createNamedStreams(following: ChangeFeed) {
  const known = new Map<number, Named>()
  let read = 0
  return Object.freeze({
    has: (s: number): boolean => known.has(s),
    /** Number of streams read so far, since an entity is read for each. */
    read: (): number => read,
    /** Undefined if neither the entity nor its tombstone exists. */
    of(s: number): Named | undefined {
      const kept = known.get(s)
      if (kept !== undefined) return kept
      read++
      const found = following.streamOf(s)
      if (found === undefined) return undefined
      if (known.size >= limits.pluginStreamsKept.value) known.clear()
      const { id, name, dataset } = found
      const named = { id, name, dataset }
      known.set(s, named)
      return named
    },
  })
}
