/**
 * The temporal evolution of an entity in requests and answers: which instances are asked for [NGSI-LD 4.11], how
 * they look as instances [4.5.6] and as values with times [4.5.9], and which range an answer covers that could not
 * hold them all [6.3.10]. Pure; where the instances come from is the broker's business. Aggregates are not built.
 */
import type { Json } from '#contract/pipeline.ts'
import { kindOf } from './attribute-kind.ts'
import type { Context } from './context.ts'
import { dateTimeToMs, msToDateTime } from './datetime.ts'
import type { AttributeInstance } from './entity.ts'
import type { JsonObject } from './json.ts'
import { badRequestData } from './problem.ts'
import { renderInstance } from './representation.ts'

export const temporalRelations = ['before', 'after', 'between'] as const
export type TemporalRelation = (typeof temporalRelations)[number]

export const timeProperties = ['observedAt', 'createdAt', 'modifiedAt', 'deletedAt'] as const
export type TimeProperty = (typeof timeProperties)[number]

export interface TemporalSelection {
  readonly timerel?: TemporalRelation | undefined
  readonly timeAtMs?: number | undefined
  readonly endTimeAtMs?: number | undefined
  readonly timeproperty: TimeProperty
}

/** The members as they come in a request. */
export interface TemporalInput {
  readonly timerel?: string | undefined
  readonly timeAt?: string | undefined
  readonly endTimeAt?: string | undefined
  readonly timeproperty?: string | undefined
}

/** One instance as the history keeps it. */
export interface TimedInstance {
  readonly instance: AttributeInstance
  readonly observedAt?: number
  readonly modifiedAt: number
  readonly instanceId: string
}

export interface Evolution {
  readonly id: string
  readonly type: string | readonly string[]
  /** By canonical name, each in ascending order of the time property. */
  readonly attributes: ReadonlyMap<string, readonly TimedInstance[]>
}

/** @throws ngsi-ld.bad-request-data naming the member */
export function parseTemporalSelection(input: TemporalInput): TemporalSelection {
  const timerel = oneOf(input.timerel, temporalRelations, 'timerel')
  const timeproperty = oneOf(input.timeproperty, timeProperties, 'timeproperty') ?? 'observedAt'
  const timeAtMs = dateTime(input.timeAt, 'timeAt')
  const endTimeAtMs = dateTime(input.endTimeAt, 'endTimeAt')
  if ((timerel === undefined) !== (timeAtMs === undefined)) {
    throw badRequestData('timerel and timeAt go together', timerel === undefined ? 'timerel' : 'timeAt')
  }
  if ((timerel === 'between') !== (endTimeAtMs !== undefined)) {
    throw badRequestData('is needed with timerel=between, and only there', 'endTimeAt')
  }
  return { timerel, timeAtMs, endTimeAtMs, timeproperty }
}

export interface TemporalRendering {
  readonly context: Context
  readonly timeproperty: TimeProperty
  readonly sysAttrs: boolean
  /** Only values with their times. */
  readonly values: boolean
}

/** The evolution as an answer shows it, without @context. */
export function renderEvolution({ id, type, attributes }: Evolution, options: TemporalRendering): JsonObject {
  const { context } = options
  const types = Array.isArray(type) ? type.map(context.compact) : context.compact(type as string)
  const rendered: Record<string, Json> = { id, type: types }
  for (const [name, instances] of attributes) {
    rendered[context.compact(name)] = options.values
      ? valuesOf(instances, options)
      : instances.map((one) => renderTimed(one, options))
  }
  return rendered
}

function renderTimed({ instance, instanceId, modifiedAt }: TimedInstance, options: TemporalRendering): Json {
  const members = renderInstance(instance, { context: options.context, format: 'normalized' }) as JsonObject
  const stamp = msToDateTime(modifiedAt)
  return { ...members, instanceId, ...(options.sysAttrs ? { createdAt: stamp, modifiedAt: stamp } : {}) }
}

/** Name of the list of values, by the value member of the kind. */
const pluralOf: Readonly<Record<string, string>> = {
  value: 'values',
  object: 'objects',
  languageMap: 'languageMaps',
  vocab: 'vocabs',
  json: 'jsons',
  valueList: 'valueLists',
  objectList: 'objectLists',
}

/** Pairs of value and time; instances of several kinds or datasets become several such lists. */
function valuesOf(instances: readonly TimedInstance[], options: TemporalRendering): Json {
  const lists = new Map<
    string,
    { type: string; datasetId: string | undefined; member: string; pairs: Json[] }
  >()
  for (const one of instances) {
    const { name: type, member } = kindOf(one.instance)
    const { datasetId } = one.instance
    const key = `${type} ${datasetId ?? ''}`
    const list = lists.get(key) ?? { type, datasetId, member, pairs: [] }
    lists.set(key, list)
    const shown = renderInstance(one.instance, {
      context: options.context,
      format: 'normalized',
    }) as JsonObject
    list.pairs.push([shown[member]!, msToDateTime(timeOf(one, options.timeproperty))])
  }
  const rendered = [...lists.values()].map(({ type, datasetId, member, pairs }): JsonObject => {
    return { type, ...(datasetId === undefined ? {} : { datasetId }), [pluralOf[member]!]: pairs }
  })
  return rendered.length === 1 ? rendered[0]! : rendered
}

const timeOf = (one: TimedInstance, property: TimeProperty): number =>
  property === 'observedAt' ? (one.observedAt ?? one.modifiedAt) : one.modifiedAt

/** What a partial answer holds: all instances from one time to another. */
export interface Part {
  readonly evolution: Evolution
  /** Value of Content-Range. */
  readonly range: string
}

/**
 * Makes of an evolution whose lists were cut (each at the same length) one that is complete over a range, so that
 * the client can go on where it ends: the oldest instances, or with `lastN` the newest.
 */
export function partOf(evolution: Evolution, timeproperty: TimeProperty, lastN: number | undefined): Part {
  const lists = [...evolution.attributes.values()]
  const longest = Math.max(...lists.map((list) => list.length))
  const cut = lists.filter((list) => list.length === longest)
  const time = (one: TimedInstance | undefined): number => timeOf(one!, timeproperty)
  const firsts = lists.map((list) => time(list[0]))
  const lasts = lists.map((list) => time(list.at(-1)))
  const [from, to] =
    lastN === undefined
      ? [Math.min(...firsts), Math.min(...cut.map((list) => time(list.at(-1))))]
      : [Math.max(...cut.map((list) => time(list[0]))), Math.max(...lasts)]
  const inside = (one: TimedInstance): boolean => time(one) >= from && time(one) <= to
  const kept = [...evolution.attributes].flatMap(([name, list]) => {
    const part = list.filter(inside)
    return part.length === 0 ? [] : [[name, part] as const]
  })
  const [start, end] = lastN === undefined ? [from, to] : [to, from]
  const range = `DateTime ${msToDateTime(start)}-${msToDateTime(end)}/${lastN ?? '*'}`
  return { evolution: { ...evolution, attributes: new Map(kept) }, range }
}

function oneOf<T extends string>(
  text: string | undefined,
  allowed: readonly T[],
  field: string,
): T | undefined {
  const found = allowed.find((each) => each === text)
  if (text !== undefined && found === undefined)
    throw badRequestData(`must be one of ${allowed.join(', ')}`, field)
  return found
}

function dateTime(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined
  const ms = dateTimeToMs(text)
  if (ms === undefined) throw badRequestData('must be a DateTime such as 2025-06-30T12:00:00Z', field)
  return ms
}
