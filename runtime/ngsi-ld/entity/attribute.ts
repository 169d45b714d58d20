/**
 * Parses JSON into attributes: normalized, concise and simplified representation (GS CIM 009, 4.5.2 to
 * 4.5.5), sub-attributes to the allowed depth, several instances distinguished by datasetId. It ignores
 * members that only the gateway writes, so that clients may send back a response. It reuses values without
 * copying them.
 *
 * Platform clients write several relationships of one name as `hosts#1`, `hosts#2` (all mapped to one IRI) or
 * as a plain array. Relationships without datasetId that differ only in their targets therefore become one
 * Relationship with several targets. Any other repetition is an error.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { canonicalDateTime, toleratedDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf, own, sameJson } from '#ngsi-ld/values/json.ts'
import { checkName, checkUri, keyword, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  type AttributeKind,
  checkSeals,
  checkValue,
  geoProperty,
  inferKind,
  kindNamed,
  kindsByMember,
  type ParseRules,
  plainMembers,
  property,
} from './attribute-kind.ts'

/** An attribute is one instance, or several distinguished by datasetId (GS CIM 009, 4.5.5). */
export type Attribute = AttributeInstance | readonly AttributeInstance[]

/**
 * An attribute instance in normalized representation; `type` is its kind. Sub-attributes are additional
 * members.
 */
export interface AttributeInstance {
  readonly type: string
  readonly value?: Json
  readonly object?: Json
  readonly observedAt?: string
  readonly unitCode?: string
  readonly datasetId?: string
  readonly [member: string]: Json | undefined
}

/** Members of entities and attributes that only the gateway writes. */
export const systemMembers: ReadonlySet<string> = new Set(['createdAt', 'modifiedAt', 'deletedAt'])

/** Further members of attributes that occur only in responses and notifications. */
const answerMembers: ReadonlySet<string> = new Set([
  'instanceId',
  'previousValue',
  'previousObject',
  'previousLanguageMap',
  'previousVocab',
  'previousJson',
  'previousValueList',
  'previousObjectList',
  'entity',
  'entityList',
  'lang',
])

const isIgnored = (name: string): boolean =>
  name === 'type' || name === 'id' || systemMembers.has(name) || answerMembers.has(name)

/**
 * @param path position of the attribute, for error texts.
 * @param depth its level of JSON nesting.
 * @throws ngsi-ld.bad-request-data naming the invalid member.
 */
export function readAttribute(raw: Json, path: string, rules: ParseRules, depth: number): Attribute {
  if (depth > limits.jsonDepthMax.value) {
    throw badRequestData(`is nested more than ${limits.jsonDepthMax.value} levels deep`, path)
  }
  if (isList(raw) && !rules.simplified && raw.some((item) => isInstance(item, rules))) {
    return joinInstances(
      raw.map((item: Json, index) => {
        if (!isInstance(item, rules))
          throw badRequestData('is not an attribute instance', `${path}[${index}]`)
        return readOne(item, `${path}[${index}]`, rules, depth + 1)
      }),
      path,
    )
  }
  const datasets = isObject(raw) ? own(raw, 'dataset') : undefined
  return isObject(datasets) && Object.keys(raw as JsonObject).length === 1
    ? readDatasets(datasets, path, rules, depth)
    : readOne(raw, path, rules, depth)
}

/** Attributes parsed so far, by canonical name. */
export interface ParsedAttributes {
  readonly members: Record<string, Json>
  /** All instances of names that occurred under more than one alias; unset until the first repetition. */
  repeated?: Map<string, AttributeInstance[]>
}

/**
 * Adds an attribute.
 * @throws ngsi-ld.bad-request-data for the members of a proof in an attribute that is not a proof.
 */
export function gather(gathering: ParsedAttributes, name: string, attribute: Attribute): void {
  for (const instance of listOf<AttributeInstance>(attribute)) checkSeals(name, instance, name)
  const present = own(gathering.members, name) as Attribute | undefined
  if (present === undefined) {
    gathering.members[name] = attribute as unknown as Json
    return
  }
  gathering.repeated ??= new Map()
  const instances = gathering.repeated.get(name) ?? [...listOf(present)]
  instances.push(...listOf(attribute))
  gathering.repeated.set(name, instances)
}

/**
 * All parsed attributes.
 * @throws ngsi-ld.bad-request-data for names that occurred twice and cannot be joined.
 */
