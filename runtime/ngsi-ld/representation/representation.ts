/**
 * Renders entities for responses: normalized, concise or simplified (GS CIM 009, 4.5.1 to 4.5.4), names
 * compacted by the request's context, with projection and system attributes as requested. Results are plain
 * objects for JSON.stringify and may share parts with the entity. If the context is the core, the format
 * normalized and there is no projection, callers send the stored text.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Attribute, type AttributeInstance, systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { isSubAttribute, kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { inLanguage } from '#ngsi-ld/entity/language.ts'
import { isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import type { Projection } from './projection.ts'

export type Format = 'normalized' | 'concise' | 'simplified'

/**
 * Creation and modification times (ms), and the Via chain of the last write if it came from another broker.
 */
export type Stamps = readonly [created: number, modified: number, via?: string | undefined]

/**
 * createdAt and modifiedAt (ms) of an entity and of its attribute instances, keyed `name` or `name
 * datasetId`. A value written through other brokers includes their Via chain; '' is the entity itself if it
 * was created that way.
 */
export interface SystemTimes {
  readonly created: number
  readonly modified: number
  readonly attributes: Readonly<Record<string, Stamps>>
}

/** Options for rendering a single attribute. */
export interface AttributeOptions {
  readonly context: Context
  readonly format: Format
  /** From `languageRanges`: reduces language maps to one text. */
  readonly lang?: readonly string[] | undefined
  /** Include system attributes: createdAt and modifiedAt if times are given, and expiresAt (4.22). */
  readonly sysAttrs?: boolean | undefined
}

export interface RenderOptions extends AttributeOptions {
  /** Canonical names of attributes to show; id, type and scope always remain. */
  readonly attrs?: ReadonlySet<string> | undefined
  /** Canonical names of the only members to show, and of members to omit (since 1.8). */
  readonly pick?: ReadonlySet<string> | undefined
  readonly omit?: ReadonlySet<string> | undefined
  /** Instances to show, `@none` for those without datasetId. */
  readonly datasetId?: ReadonlySet<string> | undefined
  /** Value of the member `@context`. */
  readonly atContext?: Json | undefined
  /** The projections of linked entities; `pick` and `omit` are derived from them. */
  readonly projections?: { readonly pick?: Projection | undefined; readonly omit?: Projection | undefined }
  /** The rendered target entities of a relationship instance (4.5.23). */
  readonly join?: (name: string, instance: AttributeInstance) => Joined | undefined
}

/** Rendered entities by their ids. */
export interface Joined {
  readonly found: ReadonlyMap<string, Json>
}

export function renderEntity(
  entity: Entity,
  times: SystemTimes | undefined,
  options: RenderOptions,
): JsonObject {
  const { context, attrs, pick, omit } = options
  const shown = (name: string): boolean => (pick?.has(name) ?? true) && !omit?.has(name)
  const stamps = options.sysAttrs === true ? times : undefined
  const rendered: Record<string, Json> = {}
  if (shown('id')) rendered['id'] = entity.id
  if (shown('type')) rendered['type'] = compactNames(entity.type, context)
  if (entity.scope !== undefined && shown('scope')) rendered['scope'] = entity.scope
  if (options.sysAttrs === true && entity.expiresAt !== undefined && shown('expiresAt'))
    rendered['expiresAt'] = entity.expiresAt
  if (stamps !== undefined) Object.assign(rendered, stampsOf([stamps.created, stamps.modified]))
  for (const name of attributeNames(entity)) {
    if (!shown(name) || attrs?.has(name) === false) continue
    const instances = chosen(instancesOf(entity, name), options.datasetId)
    if (instances.length === 0) continue
    rendered[context.compact(name)] = renderInstances(instances, options, {
      stamps: (instance) => stampsOf(stamps && own(stamps.attributes, keyOf(name, instance))),
      joined: (instance) => options.join?.(name, instance),
    })
  }
  // If no member of the entity is shown, its times are omitted too.
  const isEmpty = Object.keys(rendered).every((member) => systemMembers.has(member))
  if (stamps !== undefined && isEmpty) return {}
  if (options.atContext !== undefined) rendered['@context'] = options.atContext
  return rendered
}

/**
 * Renders one instance without members that only responses have: the caller may add members such as
 * instanceId.
 * @param bare whether the concise form may be a value alone; among several instances it may not.
 */
export function renderInstance(instance: AttributeInstance, options: AttributeOptions, bare = true): Json {
  const localized = options.lang === undefined ? instance : inLanguage(instance, options.lang)
  if (options.format === 'simplified') return simplified(localized, options.context)
  const whole = renderMembers(localized, options)
  return options.format === 'concise' ? concise(whole, bare) : whole
}

/** Key of an instance in system times. */
const keyOf = (name: string, { datasetId }: AttributeInstance): string =>
  datasetId === undefined ? name : `${name} ${datasetId}`

const stampsOf = (pair: Stamps | undefined): JsonObject =>
  pair === undefined ? {} : { createdAt: msToDateTime(pair[0]), modifiedAt: msToDateTime(pair[1]) }

const chosen = (
  instances: readonly AttributeInstance[],
  datasets: ReadonlySet<string> | undefined,
): readonly AttributeInstance[] =>
  datasets === undefined ? instances : instances.filter(({ datasetId }) => datasets.has(datasetId ?? '@none'))

