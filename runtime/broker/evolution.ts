/**
 * The temporal evolution of one entity: instances of its attributes from change records, chunks and tails, merged in
 * order of time (GS CIM 009, 5.7.3). A deleted entity keeps its history; entities that had the same id one after the
 * other are told as one evolution. What a client erased, with nothing written since, never was.
 */
import type { Entity } from '#ngsi-ld/entity.ts'
import { type TimedInstance, type TimeProperty, timeOf } from '#ngsi-ld/temporal.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { EntityRow } from '#store/entities.ts'
import type { ChunkRow } from '#store/history.ts'
import { type Corrections, correctionsOf } from './corrections.ts'
import {
  chunkTimes,
  type EvolutionPorts,
  identityOf,
  isWanted,
  observedInstance,
  type TailInstance,
  tailWithin,
  toldByChanges,
  type Window,
  windowOf,
} from './evolution-sources.ts'
import type { EntityHistory, TemporalQuery } from './types.ts'

/** The entities that had an id, oldest first, and what is known of the last one. */
export interface Lives {
  readonly rids: readonly (readonly [rid: number, corrections: Corrections])[]
  readonly entity: Entity
  readonly created: number | undefined
  readonly modified: number
  readonly deleted: number | undefined
}

/** Returns undefined when no entity of this id ever was, or nothing is left of its history. */
export function livesOf(ports: EvolutionPorts, id: string): Lives | undefined {
  const { entities, edits } = ports
  const current = entities.byId(id)
  const graves = entities.tombstones(id)
  if (current === undefined && graves.length === 0) return undefined
  // While a deletion is on its way an entity has both its document and its tombstone.
  const numbered = new Map([
    ...graves.map(({ rid, n }) => [rid, n] as const),
    ...(current === undefined ? [] : [[current.rid, latestOf(ports, current, 'number')] as const]),
  ])
  const rids = [...numbered].flatMap(([rid, number]) => {
    const corrections = correctionsOf(edits, rid)
    return number > corrections.erasedNumber ? [[rid, corrections] as const] : []
  })
  if (rids.length === 0) return undefined
  const grave = graves.at(-1)
  return {
    rids,
    entity: JSON.parse(current?.doc ?? grave!.doc) as Entity,
    created: current?.created ?? grave?.created ?? undefined,
    modified: current === undefined ? grave!.at : latestOf(ports, current, 'modified'),
    deleted: current === undefined ? grave!.at : undefined,
  }
}

/** The log number or the commit time of the last thing that became of an entity. */
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
  const window = windowOf(query)
  const found = new Map<string, TimedInstance[]>()
  const beyond = new Map<string, number>()
  const fits = (name: string, time: number): boolean => {
    if (time < window.from || time >= window.to) return false
    const bound = beyond.get(name)
    return bound === undefined || (query.lastN === undefined ? time <= bound : time >= bound)
  }
  const bind = (name: string, list: TimedInstance[]): void => {
    const { kept, bound } = boundTo(putInOrder(name, list, query.timeproperty), query)
    found.set(name, kept)
    if (bound !== undefined) beyond.set(name, bound)
  }
  const add = (name: string, one: TimedInstance): boolean => {
    const time = timeOf(one, query.timeproperty)
    if (time === undefined || !fits(name, time)) return false
    const list = found.get(name) ?? []
    if (list.push(one) === 1) found.set(name, list)
    else if (query.timeproperty !== 'observedAt' && list.length >= Math.max(2 * query.limit, 2048))
      bind(name, list)
    return true
  }
  for (const [rid, corrections] of lives.rids) {
    const told = addChanges(ports, rid, { query, corrections, add })
    const isStreamed = query.timeproperty !== 'deletedAt' && query.unobserved !== true
    if (isStreamed) addStreams(ports, rid, { query, window, corrections, told, add, fits })
  }
  const { entity, created, modified, deleted } = lives
  return { id, type: entity.type, entity, created, modified, deleted, ...arrange(found, query) }
}

