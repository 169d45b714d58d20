/**
 * Temporal entities as clients write them (GS CIM 009, 5.2.20 and 5.6.11): like entities, but every attribute is a list
 * of instances that belong to different times. Scopes may be given as such or reified, one instance per time. System
 * members and instance ids of the body are ignored, since only the gateway gives them; but for who brings back what a
 * gateway once told: then what has no observedAt is of the time that its system members name.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { checkDateTime, readTypes, systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, parseAttribute, withoutContext } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkAttributeName, checkScope, checkUri, keyword } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { deletionOf, isEnded, type PastDeletion } from './past-deletion.ts'

export interface TemporalFragment {
  readonly types?: string | readonly string[] | undefined
  /** When the entity expires; that is not of its history. */
  readonly expiresAt?: string | undefined
  /** The newest scopes named, if any. */
  readonly scope?: string | readonly string[] | undefined
  /** When the newest scopes were observed, ms; undefined where they name no time. */
  readonly scopeAt?: number | undefined
  /** Scopes with the times that they were observed at, oldest first. */
  readonly scopes?: readonly AttributeInstance[]
  /** By canonical name; oldest first, those without observedAt last. */
  readonly attributes: ReadonlyMap<string, readonly AttributeInstance[]>
  /** What was, at times that the body names; it says nothing about how the entity is. */
  readonly past?: readonly PastInstance[]
  /** Attributes that were deleted. */
  readonly deletions?: readonly PastDeletion[]
  /** A gateway tells again what it knows; what is known here, too, means nothing. */
  readonly isRetold?: boolean
  /** An uplink states that nothing of it is current. */
  readonly isPast?: boolean
}

/** An instance without observedAt as a gateway once told it, or the end of one. */
export interface PastInstance {
  readonly name: string
  readonly dataset: string
  /** Null: it was deleted. */
  readonly instance: AttributeInstance | null
  /** Kind of attribute. */
  readonly type: string
  /** Commit time, ms. */
  readonly at: number
}

export interface TemporalReading {
  /** Instances without observedAt are of the time that their system members name. */
  readonly keepsTimes?: boolean
  /** Nothing of it becomes current where the entity exists. */
  readonly isPast?: boolean
}

export interface TemporalEntity extends TemporalFragment {
  readonly id: string
  readonly types: string | readonly string[]
}

/** @throws ngsi-ld.bad-request-data naming the member at fault */
export function parseTemporalEntity(
  json: unknown,
  context: Context,
  reading: TemporalReading = {},
): TemporalEntity {
  const fragment = parseTemporalFragment(json, context, { reading })
  const id = idOf(json as JsonObject)
  if (id === undefined) throw badRequestData('is missing', 'id')
  if (fragment.types === undefined) throw badRequestData('is missing', 'type')
  return { ...fragment, id: checkUri(id, 'id'), types: fragment.types }
}

/** Refused before they are read: reading many takes long. @throws ngsi-ld.bad-request-data */
function checkCount(json: JsonObject): void {
  const count = Object.values(json).reduce<number>((sum, one) => sum + listOf<Json>(one).length, 0)
  if (count <= limits.temporalBodyInstances.value) return
  throw badRequestData(`has more than ${limits.temporalBodyInstances.value} instances`, 'body')
}

/** Attributes to be added; an id in the body has to be that of the path. */
export function parseTemporalFragment(
  json: unknown,
  context: Context,
  { id, reading = {} }: { id?: string; reading?: TemporalReading } = {},
): TemporalFragment {
  if (!isObject(json)) throw badRequestData('must be a JSON object', 'body')
  if (Object.keys(json).every((key) => key === '@context')) throw invalidRequest('the body is empty')
  checkCount(json)
  const given = idOf(json)
  if (id !== undefined && given !== undefined && given !== id) throw badRequestData(`is not ${id}`, 'id')
  const type = keyword(json, 'type')
  const attributes = new Map<string, AttributeInstance[]>()
  const past: PastInstance[] = []
  const deletions: PastDeletion[] = []
  let scope: Pick<TemporalFragment, 'scope' | 'scopeAt' | 'scopes'> = {}
  let expiresAt: string | undefined
  for (const key of Object.keys(json)) {
    const name = context.expand(key)
    if (key === '@context' || name === 'id' || name === 'type') continue
    if (systemMembers.has(name) && !listOf<Json>(json[key]!).some(isObject)) continue
    if (name === 'expiresAt') {
      expiresAt = checkDateTime(json[key]!, key)
      continue
    }
    if (name === 'scope') {
      const items = listOf<Json>(json[key]!)
      const told = reading.keepsTimes === true ? items.map(pastScope) : []
      past.push(...told.filter((one) => one !== undefined))
      const ended = items.map((item, i) => (told[i] === undefined ? deletionOf(item, name) : undefined))
      deletions.push(...ended.filter((one) => one !== undefined))
      const others = items.filter((_, i) => told[i] === undefined && ended[i] === undefined)
      if (others.length > 0 || items.length === 0) scope = readScopes(others)
      continue
    }
    if (attributes.size >= limits.attributesPerEntityMax.value) {
      throw badRequestData(`more than ${limits.attributesPerEntityMax.value} attributes`, key)
    }
    const canonical = checkAttributeName(name, key)
    const items = listOf<Json>(json[key]!)
    const told = items.map((item) => (reading.keepsTimes ? pastOf(item, canonical, context) : undefined))
    const ended = items.map((item, i) => (told[i] === undefined ? deletionOf(item, canonical) : undefined))
    past.push(...told.filter((one) => one !== undefined))
    deletions.push(...ended.filter((one) => one !== undefined))
    const rest = items.filter((_, i) => told[i] === undefined && ended[i] === undefined)
    if (rest.length === 0 && (items.length > 0 || reading.keepsTimes)) continue
    const given = rest.length === items.length ? json[key]! : rest
    const instances = [...(attributes.get(canonical) ?? []), ...instancesIn(given, canonical, context)]
    attributes.set(canonical, inOrder(instances))
  }
  return {
    types:
      type === undefined ? undefined : (readTypes(type, 'type', { context }) as string | readonly string[]),
    ...scope,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    attributes,
    ...(reading.keepsTimes === true ? { isRetold: true } : {}),
    ...(reading.isPast === true ? { isPast: true } : {}),
    ...(deletions.length === 0 ? {} : { deletions }),
    ...(past.length === 0 ? {} : { past: past.toSorted((a, b) => a.at - b.at) }),
  }
}

