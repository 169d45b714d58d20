/**
 * Parses temporal entities from clients (GS CIM 009, 5.2.20 and 5.6.11): like entities, but every attribute
 * is a list of instances at different times. Scopes may be plain or reified, one instance per time. System
 * members and instance ids in the body are ignored, because only the gateway assigns them. With `keepsTimes`,
 * a client restores a gateway's earlier response: instances without observedAt take the time of their system
 * members.
 */
import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import {
  type Attribute,
  type AttributeInstance,
  checkDateTime,
  readTypes,
  systemMembers,
} from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, parseAttribute, tooManyAttributes, withoutContext } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkAttributeName, checkScope, checkUri, keyword } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { deletionOf, isEnded, type PastDeletion } from './past-deletion.ts'

export interface TemporalFragment {
  readonly types?: string | readonly string[] | undefined
  /** When the entity expires; not part of its history. */
  readonly expiresAt?: string | undefined
  /** The newest scopes in the body, if any. */
  readonly scope?: string | readonly string[] | undefined
  /** When the newest scopes were observed, ms; undefined if they have no time. */
  readonly scopeAt?: number | undefined
  /** Scopes with their observation times, oldest first. */
  readonly scopes?: readonly AttributeInstance[]
  /** By canonical name; oldest first, those without observedAt last. */
  readonly attributes: ReadonlyMap<string, readonly AttributeInstance[]>
  /** Past instances at times stated in the body; they do not affect the current state. */
  readonly past?: readonly PastInstance[]
  /** Attributes that were deleted. */
  readonly deletions?: readonly PastDeletion[]
  /** The body is an earlier response of a gateway; instances already stored here are ignored. */
  readonly isReplay?: boolean
  /** An uplink declares that no instance in the body is current. */
  readonly isPast?: boolean
}

/** An instance without observedAt from an earlier response of a gateway, or the end of one. */
export interface PastInstance {
  readonly name: string
  readonly dataset: string
  /** Null means deleted. */
  readonly instance: AttributeInstance | null
  /** Kind of attribute. */
  readonly type: string
  /** Commit time, ms. */
  readonly at: number
}

export interface TemporalParseOptions {
  /** Awaited between portions of instances, because reading 10,000 of them takes 40 ms. */
  readonly yieldIfDue: YieldIfDue
  /** Instances without observedAt take the time of their system members. */
  readonly keepsTimes?: boolean
  /** If the entity exists, no instance becomes current. */
  readonly isPast?: boolean
}

export interface TemporalEntity extends TemporalFragment {
  readonly id: string
  readonly types: string | readonly string[]
}

/** @throws ngsi-ld.bad-request-data naming the invalid member */
export async function parseTemporalEntity(
  json: unknown,
  context: Context,
  options: TemporalParseOptions,
): Promise<TemporalEntity> {
  const fragment = await parseTemporalFragment(json, context, options)
  const id = idOf(json as JsonObject)
  if (id === undefined) throw badRequestData('is missing', 'id')
  if (fragment.types === undefined) throw badRequestData('is missing', 'type')
  return { ...fragment, id: checkUri(id, 'id'), types: fragment.types }
}

/**
 * Rejects too many instances before they are parsed, because parsing takes long.
 * @throws ngsi-ld.bad-request-data
 */
function checkCount(json: JsonObject): void {
  const count = Object.values(json).reduce<number>((sum, one) => sum + listOf<Json>(one).length, 0)
  if (count <= limits.temporalBodyInstances.value) return
  throw badRequestData(`has more than ${limits.temporalBodyInstances.value} instances`, 'body')
}

function checkBody(json: unknown, id: string | undefined): asserts json is JsonObject {
  if (!isObject(json)) throw badRequestData('must be a JSON object', 'body')
  if (Object.keys(json).every((key) => key === '@context')) throw invalidRequest('the body is empty')
  checkCount(json)
  const given = idOf(json)
  if (id !== undefined && given !== undefined && given !== id)
    throw badRequestData(`must be ${id}, as in the path`, 'id')
}

