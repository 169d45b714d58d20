/**
 * Aggregates over the history of one entity (GS CIM 009, 4.5.19 and 5.7.3). Where a whole chunk lies in one period and
 * nobody has to see its values, its statistics stand for them and the chunk is not read; so an hour of a day costs two
 * chunks, whatever lies between. Of what was rolled up a whole hour belongs to the period in which it begins.
 */
import { limits } from '#base/limits.ts'
import { type Aggregation, createAggregation } from '#ngsi-ld/aggregate.ts'
import { kindOf } from '#ngsi-ld/attribute-kind.ts'
import type { JsonObject } from '#ngsi-ld/json.ts'
import { tooComplex } from '#ngsi-ld/problem.ts'
import { type TimedInstance, timeOf } from '#ngsi-ld/temporal.ts'
import { decodeChunk, type Numbers } from '#store/chunk-codec.ts'
import type { ChunkSummary } from '#store/history.ts'
import type { RollUpRow, RollUps } from '#store/roll-ups.ts'
import type { Corrections } from './corrections.ts'
import type { DecodedChunks, Run } from './decoded-chunks.ts'
import { evolutionOf, type Lives, livesOf } from './evolution.ts'
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
import type { AggregateQuery, EntityAggregates } from './types.ts'

export interface AggregationPorts extends EvolutionPorts {
  readonly rollUps: RollUps
  readonly decoded: DecodedChunks
}

/** What is to be summed up of one stream. */
interface StreamPart {
  readonly s: number
  readonly name: string
  readonly dataset: string
  readonly type: string
  readonly corrections: Corrections
  /** What is left of older values, by the hour that they were of. */
  readonly rolled: readonly RollUpRow[]
  readonly chunks: readonly ChunkSummary[]
  readonly tail: readonly TailInstance[]
  /** Times and identities that change records have told already. */
  readonly toldTimes: ReadonlySet<number>
  readonly told: ReadonlySet<string>
}

/** An instance outside streams. */
interface LooseInstance {
  readonly name: string
  readonly dataset: string
  readonly one: TimedInstance
  readonly time: number
}

interface Sum {
  readonly head: JsonObject
  readonly aggregation: Aggregation
}

export function aggregatesOf(
  ports: AggregationPorts,
  id: string,
  query: AggregateQuery,
): EntityAggregates | undefined {
  const lives = livesOf(ports, id)
  if (lives === undefined) return undefined
  const { loose, parts } =
    query.lastN === undefined ? gathered(ports, lives, query) : lastOnes(ports, id, query)
  const from = query.timerel === 'before' ? undefined : query.timeAtMs
  const start = from ?? startOf(ports, parts, loose, query)
  const sums = new Map<string, Map<string, Sum>>()
  const sumOf = (name: string, type: string, dataset: string): Aggregation => {
    const ofName = sums.get(name) ?? new Map<string, Sum>()
    sums.set(name, ofName)
    const key = `${type} ${dataset}`
    const known = ofName.get(key)
    if (known !== undefined) return known.aggregation
    const periods = { from, to: query.endTimeAtMs ?? endOf(query), duration: query.duration }
    const aggregation = createAggregation(query.methods, periods, start, type)
    ofName.set(key, { head: { type, ...(dataset === '' ? {} : { datasetId: dataset }) }, aggregation })
    return aggregation
  }
  for (const part of parts) addStream(ports, part, query, () => sumOf(part.name, part.type, part.dataset))
  for (const { name, dataset, one, time } of loose) {
    const { name: type, member } = kindOf(one.instance)
    sumOf(name, type, dataset).add(time, one.instance[member]!)
  }
  const attributes = new Map<string, readonly JsonObject[]>()
  for (const [name, ofName] of sums) {
    const shown = [...ofName.values()].filter(({ aggregation }) => !aggregation.isEmpty())
    if (shown.length === 0) continue
    attributes.set(
      name,
      shown.map(({ head, aggregation }) => ({ ...head, ...aggregation.results() })),
    )
  }
  return { id, type: lives.entity.type, attributes }
}

interface Gathered {
  readonly loose: readonly LooseInstance[]
  readonly parts: readonly StreamPart[]
}

function gathered(ports: AggregationPorts, { rids }: Lives, query: AggregateQuery): Gathered {
  const loose: LooseInstance[] = []
  const parts: StreamPart[] = []
  for (const [rid, corrections] of rids) gather(ports, rid, { query, corrections, loose, parts })
  return { loose, parts }
}

/** The last instances of each attribute one by one, since statistics say nothing of them. */
function lastOnes(ports: AggregationPorts, id: string, query: AggregateQuery): Gathered {
  const limit = limits.temporalFilterInstancesMax.value
  const { attributes = new Map<string, readonly TimedInstance[]>(), cut } =
    evolutionOf(ports, id, { ...query, limit }) ?? {}
  if (cut !== undefined && cut.size > 0)
    throw tooComplex(`lastN: more than ${limit} values to sum up one by one`)
  const measured = [...attributes].filter(([name]) => name !== 'scope')
  const loose = measured.flatMap(([name, list]) =>
    list
      .filter(({ deletedAt }) => deletedAt === undefined)
      .map((one): LooseInstance => {
        const dataset = one.instance.datasetId ?? ''
        return { name, dataset, one, time: timeOf(one, query.timeproperty)! }
      }),
  )
  return { loose, parts: [] }
}

