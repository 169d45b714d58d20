/**
 * The temporal evolution of one entity: instances of its attributes from folded chunks, from unfolded tails, and from
 * entity changes (folded or still in the log), merged in order of time (GS CIM 009, 5.7.3). A deleted entity keeps
 * its history; entities that had the same id one after the other are told as one evolution.
 */
import { hash } from 'node:crypto'
import type { Json } from '#contract/pipeline.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance, Entity } from '#ngsi-ld/entity.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { Entities } from '#store/entities.ts'
import { decodeEntityChanges } from '#store/entity-changes.ts'
import type { ChunkRow, History } from '#store/history.ts'
import type { Records } from '#store/records.ts'
import type { LiveState, Tail } from './live.ts'
import type { Names } from './names.ts'
import type { Streams } from './streams.ts'
import type { EntityHistory, HistoricInstance, TemporalQuery } from './types.ts'

export interface EvolutionPorts {
  readonly entities: Entities
  readonly history: History
  readonly records: Records
  readonly names: Names
  readonly live: LiveState
  readonly streams: Streams
}

interface Window {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

interface ChangeRecord {
  readonly n: number
  readonly kind: string
  readonly at: number
  readonly type: string | readonly string[]
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
  ])[]
}

const earliest = Number.MIN_SAFE_INTEGER
const latest = Number.MAX_SAFE_INTEGER

/** Returns undefined when no entity of this id ever was. */
export function evolutionOf(
  ports: EvolutionPorts,
  id: string,
  query: TemporalQuery,
): EntityHistory | undefined {
  const current = ports.entities.byId(id)
  const graves = ports.entities.tombstones(id)
  if (current === undefined && graves.length === 0) return undefined
  const document = JSON.parse(current?.doc ?? graves.at(-1)!.doc) as Entity
  // While a deletion is on its way an entity has both its document and its tombstone.
  const rids = new Set([...graves.map(({ rid }) => rid), ...(current === undefined ? [] : [current.rid])])
  const window = windowOf(query)
  const found = new Map<string, HistoricInstance[]>()
  const add = (name: string, instance: HistoricInstance): boolean => {
    if (query.attrs !== undefined && !query.attrs.has(name)) return false
    const time = timeOf(instance, query.timeproperty)
    if (time === undefined || time < window.from || time >= window.to) return false
    const list = found.get(name)
    if (list === undefined) found.set(name, [instance])
    else list.push(instance)
    return true
  }
  for (const rid of rids) {
    // A device that sends its first reading again, later, finds it in the record of the creation, not in a stream.
    // A record that only says again what another said (a late frame with another unit) tells nothing new.
    const told = new Map<string, string>()
    addEntityChanges(ports, rid, query, (name, dataset, instance) => {
      if (instance.observedAt === undefined) return add(name, instance)
      const key = keyOf(name, dataset, instance)
      const text = JSON.stringify(instance.instance)
      if (told.get(key) === text || !add(name, instance)) return false
      told.set(key, text)
      return true
    })
    addStreams(ports, rid, query, window, (name, dataset, instance) =>
      told.has(keyOf(name, dataset, instance)) ? false : add(name, instance),
    )
  }
  return { id, type: document.type, ...arrange(found, query) }
}

function windowOf(query: TemporalQuery): Window {
  const at = query.timeAtMs ?? 0
  if (query.timerel === 'before') return { from: earliest, to: at }
  if (query.timerel === 'after') return { from: at, to: latest }
  if (query.timerel === 'between') return { from: at, to: query.endTimeAtMs ?? latest }
  return { from: earliest, to: latest }
}

function timeOf(instance: HistoricInstance, property: TemporalQuery['timeproperty']): number | undefined {
  if (property === 'observedAt') return instance.observedAt
  if (property === 'deletedAt') return instance.deleted === true ? instance.modifiedAt : undefined
  return instance.modifiedAt
}

/**
 * Changes that were no observations: one JSON record each, in the entity's history or still in the log. Reads from
 * the end that the query begins at, and no more than an answer can hold.
 */
function addEntityChanges(ports: EvolutionPorts, rid: number, query: TemporalQuery, add: Add): void {
  const texts = function* (): Generator<string> {
    const parts = ports.history.entityChanges(rid)
    // What a commit folded that is on disk but not published yet is in both.
    const folded = parts.at(-1)?.n1 ?? 0
    const unfolded = function* (): Generator<string> {
      for (const n of ports.streams.unfolded(rid)) {
        const row = n > folded ? ports.records.logAt(n) : undefined
        if (row !== undefined) yield Buffer.from(row.body).toString()
      }
    }
    if (query.lastN === undefined) {
      for (const part of parts) yield* decodeEntityChanges(part)
      yield* unfolded()
    } else {
      yield* [...unfolded()].toReversed()
      for (const part of parts.toReversed()) yield* decodeEntityChanges(part).toReversed()
    }
  }
  let added = 0
  for (const text of texts()) {
    const record = JSON.parse(text) as ChangeRecord
    record.instances.forEach(([name, dataset, instance], i) => {
      const instanceId = `urn:ngsi-ld:instance:n${record.n}-${i}`
      if (instance === null) {
        add(name, dataset, {
          instance: deletedInstance(record.at),
          modifiedAt: record.at,
          instanceId,
          deleted: true,
        })
        return
      }
      const observedAt = dateTimeToMs(instance.observedAt ?? '')
      const timed = observedAt === undefined ? {} : { observedAt }
      if (add(name, dataset, { instance, ...timed, modifiedAt: record.at, instanceId })) added++
    })
    if (added > query.limit) return
  }
}

