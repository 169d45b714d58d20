/**
 * Temporal entities as clients write them (GS CIM 009, 5.2.20 and 5.6.11): like entities, but every attribute is a list
 * of instances that belong to different times. Scopes may be given as such or reified, one instance per time. System
 * members and instance ids of the body are ignored, since only the gateway gives them.
 */
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { readTypes, systemMembers } from './attribute.ts'
import type { Context } from './context.ts'
import { dateTimeToMs } from './datetime.ts'
import { type Attribute, type AttributeInstance, type Entity, parseAttribute } from './entity.ts'
import { isObject, type JsonObject, listOf, own } from './json.ts'
import { checkName, checkScope, checkUri } from './name.ts'
import { badRequestData, invalidRequest } from './problem.ts'

export interface TemporalFragment {
  readonly types?: string | readonly string[] | undefined
  /** The newest scopes named, if any. */
  readonly scope?: string | readonly string[] | undefined
  /** By canonical name; oldest first, those without observedAt last. */
  readonly attributes: ReadonlyMap<string, readonly AttributeInstance[]>
}

export interface TemporalEntity extends TemporalFragment {
  readonly id: string
  readonly types: string | readonly string[]
}

/** @throws ngsi-ld.bad-request-data naming the member at fault */
export function parseTemporalEntity(json: unknown, context: Context): TemporalEntity {
  const fragment = parseTemporalFragment(json, context)
  const id = idOf(json as JsonObject)
  if (id === undefined) throw badRequestData('is missing', 'id')
  if (fragment.types === undefined) throw badRequestData('is missing', 'type')
  return { ...fragment, id: checkUri(id, 'id'), types: fragment.types }
}

/** Attributes to be added; an id in the body has to be that of the path. */
export function parseTemporalFragment(json: unknown, context: Context, id?: string): TemporalFragment {
  if (!isObject(json)) throw badRequestData('must be a JSON object', 'body')
  if (Object.keys(json).every((key) => key === '@context')) throw invalidRequest('the body is empty')
  const given = idOf(json)
  if (id !== undefined && given !== undefined && given !== id) throw badRequestData(`is not ${id}`, 'id')
  const type = own(json, 'type') ?? own(json, '@type')
  const attributes = new Map<string, AttributeInstance[]>()
  let scope: TemporalFragment['scope']
  for (const key of Object.keys(json)) {
    const name = context.expand(key)
    if (key === '@context' || name === 'id' || name === 'type' || systemMembers.has(name)) continue
    if (name === 'scope') {
      scope = readScope(json[key]!)
      continue
    }
    if (attributes.size >= limits.attributesPerEntityMax.value) {
      throw badRequestData(`more than ${limits.attributesPerEntityMax.value} attributes`, key)
    }
    const canonical = checkName(name, key)
    const instances = [...(attributes.get(canonical) ?? []), ...instancesIn(json[key]!, canonical, context)]
    attributes.set(canonical, inOrder(instances))
  }
  return {
    types:
      type === undefined ? undefined : (readTypes(type, 'type', { context }) as string | readonly string[]),
    scope,
    attributes,
  }
}

/** The instance that a body gives in the place of another one. */
export function parseTemporalInstance(
  json: unknown,
  name: string,
  term: string,
  context: Context,
): AttributeInstance {
  const body = isObject(json) ? json : undefined
  const inner = body === undefined ? json : (own(body, term) ?? own(body, name) ?? body)
  const [instance, ...others] = instancesIn(inner as Json, name, context)
  if (instance === undefined || others.length > 0) throw badRequestData('has to be one instance', name)
  return instance
}

/** The entity as it is at the end: the newest instance of each attribute and dataset. */
export function newestOf({ id, types, scope, attributes }: TemporalEntity): Entity {
  const members: Record<string, Attribute> = {}
  for (const [name, instances] of attributes) {
    const newest = new Map<string | undefined, AttributeInstance>()
    for (const instance of instances) newest.set(instance.datasetId, instance)
    const kept = [...newest.values()]
    if (kept.length > 0) members[name] = kept.length === 1 ? kept[0]! : kept
  }
  return { id, type: types, ...(scope === undefined ? {} : { scope }), ...members }
}

const idOf = (json: JsonObject): Json | undefined => own(json, 'id') ?? own(json, '@id')

function instancesIn(json: Json, name: string, context: Context): AttributeInstance[] {
  const items = Array.isArray(json) && json.some(isObject) ? (json as readonly Json[]) : [json]
  return items.flatMap((item) => listOf<AttributeInstance>(parseAttribute(item, name, context)))
}

function inOrder(instances: AttributeInstance[]): AttributeInstance[] {
  const timeOf = ({ observedAt }: AttributeInstance): number =>
    dateTimeToMs(observedAt ?? '') ?? Number.MAX_SAFE_INTEGER
  return instances.toSorted((a, b) => timeOf(a) - timeOf(b))
}

/** Scopes as they stand in an entity, or the last of reified ones. */
function readScope(json: Json): string | readonly string[] {
  const items = listOf<Json>(json)
  const last = items.at(-1)
  if (isObject(last)) return readScope(own(last, 'value') ?? [])
  return checkScope(json)
}
