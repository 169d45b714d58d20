/**
 * The effect of each kind of write on an entity (GS CIM 009, 5.6). Pure functions return the new entity, the
 * names updated and refused, and one change per changed attribute instance. They never modify their
 * arguments; unchanged members remain the same objects.
 */
import type { Json } from '#contract/pipeline.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { checkGeometry } from '#ngsi-ld/geo/geometry.ts'
import { dateTimeToMs, isMillisecondExact, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, listOf, own, sameJson, stableJson } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Attribute, AttributeInstance } from './attribute.ts'
import {
  checkGeoName,
  isSubAttribute,
  kindNamed,
  kindOf,
  kindsByMember,
  prohibitedIn,
} from './attribute-kind.ts'
import { attributeNames, type Entity, type Fragment, instancesOf, isEntityMember } from './entity.ts'
import {
  type AttributeChange,
  changesBetween,
  createDraft,
  findInstance,
  type Merged,
} from './entity-draft.ts'
import { isNull, mergedInstance, withInstances, withoutNulls } from './instance-merge.ts'

/**
 * Adds the attributes of a fragment; replaces existing instances unless `noOverwrite` (POST attrs, 5.6.3).
 * Batch updates use this function too; in them NGSI-LD Null deletes the existing value.
 */
export function appendAttributes(
  entity: Entity,
  fragment: Fragment,
  options: { noOverwrite: boolean },
): Merged {
  const draft = createDraft(entity)
  draft.addTypes(fragment.type)
  if (fragment.scope !== undefined) {
    const kept = options.noOverwrite ? (entity.scope ?? []) : []
    const all = new Set([...listOf(kept), ...listOf(fragment.scope)])
    draft.setScope(fragment.scope === ngsiLdNull ? undefined : [...all])
  }
  if (fragment.expiresAt !== undefined) {
    if (options.noOverwrite && entity.expiresAt !== undefined) draft.refuse('expiresAt', existsAlready)
    else draft.setExpiry(unlessNull(fragment.expiresAt))
  }
  for (const name of attributeNames(fragment)) {
    for (const instance of instancesOf(fragment, name)) {
      const exists = draft.find(name, instance.datasetId) !== undefined
      if (exists && options.noOverwrite) draft.refuse(name, existsAlready)
      else if (!isNull(instance)) draft.put(name, withoutNulls(instance))
      else if (exists) draft.remove(name, instance.datasetId)
    }
  }
  return draft.finish()
}

/**
 * Replaces attributes (PATCH attrs, 5.6.2). The conformance profile determines whether missing ones are
 * appended or refused; NGSI-LD Null deletes. A scope is replaced, never added.
 */
export function updateAttributes(
  entity: Entity,
  fragment: Fragment,
  options: { appendMissing: boolean },
): Merged {
  const draft = createDraft(entity)
  draft.addTypes(fragment.type)
  if (fragment.scope !== undefined) {
    if (entity.scope === undefined) draft.refuse('scope', 'the entity has no scope')
    else draft.setScope(fragment.scope === ngsiLdNull ? undefined : fragment.scope)
  }
  if (fragment.expiresAt !== undefined) draft.setExpiry(unlessNull(fragment.expiresAt))
  for (const name of attributeNames(fragment)) {
    for (const instance of instancesOf(fragment, name)) {
      const exists = draft.find(name, instance.datasetId) !== undefined
      const allowed = exists || (options.appendMissing && !isNull(instance))
      if (!allowed) draft.refuse(name, missing(name, instance.datasetId))
      else if (isNull(instance)) draft.remove(name, instance.datasetId)
      else draft.put(name, withoutNulls(instance))
    }
  }
  return draft.finish()
}

/**
 * Overwrites the given members of one instance and keeps the others (PATCH attrs/{name}, 5.6.4).
 * @param partial from `parsePartial`; its datasetId selects the instance.
 * @throws ngsi-ld.not-found if there is no such instance; ngsi-ld.bad-request-data if its kind would change.
 */
export function updatePartially(entity: Entity, name: string, partial: JsonObject): Merged {
  refuseMember(name)
  const datasetId = own(partial, 'datasetId') as string | undefined
  const before = findInstance(entity, name, datasetId)
  if (before === undefined) throw notFound(missing(name, datasetId))
  checkSameKind(before, partial, name)
  const draft = createDraft(entity)
  if (isNull({ ...partial, type: before.type })) draft.remove(name, datasetId)
  else draft.put(name, checkedInstance(overwritten(before, partial), name))
  return draft.finish()
}

/**
 * Replaces whole instances of an existing attribute (PUT attrs/{name}, 5.6.19).
 * @throws ngsi-ld.not-found if one of them does not exist.
 */
export function replaceAttribute(
  entity: Entity,
  name: string,
  instances: readonly AttributeInstance[],
): Merged {
  refuseMember(name)
  const draft = createDraft(entity)
  for (const instance of instances) {
    if (draft.find(name, instance.datasetId) === undefined) throw notFound(missing(name, instance.datasetId))
    draft.put(name, instance)
  }
  return draft.finish()
}