/** An instance that has no observedAt and names the time that it is of. */
function pastOf(item: Json, name: string, context: Context): PastInstance | undefined {
  const told = isObject(item) && own(item, 'observedAt') === undefined ? toldTime(item, name) : undefined
  if (told === undefined || !isObject(item)) return undefined
  if (!told.isEnd) {
    const [instance] = instancesIn(item, name, context)
    if (instance === undefined) return undefined
    return { name, dataset: instance.datasetId ?? '', instance, type: instance.type, at: told.at }
  }
  const dataset = own(item, 'datasetId')
  const type = own(item, 'type')
  return {
    name,
    dataset: dataset === undefined ? '' : checkUri(dataset, `${name}.datasetId`),
    instance: null,
    type: kindOf({ type: typeof type === 'string' ? type : '' }).name,
    at: told.at,
  }
}

function pastScope(item: Json): PastInstance | undefined {
  const told = isObject(item) && own(item, 'observedAt') === undefined ? toldTime(item, 'scope') : undefined
  if (told === undefined) return undefined
  const base = { name: 'scope', dataset: '', type: 'Property', at: told.at }
  if (told.isEnd) return { ...base, instance: null }
  return { ...base, instance: { type: 'Property', value: [...listOf(readScope(item))] } }
}

/** The commit time that an answer gave an instance; `isEnd` where it was the marker of a deletion. */
function toldTime(
  item: JsonObject,
  name: string,
): { readonly at: number; readonly isEnd: boolean } | undefined {
  const deletedAt = own(item, 'deletedAt')
  const text = deletedAt ?? own(item, 'modifiedAt') ?? own(item, 'createdAt')
  if (text === undefined) return undefined
  const at = typeof text === 'string' ? dateTimeToMs(text) : undefined
  if (at === undefined) throw badRequestData('has a system time that is no DateTime', name)
  return { at, isEnd: deletedAt !== undefined }
}

/** The instance that a body gives in the place of another one. */
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
  if (instance === undefined || others.length > 0) throw badRequestData('has to be one instance', name)
  return instance
}

/** The entity as it is at the end: the newest instance of each attribute and dataset that was not deleted since. */
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

function instancesIn(json: Json, name: string, context: Context): AttributeInstance[] {
  const items = Array.isArray(json) && json.some(isObject) ? (json as readonly Json[]) : [json]
  return items.flatMap((item) => listOf<AttributeInstance>(parseAttribute(item, name, context)))
}

function inOrder(instances: AttributeInstance[]): AttributeInstance[] {
  const timeOf = ({ observedAt }: AttributeInstance): number =>
    dateTimeToMs(observedAt ?? '') ?? Number.MAX_SAFE_INTEGER
  return instances.toSorted((a, b) => timeOf(a) - timeOf(b))
}

/** Scopes as they stand in an entity, or reified: then each at its time, and the newest are those of the entity. */
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

/** Reified scopes one by one; paths alone are one instance. */
const scopesIn = (json: Json): AttributeInstance[] =>
  listOf<Json>(json).some(isObject) ? listOf<Json>(json).map(readScopeInstance) : [readScopeInstance(json)]

function readScopeInstance(item: Json): AttributeInstance {
  const observedAt = isObject(item) ? own(item, 'observedAt') : undefined
  if (observedAt !== undefined && (typeof observedAt !== 'string' || dateTimeToMs(observedAt) === undefined))
    throw badRequestData('must be a DateTime such as 2025-06-30T12:00:00Z', 'scope.observedAt')
  const value = listOf(readScope(item))
  return { type: 'Property', value, ...(observedAt === undefined ? {} : { observedAt }) }
}

/** Scopes as they stand in an entity, or reified. */
function readScope(json: Json): string | readonly string[] {
  return checkScope(isObject(json) ? (own(json, 'value') ?? []) : json)
}