/** Parses attributes to add; an id in the body must equal that of the path. */
export async function parseTemporalFragment(
  json: unknown,
  context: Context,
  { id, ...options }: TemporalParseOptions & { readonly id?: string },
): Promise<TemporalFragment> {
  checkBody(json, id)
  const type = keyword(json, 'type')
  const attributes = new Map<string, AttributeInstance[]>()
  const past: PastInstance[] = []
  const deletions: PastDeletion[] = []
  let scope: Pick<TemporalFragment, 'scope' | 'scopeAt' | 'scopes'> = {}
  let expiresAt: string | undefined
  const inPortions = createPortions(options.yieldIfDue)
  /** Collects past instances and deletions; returns the other instances. */
  const withoutPast = async (
    items: readonly Json[],
    name: string,
    pastIn: (item: Json) => PastInstance | undefined,
  ): Promise<Json[]> => {
    const others: Json[] = []
    await inPortions(items, (item) => {
      const earlier = options.keepsTimes === true ? pastIn(item) : undefined
      const deletion = earlier === undefined ? deletionOf(item, name) : undefined
      if (earlier !== undefined) past.push(earlier)
      else if (deletion !== undefined) deletions.push(deletion)
      else others.push(item)
    })
    return others
  }
  const addAttribute = async (key: string, name: string): Promise<void> => {
    if (attributes.size >= limits.attributesPerEntityMax.value) throw tooManyAttributes(key)
    const items = listOf<Json>(json[key]!)
    const rest = await withoutPast(items, name, (item) => pastOf(item, name, context))
    if (rest.length === 0 && (items.length > 0 || options.keepsTimes)) return
    const instances = [...(attributes.get(name) ?? [])]
    await inPortions(itemsOf(rest.length === items.length ? json[key]! : rest), (item) => {
      instances.push(...instancesOf(item, name, context))
    })
    attributes.set(name, inOrder(instances))
  }
  for (const key of Object.keys(json)) {
    const name = context.expand(key)
    if (key === '@context' || name === 'id' || name === 'type') continue
    if (systemMembers.has(name) && !listOf<Json>(json[key]!).some(isObject)) continue
    if (name === 'expiresAt') expiresAt = checkDateTime(json[key]!, key)
    else if (name === 'scope') {
      const items = listOf<Json>(json[key]!)
      const others = await withoutPast(items, name, pastScope)
      if (others.length > 0 || items.length === 0) scope = readScopes(others)
    } else await addAttribute(key, checkAttributeName(name, key))
  }
  return {
    types:
      type === undefined ? undefined : (readTypes(type, 'type', { context }) as string | readonly string[]),
    ...scope,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    attributes,
    ...(options.keepsTimes === true ? { isReplay: true } : {}),
    ...(options.isPast === true ? { isPast: true } : {}),
    ...(deletions.length === 0 ? {} : { deletions }),
    ...(past.length === 0 ? {} : { past: past.toSorted((a, b) => a.at - b.at) }),
  }
}

/** An instance that has no observedAt and states its time in system members. */
function pastOf(item: Json, name: string, context: Context): PastInstance | undefined {
  const commit = isObject(item) && own(item, 'observedAt') === undefined ? systemTime(item, name) : undefined
  if (commit === undefined || !isObject(item)) return undefined
  if (!commit.isEnd) {
    const [instance] = instancesIn(item, name, context)
    if (instance === undefined) return undefined
    return { name, dataset: instance.datasetId ?? '', instance, type: instance.type, at: commit.at }
  }
  const dataset = own(item, 'datasetId')
  const type = own(item, 'type')
  return {
    name,
    dataset: dataset === undefined ? '' : checkUri(dataset, `${name}.datasetId`),
    instance: null,
    type: kindOf({ type: typeof type === 'string' ? type : '' }).name,
    at: commit.at,
  }
}

function pastScope(item: Json): PastInstance | undefined {
  const commit =
    isObject(item) && own(item, 'observedAt') === undefined ? systemTime(item, 'scope') : undefined
  if (commit === undefined) return undefined
  const base = { name: 'scope', dataset: '', type: 'Property', at: commit.at }
  if (commit.isEnd) return { ...base, instance: null }
  return { ...base, instance: { type: 'Property', value: [...listOf(readScope(item))] } }
}

/** The commit time of an instance from a response; `isEnd` if it was the marker of a deletion. */
function systemTime(
  item: JsonObject,
  name: string,
): { readonly at: number; readonly isEnd: boolean } | undefined {
  const deletedAt = own(item, 'deletedAt')
  const text = deletedAt ?? own(item, 'modifiedAt') ?? own(item, 'createdAt')
  if (text === undefined) return undefined
  const at = typeof text === 'string' ? dateTimeToMs(text) : undefined
  if (at === undefined) throw badRequestData('a system time must be a DateTime', name)
  return { at, isEnd: deletedAt !== undefined }
}