/** Members to render that are not part of the instance. */
interface Additions {
  readonly stamps: (instance: AttributeInstance) => JsonObject
  readonly joined: (instance: AttributeInstance) => Joined | undefined
}

function renderInstances(
  instances: readonly AttributeInstance[],
  options: AttributeOptions,
  { stamps, joined }: Additions,
): Json {
  if (options.format === 'simplified') {
    return simplifiedInstances(instances, (instance) => {
      const linked = joined(instance)
      const value = renderInstance(instance, options)
      return linked === undefined ? value : nested(value, linked)
    })
  }
  const rendered = instances.map((instance) => {
    const times = stamps(instance)
    const linked = joined(instance)
    if (Object.keys(times).length === 0 && linked === undefined)
      return renderInstance(instance, options, instances.length === 1)
    const whole = { ...(renderInstance(instance, options, false) as JsonObject), ...times }
    return linked === undefined ? whole : { ...whole, ...linkedMembers(instance, linked) }
  })
  return rendered.length === 1 ? rendered[0]! : rendered
}

/** Instances distinguished by datasetId as `{dataset: {"@none": value, ...}}` (4.5.5). */
function simplifiedInstances(
  instances: readonly AttributeInstance[],
  render: (instance: AttributeInstance) => Json,
): Json {
  const [first] = instances
  if (instances.length === 1 && first!.datasetId === undefined) return render(first!)
  const dataset = instances.map((instance) => [instance.datasetId ?? '@none', render(instance)])
  return { dataset: Object.fromEntries(dataset) as JsonObject }
}

/** Adds linked entities beside the relationship that leads to them. */
function linkedMembers({ type, object }: AttributeInstance, { found }: Joined): JsonObject {
  const entities = [...found.values()]
  if (type === 'ListRelationship') return { entityList: entities }
  return { entity: Array.isArray(object) ? entities : entities[0]! }
}

/** A simplified relationship with the found entities replacing their ids. */
function nested(value: Json, { found }: Joined): Json {
  if (typeof value === 'string') return found.get(value) ?? value
  if (Array.isArray(value)) return value.map((item: Json) => nested(item, { found }))
  if (!isObject(value)) return value
  return value['object'] === undefined ? value : nested(value['object'], { found })
}

/** All members under the names of the context; the instance itself if those are the stored names. */
function renderMembers(instance: AttributeInstance, options: AttributeOptions): JsonObject {
  const { context, format, lang, sysAttrs } = options
  if (
    context.isCore &&
    format === 'normalized' &&
    lang === undefined &&
    (sysAttrs === true || !expires(instance))
  )
    return instance as JsonObject
  const members: Record<string, Json> = {}
  for (const member of Object.keys(instance)) {
    const value = instance[member]!
    if (member === 'expiresAt' && sysAttrs !== true) continue
    if (isSubAttribute(member)) members[context.compact(member)] = renderSubAttribute(value, options)
    else members[member] = namesMembers.has(member) ? compactNames(value, context) : value
  }
  return members
}

/** Whether an instance, or a sub-attribute of it, has an expiry. */
const expires = (instance: AttributeInstance): boolean =>
  Object.keys(instance).some(
    (member) =>
      member === 'expiresAt' ||
      (isSubAttribute(member) && listOf(instance[member] as unknown as Attribute).some(expires)),
  )

function renderSubAttribute(value: Json, options: AttributeOptions): Json {
  return Array.isArray(value)
    ? value.map((item) => renderInstance(item as unknown as AttributeInstance, options, false))
    : renderInstance(value as unknown as AttributeInstance, options)
}

/** Members whose values are names. */
const namesMembers = new Set(['vocab', 'objectType', 'valueType', 'entityTypeSealed'])

const compactNames = (names: Json | readonly string[], context: Context): Json =>
  Array.isArray(names)
    ? names.map((name) => context.compact(name as string))
    : context.compact(names as string)

/**
 * Omits the type if the client can infer it; returns the value alone if no other member remains and the value
 * is unambiguous.
 */
function concise(whole: JsonObject, bare: boolean): Json {
  const { type, ...rest } = whole
  const { objectList } = rest
  const members: JsonObject = objectList === undefined ? rest : { ...rest, objectList: urisIn(objectList) }
  const { value } = members
  if (type === 'Property' && value !== undefined && isGeometry(value)) return whole
  const alone = bare && value !== undefined && Object.keys(members).length === 1
  const readable =
    type === 'GeoProperty' || (!isObject(value) && !(Array.isArray(value) && value.some(isObject)))
  return alone && readable ? value : members
}

/** The value alone; if its kind would be ambiguous, in an object with its value member (4.5.4). */
function simplified(instance: AttributeInstance, context: Context): Json {
  const { member } = kindOf(instance)
  const value = instance[member]!
  if (member === 'value' || member === 'object' || member === 'valueList') return value
  if (member === 'objectList') return urisIn(value)
  return { [member]: member === 'vocab' ? compactNames(value, context) : value }
}

/** Targets of a ListRelationship without the enclosing objects, which are implied (4.5.22.3). */
const urisIn = (objectList: Json): Json =>
  listOf(objectList).map((item) => (isObject(item) ? (own(item, 'object') ?? item) : item))