/**
 * Deletes one instance, by default the one without datasetId, or all (DELETE attrs/{name}, 5.6.5); also
 * deletes a scope.
 * @throws ngsi-ld.not-found if there is none.
 */
export function deleteAttribute(
  entity: Entity,
  name: string,
  options: { datasetId?: string | undefined; deleteAll: boolean },
): Merged {
  const draft = createDraft(entity)
  if (name === 'scope' && entity.scope !== undefined) {
    draft.setScope(undefined)
    return draft.finish()
  }
  if (name === 'expiresAt' && entity.expiresAt !== undefined) {
    draft.setExpiry(undefined)
    return draft.finish()
  }
  if (name === 'id' || name === 'type') throw badRequestData('cannot be deleted', name)
  const doomed = instancesOf(entity, name).filter(
    ({ datasetId }) => options.deleteAll || datasetId === options.datasetId,
  )
  if (doomed.length === 0) throw notFound(missing(name, options.datasetId))
  for (const { datasetId } of doomed) draft.remove(name, datasetId)
  return draft.finish()
}

/**
 * Removes the attributes in `drop`, or all attributes except those in `keep`; `scope` counts as an attribute
 * (5.6.21).
 */
export function reduceEntity(
  entity: Entity,
  { keep, drop }: { keep?: ReadonlySet<string> | undefined; drop?: ReadonlySet<string> | undefined },
): Merged {
  const draft = createDraft(entity)
  const isDoomed = (name: string): boolean =>
    keep === undefined ? drop?.has(name) === true : !keep.has(name)
  for (const name of attributeNames(entity).filter(isDoomed)) {
    for (const { datasetId } of instancesOf(entity, name)) draft.remove(name, datasetId)
  }
  if (entity.scope !== undefined && isDoomed('scope')) draft.setScope(undefined)
  return draft.finish()
}

/** Replaces the whole entity, including types and scopes (PUT entity, 5.6.18; batch upsert). */
export function replaceEntity(entity: Entity, replacement: Entity): Merged {
  const changes = changesBetween(entity, replacement)
  return {
    entity: replacement,
    updated: [...new Set(changes.map(({ name }) => name))],
    notUpdated: [],
    changes,
  }
}

export interface MergeOptions {
  /** Canonical DateTime for merged instances that have an observedAt and receive no new one. */
  readonly observedAt?: string | undefined
  /** Language of a text that is merged into a LanguageProperty. */
  readonly lang?: string | undefined
  /** Values are bare: they adopt the kind of the attribute that they are merged into. */
  readonly simplified?: boolean | undefined
}

/**
 * Merges a fragment into an entity (PATCH entity, 5.6.17; RFC 7396 with NGSI-LD Null for null): members, and
 * objects in values, recursively. It replaces everything else, also an attribute that changes its kind.
 * @throws ngsi-ld.bad-request-data if a bare value does not fit the kind that it is merged into.
 */
export function mergeEntity(entity: Entity, fragment: Fragment, options: MergeOptions = {}): Merged {
  const draft = createDraft(entity)
  draft.addTypes(fragment.type)
  if (fragment.scope !== undefined) draft.setScope(fragment.scope === ngsiLdNull ? undefined : fragment.scope)
  if (fragment.expiresAt !== undefined) draft.setExpiry(unlessNull(fragment.expiresAt))
  for (const name of attributeNames(fragment)) {
    for (const given of instancesOf(fragment, name)) {
      const before = draft.find(name, given.datasetId)
      if (!isNull(given) || isOfOneLanguage(before, given, options)) {
        const after =
          before === undefined ? mergedInstance(undefined, given, name) : merged(before, given, name, options)
        checkGeoName(name, after)
        draft.put(name, checkedInstance(after, name))
      } else if (before !== undefined) draft.remove(name, given.datasetId)
    }
  }
  return draft.finish()
}

/** Whether a bare value belongs to one language, so that NGSI-LD Null deletes no other language. */
const isOfOneLanguage = (
  before: AttributeInstance | undefined,
  given: AttributeInstance,
  { lang }: MergeOptions,
): boolean => lang !== undefined && before?.type === 'LanguageProperty' && given.value !== undefined

/** The observation that a change represents: value, and time in ms since 1970 UTC. */
export interface ObservedValue {
  readonly value: Json
  readonly observedAtMs: number
}

/**
 * The observation in a change that only sets a new value and observedAt on an existing Property or
 * GeoProperty with the same unit and sub-attributes. Undefined for every other change, and for times that
 * milliseconds cannot represent.
 */
export function observationOf({ before, after }: AttributeChange): ObservedValue | undefined {
  if (before === undefined || after === undefined || kindOf(after).member !== 'value') return undefined
  const { value, observedAt } = after
  if (value === undefined || observedAt === undefined || !isMillisecondExact(observedAt)) return undefined
  return hasShapeOf(before, after) ? { value, observedAtMs: dateTimeToMs(observedAt)! } : undefined
}

