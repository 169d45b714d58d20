/**
 * The temporal evolution of an entity in requests and responses: selection of instances [NGSI-LD 4.11],
 * rendering as instances [4.5.6] and as values with times [4.5.9]. Pure; the broker reads the instances. See
 * `aggregate.ts` for aggregates and `temporal-part.ts` for partial responses.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { contentOf } from '#ngsi-ld/query/query-match.ts'
import { renderInstance } from '#ngsi-ld/representation/representation.ts'
import { msToDateTime, offsetDateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export const temporalRelations = ['before', 'after', 'between'] as const
export type TemporalRelation = (typeof temporalRelations)[number]

export const timeProperties = ['observedAt', 'createdAt', 'modifiedAt', 'deletedAt'] as const
export type TimeProperty = (typeof timeProperties)[number]

/** Members of a request that select a time. */
export const temporalMembers: ReadonlySet<string> = new Set([
  'timerel',
  'timeAt',
  'endTimeAt',
  'timeproperty',
  'lastN',
])

export interface TemporalSelection {
  readonly timerel?: TemporalRelation | undefined
  readonly timeAtMs?: number | undefined
  readonly endTimeAtMs?: number | undefined
  readonly timeproperty: TimeProperty
}

/** The unparsed members of a request. */
export interface TemporalInput {
  readonly timerel?: string | undefined
  readonly timeAt?: string | undefined
  readonly endTimeAt?: string | undefined
  readonly timeproperty?: string | undefined
}

/** An instance in a stored history. */
export interface TimedInstance {
  readonly instance: AttributeInstance
  readonly observedAt?: number
  readonly createdAt: number
  readonly modifiedAt: number
  readonly instanceId: string
  /** The marker of a deletion; its value is NGSI-LD Null. */
  readonly deletedAt?: number
  /** Log number of the change record that contains it, if any. */
  readonly number?: number
}

export interface Evolution {
  readonly id: string
  readonly type: string | readonly string[]
  readonly created?: number | undefined
  readonly modified?: number | undefined
  readonly deleted?: number | undefined
  /** By canonical name, each in ascending order of the time property. `scope` contains the scopes. */
  readonly attributes: ReadonlyMap<string, readonly TimedInstance[]>
}

/** @throws ngsi-ld.bad-request-data naming the member */
export function parseTemporalSelection(input: TemporalInput): TemporalSelection {
  const timerel = oneOf(input.timerel, temporalRelations, 'timerel')
  const timeproperty = oneOf(input.timeproperty, timeProperties, 'timeproperty') ?? 'observedAt'
  const timeAtMs = dateTime(input.timeAt, 'timeAt')
  const endTimeAtMs = dateTime(input.endTimeAt, 'endTimeAt')
  if ((timerel === undefined) !== (timeAtMs === undefined)) {
    throw badRequestData(
      'timerel and timeAt must be given together',
      timerel === undefined ? 'timerel' : 'timeAt',
    )
  }
  if ((timerel === 'between') !== (endTimeAtMs !== undefined)) {
    throw badRequestData('is required with timerel=between, and not allowed without it', 'endTimeAt')
  }
  return { timerel, timeAtMs, endTimeAtMs, timeproperty }
}

export interface TemporalRendering {
  readonly context: Context
  readonly timeproperty: TimeProperty
  readonly sysAttrs: boolean
  /** Render only values with their times. */
  readonly values: boolean
  readonly lang?: readonly string[] | undefined
  /** Canonical names of the only members to show, and of members to omit. */
  readonly pick?: ReadonlySet<string> | undefined
  readonly omit?: ReadonlySet<string> | undefined
}

/** The evolution as in a response, without @context. */
export function renderEvolution(evolution: Evolution, options: TemporalRendering): JsonObject {
  const rendered = renderHead(evolution, options)
  for (const [name, instances] of evolution.attributes) {
    if (!isShown(name, options)) continue
    rendered[options.context.compact(name)] = options.values
      ? valuesOf(instances, options)
      : instances.map((one) => renderTimed(one, options))
  }
  return rendered
}

/** The first members of every representation: id, type, the time of deletion, and system times on request. */
export function renderHead(
  { id, type, created, modified, deleted }: Omit<Evolution, 'attributes'>,
  options: Pick<TemporalRendering, 'context' | 'sysAttrs' | 'pick' | 'omit'>,
): Record<string, Json> {
  const { context } = options
  const rendered: Record<string, Json> = {}
  if (isShown('id', options)) rendered['id'] = id
  if (isShown('type', options)) {
    rendered['type'] = Array.isArray(type) ? type.map(context.compact) : context.compact(type as string)
  }
  if (options.sysAttrs && created !== undefined) rendered['createdAt'] = msToDateTime(created)
  if (options.sysAttrs && modified !== undefined) rendered['modifiedAt'] = msToDateTime(modified)
  const showsEnd = options.sysAttrs || options.pick === undefined
  if (deleted !== undefined && showsEnd) rendered['deletedAt'] = msToDateTime(deleted)
  return rendered
}

export const isShown = (name: string, { pick, omit }: Pick<TemporalRendering, 'pick' | 'omit'>): boolean =>
  (pick?.has(name) ?? true) && omit?.has(name) !== true

function renderTimed(one: TimedInstance, options: TemporalRendering): Json {
  const { context, lang, sysAttrs } = options
  const members = renderInstance(one.instance, {
    context,
    format: 'normalized',
    lang,
    sysAttrs,
  }) as JsonObject
  const stamps = sysAttrs
    ? { createdAt: msToDateTime(one.createdAt), modifiedAt: msToDateTime(one.modifiedAt) }
    : {}
  const deletion = one.deletedAt === undefined ? {} : { deletedAt: msToDateTime(one.deletedAt) }
  return { ...members, instanceId: one.instanceId, ...stamps, ...deletion }
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

/** Pairs of simplified value and time; one list for each kind and dataset. */
function valuesOf(instances: readonly TimedInstance[], options: TemporalRendering): Json {
  const { context, lang } = options
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
    const shown =
      listIn(one.instance) ?? renderInstance(one.instance, { context, format: 'simplified', lang })
    list.pairs.push([shown, msToDateTime(timeOf(one, options.timeproperty) ?? one.modifiedAt)])
  }
  if (lists.size === 0) return { type: 'Property', values: [] }
  const rendered = [...lists.values()].map(({ type, datasetId, member, pairs }): JsonObject => {
    return { type, ...(datasetId === undefined ? {} : { datasetId }), [pluralOf[member]!]: pairs }
  })
  return rendered.length === 1 ? rendered[0]! : rendered
}

/** The plain values or targets of a list [4.5.9]. */
function listIn(instance: AttributeInstance): Json | undefined {
  const { member } = kindOf(instance)
  const content = member === 'valueList' || member === 'objectList' ? instance[member] : undefined
  return Array.isArray(content) ? contentOf(instance) : content
}

/** The time for a time property; undefined if the instance has none. */
export function timeOf(one: TimedInstance, property: TimeProperty): number | undefined {
  if (property === 'observedAt') return one.observedAt
  if (property === 'deletedAt') return one.deletedAt
  if (property === 'modifiedAt') return one.modifiedAt
  return one.deletedAt === undefined ? one.createdAt : undefined
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
  const ms = offsetDateTimeToMs(text)
  if (ms === undefined) throw badRequestData('must be a DateTime such as 2025-06-30T12:00:00Z', field)
  return ms
}
