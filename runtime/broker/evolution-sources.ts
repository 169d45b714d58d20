/**
 * Where the history of one entity comes from: change records (folded or still in the log), chunks of its streams, and
 * their unfolded tails. Each source is told instance by instance, corrected as clients asked; order and bounds are the
 * reader's business.
 */
import { hash } from 'node:crypto'
import type { Json } from '#contract/pipeline.ts'
import { kindOf } from '#ngsi-ld/attribute-kind.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance } from '#ngsi-ld/entity.ts'
import { listOf } from '#ngsi-ld/json.ts'
import { fromShape } from '#ngsi-ld/merge.ts'
import { ngsiLdNull } from '#ngsi-ld/name.ts'
import type { TimedInstance } from '#ngsi-ld/temporal.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { Entities } from '#store/entities.ts'
import { decodeEntityChanges } from '#store/entity-changes.ts'
import type { History } from '#store/history.ts'
import type { HistoryEdits } from '#store/history-edits.ts'
import type { Records } from '#store/records.ts'
import type { Corrections } from './corrections.ts'
import type { LiveState, Tail } from './live.ts'
import type { Names } from './names.ts'
import type { Streams } from './streams.ts'
import type { TemporalQuery } from './types.ts'

export interface EvolutionPorts {
  readonly entities: Entities
  readonly history: History
  readonly edits: HistoryEdits
  readonly records: Records
  readonly names: Names
  readonly live: LiveState
  readonly streams: Streams
}

export interface Window {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/** One instance, and which attribute it is of. */
export interface Told {
  readonly name: string
  readonly dataset: string
  readonly one: TimedInstance
}

interface ChangeRecord {
  readonly n: number
  readonly kind: string
  readonly at: number
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
    type?: string | null,
    /** Of what was brought back: when it was written first, ms. */
    at?: number,
  ])[]
  /** The scopes after the change, where it touched them; null when it removed them. */
  readonly scope?: string | readonly string[] | null
}

const earliest = Number.MIN_SAFE_INTEGER
const latest = Number.MAX_SAFE_INTEGER
/** Years 0000 to 9999: where chunks may lie. */
export const chunkTimes: Window = { from: -62_167_219_200_000, to: 253_402_300_799_999 }

export function windowOf(query: TemporalQuery): Window {
  const at = query.timeAtMs ?? 0
  if (query.timerel === 'before') return { from: earliest, to: at }
  if (query.timerel === 'after') return { from: at, to: latest }
  if (query.timerel === 'between') return { from: at, to: query.endTimeAtMs ?? latest }
  return { from: earliest, to: latest }
}

/** Whether a query wants an attribute, or one instance of it. */
export const isWanted = (query: TemporalQuery, name: string, dataset?: string): boolean =>
  (query.attrs === undefined || query.attrs.has(name)) &&
  (dataset === undefined || query.datasets === undefined || query.datasets.has(dataset || '@none'))

/** What change records say, from the end that the query begins at. */
export function* toldByChanges(
  ports: EvolutionPorts,
  rid: number,
  query: TemporalQuery,
  corrections: Corrections,
): Generator<Told> {
  for (const text of changeTexts(ports, rid, query.lastN !== undefined)) {
    const record = JSON.parse(text) as ChangeRecord
    const tell = (name: string, dataset: string, one: TimedInstance): Told[] => {
      if (!isWanted(query, name, dataset) || corrections.isRecordErased(name, dataset, record.n)) return []
      const corrected = corrections.corrected(one)
      return corrected === undefined ? [] : [{ name, dataset, one: corrected }]
    }
    for (const [i, [name, dataset, instance, type, at = record.at]] of record.instances.entries()) {
      const base = { createdAt: at, modifiedAt: at, number: record.n }
      const instanceId = `urn:ngsi-ld:instance:n${record.n}-${i}`
      if (instance === null) {
        const nothing =
          name === 'scope' ? { type: 'Property', value: [] } : deletedInstance(type ?? 'Property', dataset)
        yield* tell(name, dataset, { ...base, instance: nothing, instanceId, deletedAt: at })
      } else {
        const observedAt = dateTimeToMs(instance.observedAt ?? '')
        const timed = observedAt === undefined ? base : { ...base, observedAt }
        yield* tell(name, dataset, { ...timed, instance, instanceId })
      }
    }
    if (record.scope === undefined) continue
    const scoped = {
      createdAt: record.at,
      modifiedAt: record.at,
      number: record.n,
      instance: { type: 'Property', value: [...listOf(record.scope ?? [])] },
      instanceId: `urn:ngsi-ld:instance:n${record.n}-scope`,
    }
    yield* tell('scope', '', record.scope === null ? { ...scoped, deletedAt: record.at } : scoped)
  }
}