/**
 * What comes in another order than that of its times is thrown away in between, as far as nobody will see it: what is kept,
 * and the time beyond which nobody will see anything, once there is more than an answer holds.
 */
function boundTo(
  list: TimedInstance[],
  { lastN, limit, timeproperty }: TemporalQuery,
): { readonly kept: TimedInstance[]; readonly bound: number | undefined } {
  const kept = lastN === undefined ? list.slice(0, limit + 1) : list.slice(-limit - 1)
  const last = kept.length > limit ? kept.at(lastN === undefined ? -1 : 0) : undefined
  return { kept, bound: last && timeOf(last, timeproperty) }
}

/**
 * By the time asked for. What one commit made shares its time: change records are in the order of the log then, in
 * whichever direction they were read. Beside observations of streams, which know no place in the log, the order is what
 * has no observedAt, what has one by that, and what was deleted.
 */
function putInOrder(name: string, all: TimedInstance[], property: TimeProperty): TimedInstance[] {
  const list = name === 'scope' ? withoutEchoes(all) : all
  const isLogged = list.every(({ number }) => number !== undefined)
  return list.sort((a, b) => {
    const byTime = timeOf(a, property)! - timeOf(b, property)!
    if (byTime !== 0) return byTime
    const byKind = isLogged ? 0 : kindOfTime(a) - kindOfTime(b) || (a.observedAt ?? 0) - (b.observedAt ?? 0)
    return byKind || (a.number ?? 0) - (b.number ?? 0)
  })
}

const kindOfTime = ({ observedAt, deletedAt }: TimedInstance): number =>
  deletedAt === undefined ? Number(observedAt !== undefined) : 2

type Add = (name: string, one: TimedInstance) => boolean

interface Reading {
  readonly query: TemporalQuery
  readonly corrections: Corrections
  readonly add: Add
}

/**
 * A device that sends its first reading again, later, finds it in the record of the creation, not in a stream. A record
 * that only says again what another said (a late frame with another unit) tells nothing new. Returns the identities of
 * what was told.
 */
function addChanges(
  ports: EvolutionPorts,
  rid: number,
  { query, corrections, add }: Reading,
): ReadonlyMap<string, string> {
  const told = new Map<string, string>()
  for (const { name, dataset, one } of toldByChanges(ports, rid, query, corrections)) {
    if (one.observedAt !== undefined && one.deletedAt === undefined) {
      if (query.unobserved === true) continue
      const key = keyOf(name, dataset, identityOf(one.observedAt, one.instance.value ?? null))
      const text = JSON.stringify(one.instance)
      if (told.get(key) === text) continue
      told.set(key, text)
    }
    add(name, one)
  }
  return told
}

const keyOf = (name: string, dataset: string, identity: string): string => `${name} ${dataset} ${identity}`

interface StreamReading extends Reading {
  readonly window: Window
  readonly told: ReadonlyMap<string, string>
  /** Whether an instance of this time may be in the answer, by what is known so far. */
  readonly fits: (name: string, time: number) => boolean
}

