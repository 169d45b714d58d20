/**
 * The temporal evolution of one entity: instances of its attributes from change records, chunks and tails,
 * merged in order of time (GS CIM 009, 5.7.3). A deleted entity keeps its history. Successive entities with
 * the same id form one evolution. A history that a client erased does not exist unless something was written
 * since.
 */

import { identityOf } from '#broker/state/streams.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { beginningOf } from '#ngsi-ld/history/temporal-part.ts'
import { type TimedInstance, type TimeProperty, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import { sizeOfJson } from '#ngsi-ld/values/json-size.ts'
import { decodeChunk, type StreamInstance } from '#store/chunks/chunk-codec.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import type { ChunkRow } from '#store/history/history-rows.ts'
import { correctionsOf, type StreamCorrections, timesBetween } from './corrections.ts'
import {
  chunkTimes,
  type EvolutionPorts,
  isWanted,
  type Life,
  type ObservedWindow,
  observedInstance,
  type RecordedObservations,
  replacedOf,
  tailWithin,
  takeChanges,
  windowOf,
} from './evolution-sources.ts'
import { isScopeChangeId, observationIn } from './instance-ids.ts'
import { type EntityHistory, LargeHistory, type TemporalQuery } from './temporal-requests.ts'

/** The entities that had an id, oldest first, and the state of the last one. */
export interface Lives {
  readonly rids: readonly Life[]
  readonly entity: Entity
  readonly created: number | undefined
  readonly modified: number
  readonly deleted: number | undefined
}

/** Returns undefined if no entity ever had this id, or its history is empty. */
export function livesOf(ports: EvolutionPorts, id: string): Lives | undefined {
  const { entities, edits } = ports
  const current = entities.byId(id)
  const tombstones = entities.tombstones(id)
  if (current === undefined && tombstones.length === 0) return undefined
  // While a deletion is being committed, an entity has both a document and a tombstone.
  const numbered = new Map([
    ...tombstones.map(({ rid, n }) => [rid, n] as const),
    ...(current === undefined ? [] : [[current.rid, latestOf(ports, current, 'number')] as const]),
  ])
  const rids = [...numbered].flatMap(([rid, number]) => {
    const corrections = correctionsOf(edits, rid)
    return number > corrections.erasedNumber ? [[rid, corrections] as const] : []
  })
  if (rids.length === 0) return undefined
  const tombstone = tombstones.at(-1)
  return {
    rids,
    entity: JSON.parse(current?.doc ?? tombstone!.doc) as Entity,
    created: current?.created ?? tombstone?.created ?? undefined,
    modified: current === undefined ? tombstone!.at : latestOf(ports, current, 'modified'),
    deleted: current === undefined ? tombstone!.at : undefined,
  }
}

/** The log number or commit time of the last change of an entity. */
function latestOf({ live }: EvolutionPorts, row: EntityRow, what: 'number' | 'modified'): number {
  let last = what === 'number' ? row.n : row.modified
  for (const stream of live.entity(row.rid)?.streams ?? []) last = Math.max(last, stream[what])
  return last
}

export function evolutionOf(
  ports: EvolutionPorts,
  id: string,
  query: TemporalQuery,
): EntityHistory | undefined {
  const lives = livesOf(ports, id)
  if (lives === undefined) return undefined
  const found = new Map<string, TimedInstance[]>()
  const streams = streamsOf(ports, lives, query)
  const order: Order = (name, list) => {
    const ordered = putInOrder(name, list, query.timeproperty)
    return streams.several.has(name) ? withoutRepeats(ordered) : ordered
  }
  const bounds = createBounds(query, found, order)
  let allTimed = true
  let left = query.bytesMax ?? Number.POSITIVE_INFINITY
  const add = (name: string, one: TimedInstance): boolean => {
    const time = timeOf(one, query.timeproperty)
    if (time === undefined) allTimed = false
    if (time === undefined || !bounds.fits(name, time)) return false
    if (query.bytesMax !== undefined) left -= sizeOfJson(one.instance)
    if (left < 0) throw new LargeHistory()
    const list = found.get(name) ?? []
    if (list.push(one) === 1) found.set(name, list)
    else if (query.timeproperty !== 'observedAt' && bounds.isFull(name, list.length)) bounds.draw(name)
    return true
  }
  const recorded = takeChanges(ports, lives.rids, {
    query,
    take({ name, one }) {
      const isObserved = one.observedAt !== undefined && one.deletedAt === undefined
      if (query.unobserved !== true || !isObserved) add(name, one)
    },
  })
  for (const { s, name, dataset, own } of streams.all)
    addStream(ports, { s, name, own, recorded: recorded(name, dataset) }, { query, add, bounds })
  const { entity, created, modified, deleted } = lives
  const head = { id, type: entity.type, entity, created, modified, deleted, allTimed }
  return { ...head, ...arrange(found, query, order) }
}

/** The range of times that can still be part of the result. */
interface Bounds {
  fits(name: string, time: number): boolean
  /** Whether a time between `first` and `last`, inclusive, fits. */
  fitAny(name: string, first: number, last: number): boolean
  /** Whether enough instances were found to make `draw` worthwhile. */
  isFull(name: string, count: number): boolean
  /** Discards instances that cannot be part of the result, and narrows the range accordingly. */
  draw(name: string): void
}

/** Sorts the instances of an attribute for output. */
type Order = (name: string, list: TimedInstance[]) => TimedInstance[]

function createBounds(query: TemporalQuery, found: Map<string, TimedInstance[]>, order: Order): Bounds {
  const { lastN, limit, timeproperty } = query
  const window = windowOf(query)
  const most = lastN === undefined ? limit + 1 : Math.min(lastN, limit + 1)
  const beyond = new Map<string, number>()
  const full = new Map<string, number>()
  const least = Math.max(2 * limit, 2048)
  return {
    isFull: (name, count) => count >= (full.get(name) ?? least),
    fits(name, time) {
      if (time < window.from || time >= window.to) return false
      const bound = beyond.get(name)
      return bound === undefined || (lastN === undefined ? time <= bound : time >= bound)
    },
    fitAny(name, first, last) {
      if (last < window.from || first >= window.to) return false
      const bound = beyond.get(name)
      return bound === undefined || (lastN === undefined ? first <= bound : last >= bound)
    },
    draw(name) {
      const list = order(name, found.get(name) ?? [])
      if (list.length < most) return
      const kept = partOf(list, query, (one) => timeOf(one, timeproperty)!)
      found.set(name, kept)
      full.set(name, Math.max(least, 2 * kept.length))
      beyond.set(name, timeOf(kept.at(lastN === undefined ? -1 : 0)!, timeproperty)!)
    },
  }
}

/**
 * Sorts by the time property, then by order of commit. Change records of one commit stay in log order, in
 * either reading direction. Observations of streams have no log number; among them, instances without
 * observedAt precede those with observedAt (in that order), and deletions are last.
 */
function putInOrder(name: string, all: TimedInstance[], property: TimeProperty): TimedInstance[] {
  const list = name === 'scope' ? withoutEchoes(all) : all
  const isLogged = list.every(({ number }) => number !== undefined)
  return list.sort((a, b) => {
    const byTime = timeOf(a, property)! - timeOf(b, property)!
    if (byTime !== 0) return byTime
    if (property === 'observedAt' && a.createdAt !== b.createdAt) return a.createdAt - b.createdAt
    const byKind = isLogged ? 0 : kindOfTime(a) - kindOfTime(b) || (a.observedAt ?? 0) - (b.observedAt ?? 0)
    return byKind || (a.number ?? 0) - (b.number ?? 0)
  })
}

const kindOfTime = ({ observedAt, deletedAt }: TimedInstance): number =>
  deletedAt === undefined ? Number(observedAt !== undefined) : 2

interface Reading {
  readonly query: TemporalQuery
  readonly add: (name: string, one: TimedInstance) => boolean
  readonly bounds: Bounds
}

interface OwnStream {
  readonly s: number
  readonly name: string
  readonly dataset: string
  readonly own: StreamCorrections
}

/** The streams of all lives of an entity, and the attributes with several streams for one instance. */
function streamsOf(
  ports: EvolutionPorts,
  { rids }: Lives,
  query: TemporalQuery,
): { readonly all: readonly OwnStream[]; readonly several: ReadonlySet<string> } {
  if (query.timeproperty === 'deletedAt' || query.unobserved === true) return { all: [], several: new Set() }
  const known = new Set<string>()
  const several = new Set<string>()
  const all: OwnStream[] = []
  for (const [rid, corrections] of rids)
    for (const { s, name: number, dataset } of ports.history.streamsOf(rid)) {
      const name = ports.names.text(number)!
      if (!isWanted(query, name, dataset)) continue
      const key = `${name} ${dataset}`
      if (known.has(key)) several.add(name)
      known.add(key)
      all.push({ s, name, dataset, own: corrections.ofStream(s, name, dataset) })
    }
  return { all, several }
}

/** Removes observations that several streams contain; the one committed first remains. */
function withoutRepeats(ordered: readonly TimedInstance[]): TimedInstance[] {
  const known = new Set<string>()
  return ordered.filter(({ instance, instanceId, observedAt }) => {
    if (observedAt === undefined || observationIn(instanceId) === undefined) return true
    const identity = `${instance.datasetId ?? ''} ${identityOf(observedAt, instance.value ?? null)}`
    return known.size < known.add(identity).size
  })
}

interface StreamReading {
  readonly s: number
  readonly name: string
  readonly own: StreamCorrections
  readonly recorded: RecordedObservations
}

function addStream(ports: EvolutionPorts, stream: StreamReading, { query, add, bounds }: Reading): void {
  const { s, name, own, recorded } = stream
  // Chunks are ordered by observedAt; for other time properties, any chunk may contain matches.
  const isNarrow = query.timeproperty === 'observedAt'
  const window = isNarrow ? windowOf(query) : { ...chunkTimes, to: chunkTimes.to + 1 }
  const span = { from: Math.max(window.from, chunkTimes.from), to: Math.min(window.to, chunkTimes.to) }
  const isLeft = ({ time, modified, value }: Omit<StreamInstance, 'shape'>): boolean =>
    modified > own.erasedUntil && !recorded.has(time, value) && own.editOf(time, value) === undefined
  // Checked before an instance is created, since chunks contain more than the window.
  const isMeant = (one: Omit<StreamInstance, 'shape'>): boolean =>
    bounds.fits(name, isNarrow ? one.time : one.modified) && isLeft(one)
  const put = (one: Omit<StreamInstance, 'shape'>, shape: string): boolean =>
    isMeant(one) && add(name, observedInstance(s, shape, one))
  const unfolded = tailWithin(ports.live.stream(s)?.tail, window)
  const tail = new Map(
    boundedTail(unfolded.filter(isLeft), query).map((one) => [identityOf(one.time, one.value), one]),
  )
  const tailTimes = [...tail.values()].map(({ time }) => time)
  const isEnough = enoughOf(query)
  let reached = Number.POSITIVE_INFINITY
  /** Adds the instances of a chunk; returns whether no further chunk is needed. */
  const addChunk = (chunk: ChunkRow): boolean => {
    const series = decodeChunk(chunk)
    const at = (i: number): Omit<StreamInstance, 'shape'> => ({
      time: series.times[i]!,
      modified: series.modified[i]!,
      value: series.values[i]!,
    })
    const start = startOfLast(series.times, query, (i) => isMeant(at(i)))
    for (let i = start; i < series.times.length && reached === Number.POSITIVE_INFINITY; i++) {
      const one = at(i)
      // During a fold, an observation may be both on disk and in memory.
      if (tail.size > 0) tail.delete(identityOf(one.time, one.value))
      const shape = series.shapes[series.shapeOf?.[i] ?? 0]!
      if (put(one, shape)) reached = isEnough(one.time, series.times[i + 1])
    }
    return reached < Number.POSITIVE_INFINITY || start > 0
  }
  for (const chunk of chunksOf(ports, stream, span, query)) {
    const [first, last] = isNarrow ? [chunk.t0, chunk.t1] : [chunk.m0, chunk.m1]
    if (!bounds.fitAny(name, first, last)) {
      if (isNarrow && query.lastN === undefined) break
      // It may contain originals of observations sent again since; those count as written when first sent.
      if (isNarrow || timesBetween(tailTimes, chunk.t0, chunk.t1).length === 0) continue
    }
    if (addChunk(chunk)) break
  }
  // Chunks do not overlap in time; late observations in the tail belong between them.
  for (const one of tail.values()) if (one.time <= reached) put(one, one.shape)
  if (own.replaced.length === 0) return
  if (isNarrow) bounds.draw(name)
  const fits = (time: number): boolean => bounds.fits(name, time)
  for (const one of replacedOf(ports, s, own, { property: query.timeproperty, fits })) add(name, one)
}

/**
 * Returns a function to call with the time of each instance of a stream in turn, and of the next if known. It
 * returns the time up to which the instances suffice, or infinity. They suffice with more than `limit`
 * instances, complete times and at least two distinct times, since a partial response needs a continuation
 * point.
 */
function enoughOf({ timeproperty, lastN, limit }: TemporalQuery): (time: number, next?: number) => number {
  if (timeproperty !== 'observedAt' || lastN !== undefined) return () => Number.POSITIVE_INFINITY
  let count = 0
  let first = Number.POSITIVE_INFINITY
  return (time, next = Number.POSITIVE_INFINITY) => {
    first = Math.min(first, time)
    return ++count > limit && time > first && next > time ? time : Number.POSITIVE_INFINITY
  }
}

/**
 * The index in a chunk where the last instances begin, with at least two distinct times; 0 if all may be
 * needed.
 */
function startOfLast(
  times: Float64Array,
  { timeproperty, lastN, limit }: TemporalQuery,
  isMeant: (i: number) => boolean,
): number {
  if (timeproperty !== 'observedAt' || lastN === undefined) return 0
  const most = Math.min(lastN, limit + 1)
  let count = 0
  let last = Number.NEGATIVE_INFINITY
  for (let i = times.length - 1; i > 0; i--) {
    if (!isMeant(i)) continue
    last = Math.max(last, times[i]!)
    if (++count >= most && times[i]! < last) return i
  }
  return 0
}

/** The oldest instances that a response can contain, or the newest if the query has lastN. */
function boundedTail(instances: StreamInstance[], query: TemporalQuery): StreamInstance[] {
  return query.timeproperty === 'observedAt' ? partOf(instances, query, ({ time }) => time) : instances
}

/**
 * The instances of an ascending list that a response may need: limit + 1, all of the first time, and one of
 * the second, because a partial response needs a continuation point. With `lastN` the same from the end, at
 * most `lastN`.
 */
function partOf<One>(list: One[], { limit, lastN }: TemporalQuery, timeOfOne: (one: One) => number): One[] {
  const most = Math.min(limit + 1, lastN ?? Number.POSITIVE_INFINITY)
  if (list.length <= most) return list
  if (lastN === undefined) {
    const first = timeOfOne(list[0]!)
    const second = list.findIndex((one) => timeOfOne(one) !== first)
    return second < 0 ? list : list.slice(0, Math.max(most, second + 1))
  }
  const last = timeOfOne(list.at(-1)!)
  const before = list.findLastIndex((one) => timeOfOne(one) !== last)
  return list.slice(-Math.min(lastN, Math.max(most, list.length - before)))
}

/** Chunks that may overlap a span of observedAt, last chunk first if the query has lastN. */
function chunksOf(
  ports: EvolutionPorts,
  { s, own }: StreamReading,
  { from, to }: ObservedWindow,
  query: TemporalQuery,
): Iterable<ChunkRow> {
  const { lastN, limit, timeproperty } = query
  if (lastN === undefined) return ports.history.chunks(s, from, to)
  const chunks = ports.history.chunksBackwards(s, from, to)
  // The latest observations were mostly written last, so the first chunks read exclude most of the others.
  if (timeproperty !== 'observedAt') return chunks
  return lastChunks(chunks, own, { count: Math.min(lastN, limit + 1), before: windowOf(query).to })
}

/** The last chunks, in reverse order, that certainly contain `count` instances before a time. */
function* lastChunks(
  chunks: Iterable<ChunkRow>,
  own: StreamCorrections,
  { count, before }: { readonly count: number; readonly before: number },
): Generator<ChunkRow> {
  let rest = count
  for (const chunk of chunks) {
    yield chunk
    // A chunk beyond the end may contribute any number, and so may a chunk with erased instances.
    if (chunk.t1 < before && chunk.m0 > own.erasedUntil)
      rest -= chunk.count - own.timesWithin(chunk.t0, chunk.t1).length
    if (rest <= 0) return
  }
}

/**
 * Sorts each attribute by the time property, selects the newest `lastN`, and limits each to the first part.
 */
function arrange(
  found: Map<string, TimedInstance[]>,
  { lastN, limit, timeproperty }: TemporalQuery,
  order: Order,
): { attributes: ReadonlyMap<string, readonly TimedInstance[]>; cut: ReadonlySet<string> } {
  const attributes = new Map<string, readonly TimedInstance[]>()
  const cut = new Set<string>()
  for (const [name, all] of found) {
    const list = order(name, all)
    const wanted = lastN === undefined ? list : list.slice(-lastN)
    if (wanted.length > limit) cut.add(name)
    attributes.set(name, beginningOf(wanted, limit, { timeproperty, lastN }))
  }
  return { attributes, cut }
}

/** Removes scope changes that repeat an observed scope written in the same commit. */
function withoutEchoes(list: TimedInstance[]): TimedInstance[] {
  const keyOf = ({ modifiedAt, instance }: TimedInstance): string =>
    `${modifiedAt} ${JSON.stringify(instance['value'])}`
  const isChange = ({ instanceId, deletedAt }: TimedInstance): boolean =>
    isScopeChangeId(instanceId) && deletedAt === undefined
  const observed = new Set(list.filter((one) => one.observedAt !== undefined && !isChange(one)).map(keyOf))
  return list.filter((one) => !isChange(one) || !observed.has(keyOf(one)))
}
