/**
 * Merges one attribute instance into another (GS CIM 009, 5.5.12; RFC 7396): members, sub-attributes and
 * objects in values recursively; NGSI-LD Null deletes. Arrays are values and are replaced as a whole.
 */
import type { Json } from '#contract/pipeline.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Attribute, AttributeInstance } from './attribute.ts'
import { isSubAttribute, kindOf } from './attribute-kind.ts'

/** Whether an instance requests its own deletion; a LanguageProperty does so with the language `@none`. */
export function isNull(instance: AttributeInstance): boolean {
  const value = instance[kindOf(instance).member]
  if (value === ngsiLdNull) return true
  return instance.type === 'LanguageProperty' && isObject(value) && value['@none'] === ngsiLdNull
}

/** An instance with the members of `patch` merged in. Both have the same kind. */
export function mergeInstances(before: AttributeInstance, patch: AttributeInstance): AttributeInstance {
  const members = new Map<string, Json | undefined>(Object.entries(before))
  for (const [name, value] of Object.entries(patch)) {
    const present = members.get(name)
    const result = isSubAttribute(name)
      ? withInstances(present, value, (given, old) => mergedInstance(old, given, name))
      : mergeJson(present, value!)
    if (result === undefined) members.delete(name)
    else members.set(name, result)
  }
  return Object.fromEntries(members) as AttributeInstance
}

/**
 * Combines an instance with a given one: merges if the kinds are equal or the given kind is implied, else
 * replaces it.
 * @throws ngsi-ld.bad-request-data if a replacement lacks its value.
 */
export function mergedInstance(
  before: AttributeInstance | undefined,
  given: AttributeInstance,
  path = 'body',
): AttributeInstance {
  if (before !== undefined && (given.type === before.type || isOfKindOf(before, given))) {
    return mergeInstances(before, { ...given, type: before.type })
  }
  if (given.type === '') throw badRequestData('has neither a type nor a value', path)
  const { name, member } = kindOf(given)
  if (given[member] === undefined) throw badRequestData(`is required in a ${name}`, `${path}.${member}`)
  return withoutNulls(given)
}

/** Whether the kind is implied: none is stated, or the value is coordinates for an existing geometry. */
const isOfKindOf = (before: AttributeInstance, { type, value }: AttributeInstance): boolean =>
  type === '' ||
  (before.type === 'GeoProperty' &&
    isObject(value) &&
    Object.hasOwn(value, 'coordinates') &&
    !Object.hasOwn(value, 'type'))

/** The instance without members that request deletion; the same object if there are none. */
export const withoutNulls = (instance: AttributeInstance): AttributeInstance =>
  holdsNull(instance as Json) ? mergeInstances({ type: instance.type }, instance) : instance

/**
 * A sub-attribute with the given instances in it and all others unchanged; undefined if none remains.
 * @param become computes the result for a given instance and the present one with its datasetId, if any.
 */
export function withInstances(
  before: Json | undefined,
  patch: Json | undefined,
  become: (given: AttributeInstance, present: AttributeInstance | undefined) => AttributeInstance,
): Json | undefined {
  const instances = before === undefined ? [] : [...listOf(before as Attribute)]
  for (const given of listOf(patch as Attribute)) {
    const found = instances.findIndex(({ datasetId }) => datasetId === given.datasetId)
    const after = isNull(given) ? [] : [become(given, instances[found])]
    instances.splice(found < 0 ? instances.length : found, 1, ...after)
  }
  return (instances.length === 1 ? instances[0] : instances.length === 0 ? undefined : instances) as
    | Json
    | undefined
}

/** RFC 7396, section 2, with NGSI-LD Null for null. */
function mergeJson(target: Json | undefined, patch: Json): Json | undefined {
  if (patch === ngsiLdNull) return undefined
  if (!isObject(patch)) return patch
  // A map, because assigning the member `__proto__` would set the prototype.
  const members = new Map<string, Json>(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    const result = mergeJson(members.get(name), value)
    if (result === undefined) members.delete(name)
    else members.set(name, result)
  }
  return Object.fromEntries(members)
}

export function holdsNull(value: Json): boolean {
  if (value === ngsiLdNull) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsNull)
}