function deletedInstance(at: number): AttributeInstance {
  return { type: 'Property', value: 'urn:ngsi-ld:null', deletedAt: msToDateTime(at) }
}

function addStreams(
  ports: EvolutionPorts,
  rid: number,
  query: TemporalQuery,
  window: Window,
  add: Add,
): void {
  // Chunks are ordered by observedAt; a window on another time property has to see all of them.
  const narrow = query.timeproperty === 'observedAt'
  const from = narrow ? Math.max(window.from, earliestChunkTime) : earliestChunkTime
  const to = narrow ? Math.min(window.to, latestChunkTime) : latestChunkTime
  for (const row of ports.history.streamsOf(rid)) {
    const name = ports.names.text(row.name)!
    if (query.attrs !== undefined && !query.attrs.has(name)) continue
    const put = (time: number, modifiedAt: number, value: Json, shape: string): boolean => {
      const instanceId = `urn:ngsi-ld:instance:s${row.s}-${time}-${hashOf(value)}`
      const instance = fromShape(shape, value, time)
      return add(name, row.dataset, { instance, observedAt: time, modifiedAt, instanceId })
    }
    const span = narrow ? window : { from: earliest, to: latest }
    const tail = tailOf(ports.live.stream(row.s)?.tail, span, query)
    let added = 0
    const isLast = query.lastN !== undefined && (narrow || window.to === latest)
    const chunks = isLast
      ? lastChunks(
          ports.history.chunksBackwards(row.s, from, to),
          Math.min(query.lastN, query.limit + 1),
          window.to,
        )
      : ports.history.chunks(row.s, from, to)
    for (const chunk of chunks) {
      const series = decodeChunk(chunk)
      for (let i = 0; i < series.times.length; i++) {
        const [time, value] = [series.times[i]!, series.values[i]!]
        // A fold in flight may be on disk and in memory at once.
        tail.delete(identityOf(time, value))
        if (put(time, series.modified[i]!, value, series.shapes[series.shapeOf?.[i] ?? 0]!)) added++
      }
      if (added > query.limit && query.lastN === undefined) break
    }
    if (added > query.limit && query.lastN === undefined) continue
    for (const { time, modified, value, shape } of tail.values()) put(time, modified, value, shape)
  }
}

type Add = (name: string, dataset: string, instance: HistoricInstance) => boolean

const keyOf = (name: string, dataset: string, { observedAt, instance }: HistoricInstance): string =>
  `${name} ${dataset} ${identityOf(observedAt!, instance.value ?? null)}`

interface TailInstance {
  readonly time: number
  readonly modified: number
  readonly value: Json
  readonly shape: string
}

/**
 * Committed instances of a tail within a span of observedAt, each identity once: the oldest that an answer can hold,
 * or the newest where the query asks for the last ones. A tail is in order of arrival.
 */
function tailOf(tail: Tail | undefined, span: Window, query: TemporalQuery): Map<string, TailInstance> {
  const instances = new Map<string, TailInstance>()
  if (tail === undefined) return instances
  const positions: number[] = []
  for (let i = 0; i < tail.committed; i++) {
    if (tail.times[i]! >= span.from && tail.times[i]! < span.to) positions.push(i)
  }
  positions.sort((a, b) => tail.times[a]! - tail.times[b]!)
  const most = query.limit + 1
  const kept =
    query.lastN === undefined ? positions.slice(0, most) : positions.slice(-Math.min(most, query.lastN))
  for (const i of query.timeproperty === 'observedAt' ? kept : positions) {
    const [time, value] = [tail.times[i]!, tail.values[i]!]
    const shape = tail.shapes.findLast(({ from }) => from <= i)!.shape
    instances.set(identityOf(time, value), { time, modified: tail.modified[i]!, value, shape })
  }
  return instances
}

const identityOf = (time: number, value: Json): string =>
  `${time} ${typeof value === 'number' ? value : JSON.stringify(value)}`

/** Tells instances of one time apart; stable, because an instance is its time and value. */
const hashOf = (value: Json): string => hash('sha1', JSON.stringify(value)).slice(0, 8)

/** Years 0000 to 9999. */
const earliestChunkTime = -62_167_219_200_000
const latestChunkTime = 253_402_300_799_999

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

/** Orders each attribute by the time property, keeps the newest `lastN`, and bounds the whole by `limit`. */
function arrange(
  found: Map<string, HistoricInstance[]>,
  query: TemporalQuery,
): { attributes: ReadonlyMap<string, readonly HistoricInstance[]>; truncated: boolean } {
  let total = 0
  for (const [name, list] of found) {
    list.sort((a, b) => timeOf(a, query.timeproperty)! - timeOf(b, query.timeproperty)!)
    const kept = query.lastN === undefined ? list : list.slice(-query.lastN)
    found.set(name, kept)
    total += kept.length
  }
  if (total <= query.limit) return { attributes: found, truncated: false }
  const share = Math.max(1, Math.floor(query.limit / found.size))
  for (const [name, list] of found) {
    found.set(name, query.lastN === undefined ? list.slice(0, share) : list.slice(-share))
  }
  return { attributes: found, truncated: true }
}
