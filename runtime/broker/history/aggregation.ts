/**
 * Aggregates over the history of one entity (GS CIM 009, 4.5.19 and 5.7.3). Streams, which hold most of it,
 * are summed from chunk statistics; instances outside streams, and replaced observations, are added one by
 * one.
 */
import { limits } from '#base/limits/limits.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Aggregation, createAggregation } from '#ngsi-ld/history/aggregate.ts'
import { type TimedInstance, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { sizeOfJson } from '#ngsi-ld/values/json-size.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { RollUps } from '#store/history/roll-ups.ts'
import type { DecodedChunks } from './decoded-chunks.ts'
import { evolutionOf, type Lives, livesOf } from './evolution.ts'
import {
  chunkTimes,
  type EvolutionPorts,
  isWanted,
  replacedOf,
  tailWithin,
  takeChanges,
  windowOf,
} from './evolution-sources.ts'
import { withoutRepeats } from './stream-repeats.ts'
import { addStream, firstTimeOf, type HistorySteps, type StreamPart } from './stream-sums.ts'
import type { AggregateQuery, EntityAggregates } from './temporal-requests.ts'

export interface AggregationPorts extends EvolutionPorts {
  readonly rollUps: RollUps
  readonly decoded: DecodedChunks
}

/** An instance that is added individually. */
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

/**
 * Undefined if no entity ever had this id, or its history is empty. The first step must run in one
 * transaction.
 */
export function* aggregatesOf(
  ports: AggregationPorts,
  id: string,
  query: AggregateQuery,
): HistorySteps<EntityAggregates | undefined> {
  const lives = livesOf(ports, id)
  if (lives === undefined) return undefined
  const { loose, parts: all } =
    query.lastN === undefined ? gathered(ports, lives, query) : lastOnes(ports, id, query)
  const parts = yield* withoutRepeats(ports, all)
  const from = query.timerel === 'before' ? undefined : query.timeAtMs
  yield* addReplaced(ports, parts, query, loose)
  const start = from ?? (yield* firstOf(ports, parts, query, loose))
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
  for (const part of parts)
    yield* addStream(ports, part, query, () => sumOf(part.name, part.type, part.dataset))
  for (const [i, { name, dataset, one, time }] of loose.entries()) {
    const { name: type, member } = kindOf(one.instance)
    sumOf(name, type, dataset).add(time, one.instance[member]!)
    if (i % loosePerStep === loosePerStep - 1) yield true
  }
  const attributes = new Map<string, readonly JsonObject[]>()
  let size = 0
  for (const [name, ofName] of sums) {
    const shown = [...ofName.values()].filter(({ aggregation }) => !aggregation.isEmpty())
    if (shown.length === 0) continue
    const results: JsonObject[] = []
    for (const { head, aggregation } of shown)
      results.push({ ...head, ...(yield* aggregation.stepsOfResults()) })
    size += sizeOfJson(results)
    if (size > limits.joinedBytesMax.value)
      throw tooComplex('the result has too many periods; request fewer attributes or longer periods')
    attributes.set(name, results)
  }
  return { id, type: lives.entity.type, attributes }
}

const loosePerStep = 1000

interface Gathered {
  readonly loose: LooseInstance[]
  readonly parts: readonly StreamPart[]
}

function gathered(ports: AggregationPorts, { rids }: Lives, query: AggregateQuery): Gathered {
  const { timeproperty: property } = query
  const window = windowOf(query)
  const fits = fittingIn(query)
  const loose: LooseInstance[] = []
  const recorded = takeChanges(ports, rids, {
    query,
    take({ name, one }) {
      const time = timeOf(one, property)
      if (one.deletedAt !== undefined || name === 'scope' || time === undefined || !fits(time)) return
      loose.push(looseOf(name, one, time))
    },
  })
  const isObserved = property === 'observedAt'
  const from = isObserved ? Math.max(window.from, chunkTimes.from) : chunkTimes.from
  /** Exclusive. */
  const to = isObserved ? Math.min(window.to, chunkTimes.to + 1) : chunkTimes.to + 1
  const parts = rids.flatMap(([rid, corrections]) =>
    ports.history.streamsOf(rid).flatMap((row): StreamPart[] => {
      const name = ports.names.text(row.name)!
      if (!isWanted(query, name, row.dataset)) return []
      const part = {
        s: row.s,
        name,
        dataset: row.dataset,
        type: kindOf(JSON.parse(row.shape) as { type: string }).name,
        own: corrections.ofStream(row.s, name, row.dataset),
        rolled: isObserved ? ports.rollUps.within(row.s, from, to) : [],
        chunks: ports.history.summaries(row.s, from, to).filter(({ t0 }) => t0 < to),
        tail: tailWithin(ports.live.stream(row.s)?.tail, { from, to }),
        recorded: recorded(name, row.dataset),
      }
      return [part]
    }),
  )
  return { loose, parts }
}

const looseOf = (name: string, one: TimedInstance, time: number): LooseInstance => {
  const { datasetId: dataset = '' } = one.instance
  return { name, dataset, one, time }
}

/** The time of the first value: periods begin there unless the query has a start. */
function* firstOf(
  ports: AggregationPorts,
  parts: readonly StreamPart[],
  query: AggregateQuery,
  loose: readonly LooseInstance[],
): HistorySteps<number> {
  let first = Number.POSITIVE_INFINITY
  for (const { time } of loose) first = Math.min(first, time)
  for (const part of parts) first = Math.min(first, yield* firstTimeOf(ports, part, query))
  return first
}

/** Adds the instances that replaced observations. */
function* addReplaced(
  ports: AggregationPorts,
  parts: readonly StreamPart[],
  query: AggregateQuery,
  loose: LooseInstance[],
): HistorySteps<void> {
  const { timeproperty: property } = query
  const fits = fittingIn(query)
  for (const { s, name, own } of parts)
    for (const one of replacedOf(ports, s, own, { property, fits })) {
      loose.push(looseOf(name, one, timeOf(one, property)!))
      yield true
    }
}

/** A test whether a time is in the query's window. */
function fittingIn(query: AggregateQuery): (time: number) => boolean {
  const { from, to } = windowOf(query)
  return (time) => time >= from && time < to
}

/** Reads the last instances of each attribute one by one, since statistics do not cover them. */
function lastOnes(ports: AggregationPorts, id: string, query: AggregateQuery): Gathered {
  const limit = limits.temporalFilterInstancesMax.value
  const { attributes = new Map<string, readonly TimedInstance[]>(), cut } =
    evolutionOf(ports, id, { ...query, limit }) ?? {}
  if (cut !== undefined && cut.size > 0)
    throw tooComplex(`lastN selects more than ${limit} values to aggregate; use a smaller lastN`)
  const measured = [...attributes].filter(([name]) => name !== 'scope')
  const loose = measured.flatMap(([name, list]) =>
    list
      .filter(({ deletedAt }) => deletedAt === undefined)
      .map((one) => looseOf(name, one, timeOf(one, query.timeproperty)!)),
  )
  return { loose, parts: [] }
}

const endOf = ({ timerel, timeAtMs }: AggregateQuery): number | undefined =>
  timerel === 'before' ? timeAtMs : undefined