/** Parses an instance that replaces another one. */
export function parseTemporalInstance(
  json: unknown,
  name: string,
  term: string,
  context: Context,
): AttributeInstance {
  const body = isObject(json) ? withoutContext<JsonObject>(json) : undefined
  const inner = body === undefined ? json : (own(body, term) ?? own(body, name) ?? body)
  const [instance, ...others] =
    name === 'scope' ? scopesIn(inner as Json) : instancesIn(inner as Json, name, context)
  if (instance === undefined || others.length > 0) throw badRequestData('must be exactly one instance', name)
  return instance
}

/**
 * The final state of the entity: the newest instance of each attribute and dataset that was not deleted
 * later.
 */
export function newestOf({
  id,
  types,
  scope,
  expiresAt,
  attributes,
  deletions = [],
}: TemporalEntity): Entity {
  const members: Record<string, Attribute> = {}
  for (const [name, instances] of attributes) {
    const newest = new Map<string | undefined, AttributeInstance>()
    for (const instance of instances)
      if (!isEnded(deletions, name, instance)) newest.set(instance.datasetId, instance)
    const kept = [...newest.values()]
    if (kept.length > 0) members[name] = kept.length === 1 ? kept[0]! : kept
  }
  return {
    id,
    type: types,
    ...(scope === undefined ? {} : { scope }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...members,
  }
}

const idOf = (json: JsonObject): Json | undefined => keyword(json, 'id')

/** Instances that are read between two checks of the time slice: about 1 ms. */
const instancesPerPortion = 250

/** Reads lists one after the other and counts the items of all of them. */
function createPortions(yieldIfDue: YieldIfDue) {
  let count = 0
  return async (items: readonly Json[], read: (item: Json) => void): Promise<void> => {
    for (const item of items) {
      if (++count % instancesPerPortion === 0) await yieldIfDue()
      read(item)
    }
  }
}

/** A list of attribute instances as items; any other value as one item. */
const itemsOf = (json: Json): readonly Json[] => (isList(json) && json.some(isObject) ? json : [json])

const instancesOf = (item: Json, name: string, context: Context): readonly AttributeInstance[] =>
  listOf<AttributeInstance>(parseAttribute(item, name, context))

const instancesIn = (json: Json, name: string, context: Context): AttributeInstance[] =>
  itemsOf(json).flatMap((item) => instancesOf(item, name, context))

/** Each time is read once, because a body may hold thousands of instances in any order. */
function inOrder(instances: AttributeInstance[]): AttributeInstance[] {
  const timed = instances.map((instance) => ({
    instance,
    at: dateTimeToMs(instance.observedAt ?? '') ?? Number.MAX_SAFE_INTEGER,
  }))
  return timed.toSorted((a, b) => a.at - b.at).map(({ instance }) => instance)
}

/**
 * Parses plain or reified scopes. Reified scopes have their own times, and the newest are those of the
 * entity.
 */
function readScopes(json: Json): Pick<TemporalFragment, 'scope' | 'scopeAt' | 'scopes'> {
  if (!listOf<Json>(json).some(isObject)) return { scope: checkScope(json) }
  const instances = inOrder(scopesIn(json))
  const newest = instances.at(-1)!
  const scopes = instances.filter(({ observedAt }) => observedAt !== undefined)
  return {
    scope: checkScope(newest['value']!),
    scopeAt: dateTimeToMs(newest.observedAt ?? ''),
    ...(scopes.length === 0 ? {} : { scopes }),
  }
}

/** Reified scopes one by one; plain paths are one instance. */
const scopesIn = (json: Json): AttributeInstance[] =>
  listOf<Json>(json).some(isObject) ? listOf<Json>(json).map(readScopeInstance) : [readScopeInstance(json)]

function readScopeInstance(item: Json): AttributeInstance {
  const observedAt = isObject(item) ? own(item, 'observedAt') : undefined
  if (observedAt !== undefined && (typeof observedAt !== 'string' || dateTimeToMs(observedAt) === undefined))
    throw badRequestData('must be a DateTime such as 2025-06-30T12:00:00Z', 'scope.observedAt')
  const value = listOf(readScope(item))
  return { type: 'Property', value, ...(observedAt === undefined ? {} : { observedAt }) }
}

/** Parses the paths of plain or reified scopes. */
function readScope(json: Json): string | readonly string[] {
  return checkScope(isObject(json) ? (own(json, 'value') ?? []) : json)
}