export function gathered({ members, repeated }: ParsedAttributes): Record<string, Json> {
  for (const [name, instances] of repeated ?? []) {
    members[name] = joinInstances(instances, name) as unknown as Json
  }
  return members
}

/**
 * Members of a partial update (GS CIM 009, 5.6.4): like an attribute, but it may be incomplete. The result
 * has a `type` only if the body states one, and at most one value member.
 */
export function readPartial(raw: JsonObject, path: string, rules: ParseRules): JsonObject {
  const type = keyword(raw, 'type')
  const kind = type === undefined ? undefined : statedKind(type, rules)
  if (type !== undefined && kind === undefined) throw unknownKind(type, path)
  const members: Record<string, Json> = kind === undefined ? {} : { type: kind.name }
  return readMembers(raw, kind ?? inferKind(raw), members, { path, rules, depth: 2 })
}

function isInstance(item: Json, rules: ParseRules): boolean {
  if (!isObject(item)) return false
  const type = keyword(item, 'type')
  if (type !== undefined) return statedKind(type, rules) !== undefined
  return inferKind(item) !== undefined || Object.hasOwn(item, 'datasetId')
}

function readOne(raw: Json, path: string, rules: ParseRules, depth: number): AttributeInstance {
  if (!isObject(raw)) return bare(raw, path, rules, depth)
  if (rules.simplified) {
    const kind = Object.keys(raw).length === 1 ? inferKind(raw) : undefined
    return kind === undefined || !isSimplified(kind)
      ? bare(raw, path, rules, depth)
      : readInstance(raw, kind, path, rules, depth)
  }
  const type = keyword(raw, 'type')
  const kind = type === undefined ? inferKind(raw) : statedKind(type, rules)
  if (kind !== undefined) return readInstance(raw, kind, path, rules, depth)
  if (isGeometry(raw)) return bare(raw, path, rules, depth)
  if (type !== undefined) throw unknownKind(type, path)
  if (rules.merging && Object.keys(raw).length > 0) return readLacking(raw, path, rules, depth)
  throw badRequestData('has neither a type nor a value', path)
}

/** An instance to merge that states neither kind nor value: its type is empty. */
function readLacking(raw: JsonObject, path: string, rules: ParseRules, depth: number): AttributeInstance {
  const members = readMembers(raw, undefined, { type: '' }, { path, rules, depth })
  return members as unknown as AttributeInstance
}

const statedKind = (type: Json, { context }: ParseRules): AttributeKind | undefined =>
  typeof type === 'string' ? kindNamed(context.expand(type)) : undefined

const unknownKind = (type: Json, path: string): Error =>
  badRequestData(
    `${typeof type === 'string' ? type.slice(0, 64) : 'it'} is not a kind of attribute`,
    `${path}.type`,
  )

/** Kinds whose simplified form is an object with their value member; the others are bare. */
const isSimplified = (kind: AttributeKind): boolean => kind.member !== 'value' && kind.member !== 'object'

/** A bare value, without members around it. */
function bare(raw: Json, path: string, rules: ParseRules, depth: number): AttributeInstance {
  const kind = isGeometry(raw) ? geoProperty : property
  return { type: kind.name, value: kind.check(raw, path, rules, depth) }
}

function readDatasets(datasets: JsonObject, path: string, rules: ParseRules, depth: number): Attribute {
  const instances = Object.entries(datasets).map(([datasetId, raw]) => {
    const field = `${path}.dataset.${datasetId}`
    const instance = readOne(raw, field, rules, depth + 2)
    return datasetId === '@none' ? instance : { ...instance, datasetId: checkUri(datasetId, field) }
  })
  if (instances.length === 0) throw badRequestData('must have at least one instance', path)
  return joinInstances(instances, path)
}

function readInstance(
  raw: JsonObject,
  kind: AttributeKind,
  path: string,
  rules: ParseRules,
  depth: number,
): AttributeInstance {
  const members: Record<string, Json> = { type: kind.name }
  if (!rules.merging || Object.hasOwn(raw, kind.member)) members[kind.member] = null
  readMembers(raw, kind, members, { path, rules, depth })
  if (members[kind.member] === null)
    throw badRequestData(`is required in a ${kind.name}`, `${path}.${kind.member}`)
  return members as unknown as AttributeInstance
}

interface Place {
  readonly path: string
  readonly rules: ParseRules
  readonly depth: number
}