function addStreams(ports: EvolutionPorts, rid: number, reading: StreamReading): void {
  const { query, window, corrections, told, add, fits } = reading
  // Chunks are ordered by observedAt; a window on another time property has to see all of them.
  const narrow = query.timeproperty === 'observedAt'
  const from = narrow ? Math.max(window.from, chunkTimes.from) : chunkTimes.from
  const to = narrow ? Math.min(window.to, chunkTimes.to) : chunkTimes.to
  for (const row of ports.history.streamsOf(rid)) {
    const name = ports.names.text(row.name)!
    if (!isWanted(query, name, row.dataset)) continue
    const put = (found: Omit<TailInstance, 'shape'>, shape: string): boolean => {
      const { time, modified, value } = found
      // Asked before anything is made of it, since chunks hold more than a window wants.
      if (corrections.isEmpty && !fits(name, narrow ? time : modified)) return false
      if (told.has(keyOf(name, row.dataset, identityOf(time, value)))) return false
      if (corrections.isEmpty) return add(name, observedInstance(row.s, shape, found))
      if (corrections.isObservationErased(name, row.dataset, modified)) return false
      const one = corrections.corrected(observedInstance(row.s, shape, found))
      return one !== undefined && add(name, one)
    }
    const tail = new Map(
      boundedTail(
        tailWithin(ports.live.stream(row.s)?.tail, narrow ? window : { from, to: to + 1 }),
        query,
      ).map((one) => [identityOf(one.time, one.value), one]),
    )
    let added = 0
    let reached = Number.POSITIVE_INFINITY
    for (const chunk of chunksOf(ports, row.s, { from, to }, reading)) {
      const series = decodeChunk(chunk)
      for (let i = 0; i < series.times.length; i++) {
        const [time, value] = [series.times[i]!, series.values[i]!]
        // A fold in flight may be on disk and in memory at once.
        if (tail.size > 0) tail.delete(identityOf(time, value))
        const shape = series.shapes[series.shapeOf?.[i] ?? 0]!
        if (put({ time, modified: series.modified[i]!, value }, shape)) added++
      }
      if (!narrow || added <= query.limit || query.lastN !== undefined) continue
      reached = chunk.t1
      break
    }
    // Chunks are one after the other in time; what came late is in the tail, and belongs between them.
    for (const one of tail.values()) if (one.time <= reached) put(one, one.shape)
  }
}

/** The oldest instances that an answer can hold, or the newest where the query asks for the last ones. */
function boundedTail(instances: TailInstance[], query: TemporalQuery): TailInstance[] {
  if (query.timeproperty !== 'observedAt') return instances
  const most = query.limit + 1
  return query.lastN === undefined ? instances.slice(0, most) : instances.slice(-Math.min(most, query.lastN))
}

function chunksOf(
  ports: EvolutionPorts,
  s: number,
  { from, to }: Window,
  { query, window, corrections }: StreamReading,
): Iterable<ChunkRow> {
  const isNarrow = query.timeproperty === 'observedAt'
  // Of what was corrected nobody knows how much is left.
  if (query.lastN === undefined || !isNarrow || !corrections.isEmpty) return ports.history.chunks(s, from, to)
  return lastChunks(
    ports.history.chunksBackwards(s, from, to),
    Math.min(query.lastN, query.limit + 1),
    window.to,
  )
}

/** As many chunks, the last first, as surely hold so many instances before `to`. */
function* lastChunks(chunks: Iterable<ChunkRow>, lastN: number, to: number): Generator<ChunkRow> {
  let rest = lastN
  for (const chunk of chunks) {
    yield chunk
    // Of a chunk that reaches beyond the end, any number may lie within.
    if (chunk.t1 < to) rest -= chunk.count
    if (rest <= 0) return
  }
}

/** Orders each attribute by the time property, and keeps the newest `lastN`, at most `limit` of each. */
function arrange(
  found: Map<string, TimedInstance[]>,
  { lastN, limit, timeproperty }: TemporalQuery,
): { attributes: ReadonlyMap<string, readonly TimedInstance[]>; cut: ReadonlySet<string> } {
  const cut = new Set<string>()
  for (const [name, all] of found) {
    const list = putInOrder(name, all, timeproperty)
    const wanted = lastN === undefined ? list : list.slice(-lastN)
    if (wanted.length > limit) cut.add(name)
    found.set(name, lastN === undefined ? wanted.slice(0, limit) : wanted.slice(-limit))
  }
  return { attributes: found, cut }
}

/** Scopes with the time that they were observed at make the entity have them; that change says nothing more. */
function withoutEchoes(list: TimedInstance[]): TimedInstance[] {
  const keyOf = ({ modifiedAt, instance }: TimedInstance): string =>
    `${modifiedAt} ${JSON.stringify(instance['value'])}`
  const observed = new Set(list.filter(({ observedAt }) => observedAt !== undefined).map(keyOf))
  return list.filter((one) => one.observedAt !== undefined || !observed.has(keyOf(one)))
}
