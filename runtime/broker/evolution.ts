/**
 * The temporal evolution of one entity: instances of its attributes from folded chunks, from unfolded tails, and from
 * entity changes (folded or still in the log), merged in order of time (GS CIM 009, 5.7.3). A deleted entity keeps
 * its history; entities that had the same id one after the other are told as one evolution.
 */
import type { Json } from '#contract/pipeline.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance, Entity } from '#ngsi-ld/entity.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { Entities } from '#store/entities.ts'
import { decodeEntityChanges, type History } from '#store/history.ts'
import type { Records } from '#store/records.ts'
import type { LiveState } from './live.ts'
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
  readonly kind: string
  readonly at: number
  readonly type: string | readonly string[]
  readonly instances: readonly (readonly [name: string, dataset: string, instance: AttributeInstance | null])[]
}

const earliest = Number.MIN_SAFE_INTEGER
const latest = Number.MAX_SAFE_INTEGER

/** Returns undefined when no entity of this id ever was. */
export function evolutionOf(ports: EvolutionPorts, id: string, query: TemporalQuery): EntityHistory | undefined {
  const current = ports.entities.byId(id)
  const graves = ports.entities.tombstones(id)
  if (current === undefined && graves.length === 0) return undefined
  const document = JSON.parse(current?.doc ?? graves.at(-1)!.doc) as Entity
  const rids = [...graves.map((grave) => grave.rid), ...(current === undefined ? [] : [current.rid])]
  const window = windowOf(query)
  const found = new Map<string, HistoricInstance[]>()
  const add = (name: string, instance: HistoricInstance): void => {
    if (query.attrs !== undefined && !query.attrs.has(name)) return
    const time = timeOf(instance, query.timeproperty)
    if (time === undefined || time < window.from || time >= window.to) return
    const list = found.get(name)
    if (list === undefined) found.set(name, [instance])
    else list.push(instance)
  }
  for (const rid of rids) {
    addEntityChanges(ports, rid, add)
    addStreams(ports, rid, query, window, add)
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

/** Changes that were no observations: one JSON record each, in the entity's history or still in the log. */
function addEntityChanges(ports: EvolutionPorts, rid: number, add: (name: string, i: HistoricInstance) => void): void {
  const texts = ports.history.entityChanges(rid).flatMap(decodeEntityChanges)
  for (const n of ports.streams.unfolded(rid)) {
    const row = ports.records.logAt(n)
    if (row !== undefined) texts.push(Buffer.from(row.body).toString())
  }
  let ordinal = 0
  for (const text of texts) {
    const record = JSON.parse(text) as ChangeRecord
    for (const [name, , instance] of record.instances) {
      const instanceId = `urn:ngsi-ld:instance:${rid}-c${++ordinal}`
      if (instance === null) {
        add(name, { instance: deletedInstance(record.at), modifiedAt: record.at, instanceId, deleted: true })
        continue
      }
      const observedAt = dateTimeToMs(instance.observedAt ?? '')
      add(name, { instance, ...(observedAt === undefined ? {} : { observedAt }), modifiedAt: record.at, instanceId })
    }
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
  add: (name: string, i: HistoricInstance) => void,
): void {
  // Chunks are ordered by observedAt; a window on another time property has to see all of them.
  const narrow = query.timeproperty === 'observedAt'
  const from = narrow ? Math.max(window.from, earliestChunkTime) : earliestChunkTime
  const to = narrow ? Math.min(window.to, latestChunkTime) : latestChunkTime
  for (const row of ports.history.streamsOf(rid)) {
    const name = ports.names.text(row.name)!
    if (query.attrs !== undefined && !query.attrs.has(name)) continue
    const seen = new Set<string>()
    let ordinal = 0
    const put = (time: number, modifiedAt: number, value: Json, shape: string): void => {
      const key = `${time} ${JSON.stringify(value)}`
      if (seen.has(key)) return
      seen.add(key)
      const instance = fromShape(shape, value, time)
      const instanceId = `urn:ngsi-ld:instance:${row.s}-${time}-${ordinal++}`
      add(name, { instance, observedAt: time, modifiedAt, instanceId })
    }
    const chunks = ports.history.chunks(row.s, from, to)
    for (const chunk of query.lastN === undefined ? chunks : lastChunks(chunks, query.lastN)) {
      const series = decodeChunk(chunk)
      for (let i = 0; i < series.times.length; i++) {
        put(series.times[i]!, series.modified[i]!, series.values[i]!, series.shapes[series.shapeOf?.[i] ?? 0]!)
      }
    }
    const tail = ports.live.stream(row.s)?.tail
    if (tail === undefined) continue
    for (let i = 0; i < tail.committed; i++) {
      const shape = tail.shapes.findLast(({ from: start }) => start <= i)!.shape
      put(tail.times[i]!, tail.modified[i]!, tail.values[i]!, shape)
    }
  }
}

/** Years 0000 to 9999. */
const earliestChunkTime = -62_167_219_200_000
const latestChunkTime = 253_402_300_799_999

function lastChunks<T extends { count: number }>(chunks: readonly T[], lastN: number): readonly T[] {
  let rest = lastN
  let first = chunks.length
  while (first > 0 && rest > 0) rest -= chunks[--first]!.count
  return chunks.slice(first)
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