const endOf = ({ timerel, timeAtMs }: AggregateQuery): number | undefined =>
  timerel === 'before' ? timeAtMs : undefined

interface Gathering {
  readonly query: AggregateQuery
  readonly corrections: Corrections
  readonly loose: LooseInstance[]
  readonly parts: StreamPart[]
}

function gather(ports: AggregationPorts, rid: number, { query, corrections, loose, parts }: Gathering): void {
  const window = windowOf(query)
  const told = new Map<string, { times: Set<number>; identities: Set<string> }>()
  for (const { name, dataset, one } of toldByChanges(ports, rid, query, corrections)) {
    if (one.deletedAt !== undefined || name === 'scope') continue
    if (one.observedAt !== undefined) {
      const key = `${name} ${dataset}`
      const known = told.get(key) ?? { times: new Set<number>(), identities: new Set<string>() }
      told.set(key, known)
      const identity = identityOf(one.observedAt, one.instance.value ?? null)
      if (known.identities.has(identity)) continue
      known.identities.add(identity)
      known.times.add(one.observedAt)
    }
    const time = timeOf(one, query.timeproperty)
    if (time === undefined || time < window.from || time >= window.to) continue
    loose.push({ name, dataset, one, time })
  }
  const isObserved = query.timeproperty === 'observedAt'
  const from = isObserved ? Math.max(window.from, chunkTimes.from) : chunkTimes.from
  const to = isObserved ? Math.min(window.to, chunkTimes.to) : chunkTimes.to
  for (const row of ports.history.streamsOf(rid)) {
    const name = ports.names.text(row.name)!
    if (!isWanted(query, name, row.dataset)) continue
    const known = told.get(`${name} ${row.dataset}`)
    parts.push({
      s: row.s,
      name,
      dataset: row.dataset,
      type: kindOf(JSON.parse(row.shape) as { type: string }).name,
      corrections,
      rolled: isObserved ? ports.rollUps.within(row.s, from, to) : [],
      chunks: ports.history.summaries(row.s, from, to),
      tail: tailWithin(ports.live.stream(row.s)?.tail, { from, to: to + 1 }),
      toldTimes: known?.times ?? new Set(),
      told: known?.identities ?? new Set(),
    })
  }
}

/** The time of the first value: where periods begin when the query says nothing. */
function startOf(
  ports: AggregationPorts,
  parts: readonly StreamPart[],
  loose: readonly LooseInstance[],
  query: AggregateQuery,
): number {
  let start = Number.POSITIVE_INFINITY
  for (const { time } of loose) start = Math.min(start, time)
  for (const part of parts) {
    const isPlain = query.timeproperty === 'observedAt' && query.timerel === undefined
    const first = part.chunks[0]
    start = Math.min(start, part.rolled[0]?.hour ?? start)
    if (isPlain && part.corrections.isEmpty) {
      start = Math.min(start, first?.t0 ?? start, part.tail[0]?.time ?? start)
    } else {
      for (const time of timesOf(ports, part, query)) start = Math.min(start, time)
    }
  }
  return start
}

function* timesOf(ports: AggregationPorts, part: StreamPart, query: AggregateQuery): Generator<number> {
  const times: number[] = []
  const add = (time: number): void => void times.push(time)
  for (const chunk of part.chunks) addChunk(ports, part, { query, chunk, add })
  for (const one of part.tail) addOne(part, { query, one, shape: one.shape, add })
  yield* times
}

type Add = (time: number, value: TailInstance['value']) => void

function addStream(
  ports: AggregationPorts,
  part: StreamPart,
  query: AggregateQuery,
  sum: () => Aggregation,
): void {
  const window = windowOf(query)
  let known: Aggregation | undefined
  const own = (): Aggregation => {
    known ??= sum()
    return known
  }
  const add: Add = (time, value) => own().add(time, value)
  const isSummable =
    query.timeproperty === 'observedAt' && part.corrections.isEmpty && !query.methods.has('distinctCount')
  const seen = new Set<string>()
  const tailFrom = part.tail[0]?.time ?? Number.POSITIVE_INFINITY
  const isIn =
    (chunk: ChunkSummary) =>
    (time: number): boolean =>
      time >= chunk.t0 && time <= chunk.t1
  for (const { hour, ...statistics } of part.rolled) own().addMany(hour, hour, statistics)
  for (const chunk of part.chunks) {
    const isShared = tailFrom <= chunk.t1 && part.tail.some(({ time }) => isIn(chunk)(time))
    const isTold = part.toldTimes.values().some(isIn(chunk))
    const isWithin = chunk.t0 >= window.from && chunk.t1 < window.to
    const { count, min, max, sum: total, sumsq } = chunk
    if (!isSummable || isShared || min === null) {
      addChunk(ports, part, { query, chunk, add, seen: isShared ? seen : undefined })
    } else if (!isTold && isWithin && own().endOfPeriod(chunk.t0) > chunk.t1) {
      own().addMany(chunk.t0, chunk.t1, { count, min, max: max!, sum: total!, sumsq: sumsq! })
    } else addNumbers(ports, part, chunk, { window, isTold, sum: own() })
  }
  for (const one of part.tail) {
    if (!seen.has(identityOf(one.time, one.value))) addOne(part, { query, one, shape: one.shape, add })
  }
}