function* changeTexts(ports: EvolutionPorts, rid: number, isBackwards: boolean): Generator<string> {
  const parts = ports.history.entityChanges(rid)
  // What a commit folded that is on disk but not published yet is in both.
  const folded = parts.at(-1)?.n1 ?? 0
  const unfolded = function* (): Generator<string> {
    for (const n of ports.streams.unfolded(rid)) {
      const row = n > folded ? ports.records.logAt(n) : undefined
      if (row !== undefined) yield Buffer.from(row.body).toString()
    }
  }
  if (isBackwards) {
    yield* [...unfolded()].toReversed()
    for (const part of parts.toReversed()) yield* decodeEntityChanges(part).toReversed()
  } else {
    for (const part of parts) yield* decodeEntityChanges(part)
    yield* unfolded()
  }
}

function deletedInstance(type: string, dataset: string): AttributeInstance {
  const { member } = kindOf({ type })
  const nothing = member === 'languageMap' ? { '@none': ngsiLdNull } : ngsiLdNull
  return { type, [member]: nothing, ...(dataset === '' ? {} : { datasetId: dataset }) }
}

/** An observation of a stream as an instance. */
export function observedInstance(
  s: number,
  shape: string,
  { time, modified, value }: { readonly time: number; readonly modified: number; readonly value: Json },
): TimedInstance {
  return {
    instance: fromShape(shape, value, time),
    observedAt: time,
    createdAt: modified,
    modifiedAt: modified,
    instanceId: `urn:ngsi-ld:instance:s${s}-${time}-${hashOf(value)}`,
  }
}

/** Tells instances of one time apart; stable, because an instance is its time and value. */
const hashOf = (value: Json): string => hash('sha1', JSON.stringify(value)).slice(0, 8)

/** Whether an instance with this id is in the history of an entity, and was not removed from it. */
export function hasInstance(
  ports: EvolutionPorts,
  wanted: { rid: number; corrections: Corrections; name: string; instanceId: string },
): boolean {
  const { rid, corrections, name, instanceId } = wanted
  const observed = /^urn:ngsi-ld:instance:s(\d+)-(-?\d+)-/.exec(instanceId)
  if (observed === null) {
    const query = { timeproperty: 'createdAt', attrs: new Set([name]), limit: 0 } as const
    return toldByChanges(ports, rid, query, corrections).some(({ one }) => one.instanceId === instanceId)
  }
  const [s, time] = [Number(observed[1]), Number(observed[2])]
  const row = ports.history.stream(s)
  if (row?.rid !== rid || ports.names.text(row.name) !== name) return false
  return instancesAt(ports, s, time).some((one) => {
    const instance = observedInstance(s, one.shape, one)
    if (instance.instanceId !== instanceId) return false
    if (corrections.isObservationErased(name, row.dataset, one.modified)) return false
    return corrections.corrected(instance) !== undefined
  })
}

function instancesAt(ports: EvolutionPorts, s: number, time: number): TailInstance[] {
  const found = tailWithin(ports.live.stream(s)?.tail, { from: time, to: time + 1 })
  const chunk = ports.history.chunkAt(s, time)
  if (chunk === undefined) return found
  const { times, modified, values, shapes, shapeOf } = decodeChunk(chunk)
  for (let i = 0; i < times.length; i++) {
    if (times[i] !== time) continue
    found.push({ time, modified: modified[i]!, value: values[i]!, shape: shapes[shapeOf?.[i] ?? 0]! })
  }
  return found
}

export interface TailInstance {
  readonly time: number
  readonly modified: number
  readonly value: Json
  readonly shape: string
}

/** Committed instances of a tail within a span of observedAt, in order of time, each identity once. */
export function tailWithin(tail: Tail | undefined, span: Window): TailInstance[] {
  if (tail === undefined) return []
  const positions: number[] = []
  for (let i = 0; i < tail.committed; i++) {
    if (tail.times[i]! >= span.from && tail.times[i]! < span.to) positions.push(i)
  }
  positions.sort((a, b) => tail.times[a]! - tail.times[b]!)
  return positions.map((i) => ({
    time: tail.times[i]!,
    modified: tail.modified[i]!,
    value: tail.values[i]!,
    shape: tail.shapes.findLast(({ from }) => from <= i)!.shape,
  }))
}

/** What makes an observation of one stream the same as another. */
export const identityOf = (time: number, value: Json): string =>
  `${time} ${typeof value === 'number' ? value : JSON.stringify(value)}`