/** Everything of an instance except value and observedAt, as JSON text in alphabetical order. */
export function shapeOf(instance: AttributeInstance): string {
  const { value: _value, observedAt: _observedAt, ...shape } = instance
  return stableJson(shape as JsonObject)
}

/** Builds an instance from a shape, a value and a time (ms since 1970 UTC). Inverse of `shapeOf`. */
export function fromShape(shape: string, value: Json, observedAtMs?: number): AttributeInstance {
  const { type, ...members } = JSON.parse(shape) as AttributeInstance
  return observedAtMs === undefined
    ? { type, value, ...members }
    : { type, value, observedAt: msToDateTime(observedAtMs), ...members }
}

/** Whether two instances are equal except for value and observedAt. */
export const hasShapeOf = (a: AttributeInstance, b: AttributeInstance): boolean =>
  sharesShape(a, b) && sharesShape(b, a)

/** Whether `b` has every member of `a` besides value and observedAt. */
function sharesShape(a: AttributeInstance, b: AttributeInstance): boolean {
  for (const member of Object.keys(a)) {
    if (member === 'value' || member === 'observedAt') continue
    if (!sameJson(own(a, member), own(b, member))) return false
  }
  return true
}

const missing = (name: string, datasetId: string | undefined): string =>
  datasetId === undefined
    ? `the entity has no attribute ${name}`
    : `${name} has no instance with datasetId ${datasetId}`

const existsAlready = 'already exists, and the request has noOverwrite'

const unlessNull = (text: string): string | undefined => (text === ngsiLdNull ? undefined : text)

function refuseMember(name: string): void {
  if (isEntityMember(name)) throw badRequestData('is not an attribute', name)
}

function checkSameKind(before: AttributeInstance, partial: JsonObject, name: string): void {
  const kind = kindOf(before)
  const stated = own(partial, 'type')
  if (stated !== undefined && kindNamed(stated as string) !== kind) {
    throw badRequestData(`the attribute is a ${kind.name}`, `${name}.type`)
  }
  const foreign = Object.keys(partial).find((member) => kindsByMember.has(member) && member !== kind.member)
  if (foreign !== undefined) throw badRequestData(`is not allowed in a ${kind.name}`, `${name}.${foreign}`)
}

/** An instance with the given members replacing its own, and without members set to NGSI-LD Null. */
function overwritten(before: AttributeInstance, partial: JsonObject): AttributeInstance {
  const members: Record<string, Json | undefined> = { ...before }
  for (const [member, value] of Object.entries(partial)) {
    if (member === 'type') continue
    const after = isSubAttribute(member) ? withInstances(members[member], value, withoutNulls) : value
    if (after === undefined || after === ngsiLdNull) delete members[member]
    else members[member] = after
  }
  return withoutNulls(members as AttributeInstance)
}

function merged(
  before: AttributeInstance,
  given: AttributeInstance,
  name: string,
  options: MergeOptions,
): AttributeInstance {
  const fitting = fitted(given, before, name, options)
  const after = mergedInstance(before, fitting, name)
  const { observedAt } = options
  const stamped =
    observedAt !== undefined && before.observedAt !== undefined && given.observedAt === undefined
  return stamped ? { ...after, observedAt } : after
}

/** A bare value as an instance of the existing kind. */
function fitted(
  given: AttributeInstance,
  before: AttributeInstance,
  name: string,
  options: MergeOptions,
): AttributeInstance {
  const { value } = given
  if (given.type === before.type || given.type === '') return given
  const kind = kindOf(before)
  if (value === undefined) {
    if (options.simplified === true) throw badRequestData(`is a ${kind.name}`, name)
    return given
  }
  const checked = (member: Json): Json =>
    kind.check(member, name, { context: coreContext, nulls: true, merging: true, simplified: true }, 1)
  if (isOfOneLanguage(before, given, options)) {
    return { type: kind.name, languageMap: checked({ [options.lang!]: value }) }
  }
  if (options.simplified !== true) return given
  const isBare = ['value', 'object', 'valueList', 'objectList'].includes(kind.member)
  if (!isBare) throw badRequestData(`is a ${kind.name}`, name)
  return { type: kind.name, [kind.member]: checked(value) }
}

/**
 * The instance with its geometry as an object.
 * @throws ngsi-ld.bad-request-data if it or a nested instance has an invalid geometry, or members that its
 * kind prohibits.
 */
function checkedInstance(instance: AttributeInstance, path: string): AttributeInstance {
  for (const member of Object.keys(instance).filter(isSubAttribute)) {
    const inner = instance[member] as unknown as Attribute
    for (const one of listOf<AttributeInstance>(inner)) checkedInstance(one, `${path}.${member}`)
  }
  const prohibited = prohibitedIn(kindOf(instance), instance)
  if (prohibited !== undefined)
    throw badRequestData(`is not allowed in a ${instance.type}`, `${path}.${prohibited}`)
  if (instance.type !== 'GeoProperty') return instance
  return { ...instance, value: checkGeometry(instance.value ?? null, `${path}.value`) }
}