/** Parses every member except the type into `members`. */
function readMembers(
  raw: JsonObject,
  kind: AttributeKind | undefined,
  members: Record<string, Json>,
  { path, rules, depth }: Place,
): JsonObject {
  const gathering: ParsedAttributes = { members }
  for (const key of Object.keys(raw)) {
    const name = rules.context.expand(key)
    const value = raw[key]!
    const field = `${path}.${key}`
    if (isIgnored(name)) continue
    if (name === kind?.member) members[name] = kind.check(value, field, rules, depth + 1)
    else if (kindsByMember.has(name))
      throw badRequestData(`is not allowed in a ${kind?.name ?? 'partial update'}`, field)
    else if (kind?.prohibited.includes(name) === true)
      throw badRequestData(`is not allowed in a ${kind.name}`, field)
    else if (plainMembers.has(name)) readPlain(name, value, members, { path: field, rules, depth })
    else gather(gathering, checkName(name, field), readAttribute(value, field, rules, depth + 1))
  }
  return gathered(gathering)
}

function readPlain(name: string, value: Json, members: Record<string, Json>, { path, rules }: Place): void {
  if (value === ngsiLdNull && rules.nulls && name !== 'datasetId') {
    members[name] = value
  } else if (name === 'observedAt' || name === 'expiresAt') {
    members[name] = checkDateTime(value, path)
  } else if (name === 'unitCode') {
    if (typeof value !== 'string') throw badRequestData('must be a text', path)
    members[name] = checkValue(value, path, rules, 0)
  } else if (name === 'datasetId') {
    if (value !== '@none') members[name] = checkUri(value, path)
  } else if (name === 'entityIdSealed') {
    members[name] = checkUri(value, path)
  } else {
    members[name] = readTypes(value, path, rules)
  }
}

/**
 * Canonical text of a DateTime.
 * @throws ngsi-ld.bad-request-data naming `field`.
 */
export function checkDateTime(value: Json, field: string): string {
  const text =
    typeof value === 'string'
      ? (canonicalDateTime(value) ?? canonicalDateTime(toleratedDateTime(value)))
      : undefined
  if (text === undefined) throw badRequestData('must be a DateTime such as 2024-12-31T23:59:59.999Z', field)
  return text
}

/** A type name or several, as canonical names without repetition. */
export function readTypes(
  value: Json | undefined,
  field: string,
  { context }: Pick<ParseRules, 'context'>,
): Json {
  const types = value === undefined ? [] : listOf(value)
  const names = types.map((type) => {
    if (typeof type !== 'string') throw badRequestData('must be a name or a list of names', field)
    const name = context.expand(type)
    // These are aliases of @id and @type, and therefore not names.
    if (name === 'id' || name === 'type')
      throw badRequestData(`${type} is a JSON-LD keyword and cannot be a type`, field)
    return checkName(name, field)
  })
  if (names.length === 0) throw badRequestData('must be a name or a list of names', field)
  const distinct = [...new Set(names)]
  return distinct.length === 1 ? distinct[0]! : distinct
}

/**
 * Joins several instances of one attribute into one value.
 * @throws ngsi-ld.bad-request-data for a repeated datasetId.
 */
function joinInstances(instances: readonly AttributeInstance[], path: string): Attribute {
  const byDataset = new Map<string | undefined, AttributeInstance>()
  const repetitions: AttributeInstance[] = []
  for (const instance of instances) {
    const { datasetId } = instance
    if (!byDataset.has(datasetId)) byDataset.set(datasetId, instance)
    else if (datasetId === undefined) repetitions.push(instance)
    else throw badRequestData(`datasetId ${datasetId} occurs twice`, path)
  }
  if (byDataset.size > limits.instancesPerAttributeMax.value) {
    throw badRequestData(`has more than ${limits.instancesPerAttributeMax.value} instances`, path)
  }
  if (repetitions.length > 0)
    byDataset.set(undefined, joinTargets(byDataset.get(undefined)!, repetitions, path))
  const distinct = [...byDataset.values()]
  return distinct.length === 1 ? distinct[0]! : distinct
}

function joinTargets(
  first: AttributeInstance,
  others: readonly AttributeInstance[],
  path: string,
): AttributeInstance {
  const aside = (instance: AttributeInstance): Json => ({ ...(instance as JsonObject), object: '' })
  const alike = others.every((other) => sameJson(aside(first), aside(other)))
  if (first.type !== 'Relationship' || !alike)
    throw badRequestData('has two instances without datasetId', path)
  return { ...first, object: [...new Set([first, ...others].flatMap(({ object }) => listOf(object!)))] }
}