/** Adds the numbers of a chunk that lie in the window and were not told yet, all of a period at once. */
function addNumbers(
  ports: AggregationPorts,
  { s, toldTimes, told }: StreamPart,
  chunk: ChunkSummary,
  { window, isTold, sum }: { window: Window; isTold: boolean; sum: Aggregation },
): void {
  const isKnown = isTold
    ? (time: number, value: number) => toldTimes.has(time) && told.has(identityOf(time, value))
    : () => false
  const find = (): readonly Run[] => {
    const found = ports.decoded.numbersOf(s, chunk)
    return found === undefined ? [] : [...runsOf(found, { window, sum, isKnown })]
  }
  const borders = isTold ? undefined : bordersOf(chunk, window, sum)
  const runs = borders === undefined ? find() : ports.decoded.runsOf(s, chunk, borders, find)
  for (const { first, last, statistics } of runs) sum.addMany(first, last, statistics)
}

/** Where what is to be summed up of a chunk begins, is cut, and ends; undefined where it is cut many times. */
function bordersOf({ t0, t1 }: ChunkSummary, window: Window, sum: Aggregation): number[] | undefined {
  const borders = [Math.max(t0, window.from)]
  for (let end = sum.endOfPeriod(borders[0]!); end <= t1 && end < window.to; end = sum.endOfPeriod(end)) {
    borders.push(end)
    if (borders.length > bordersMax) return undefined
  }
  borders.push(Math.min(t1 + 1, window.to))
  return borders
}

/** A chunk that is cut more often than this is looked at anew each time. */
const bordersMax = 16

interface Runs {
  readonly window: Window
  readonly sum: Aggregation
  readonly isKnown: (time: number, value: number) => boolean
}

/** Values of a chunk within the window, those of each period as one. */
function* runsOf({ times, values }: Numbers, { window, sum, isKnown }: Runs): Generator<Run> {
  let i = 0
  while (i < times.length && times[i]! < window.from) i++
  while (i < times.length && times[i]! < window.to) {
    const first = times[i]!
    const end = Math.min(sum.endOfPeriod(first), window.to)
    let [count, min, max, total, sumsq] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0]
    for (; i < times.length && times[i]! < end; i++) {
      const value = values[i]!
      if (isKnown(times[i]!, value)) continue
      count++
      if (value < min) min = value
      if (value > max) max = value
      total += value
      sumsq += value * value
    }
    if (count > 0) yield { first, last: times[i - 1]!, statistics: { count, min, max, sum: total, sumsq } }
  }
}

/** Adds what a chunk holds, value by value; `seen` notes which, where a tail may hold the same. */
function addChunk(
  ports: AggregationPorts,
  part: StreamPart,
  {
    query,
    chunk,
    add,
    seen,
  }: { query: AggregateQuery; chunk: ChunkSummary; add: Add; seen?: Set<string> | undefined },
): void {
  const row = ports.history.chunkAt(part.s, chunk.t0)
  if (row === undefined) return
  const { times, modified, values, shapes, shapeOf } = decodeChunk(row)
  for (let i = 0; i < times.length; i++) {
    const one = { time: times[i]!, modified: modified[i]!, value: values[i]! }
    seen?.add(identityOf(one.time, one.value))
    addOne(part, { query, one, shape: shapes[shapeOf?.[i] ?? 0]!, add })
  }
}

function addOne(
  { s, name, dataset, corrections, told, toldTimes }: StreamPart,
  {
    query,
    one,
    shape,
    add,
  }: { query: AggregateQuery; one: Omit<TailInstance, 'shape'>; shape: string; add: Add },
): void {
  const { time, modified, value } = one
  if (toldTimes.has(time) && told.has(identityOf(time, value))) return
  const window = windowOf(query)
  if (corrections.isEmpty && query.timeproperty === 'observedAt') {
    if (time >= window.from && time < window.to) add(time, value)
    return
  }
  if (corrections.isObservationErased(name, dataset, modified)) return
  const corrected = corrections.corrected(observedInstance(s, shape, one))
  const at = corrected === undefined ? undefined : timeOf(corrected, query.timeproperty)
  if (at === undefined || at < window.from || at >= window.to) return
  add(at, corrected!.instance.value ?? null)
}
