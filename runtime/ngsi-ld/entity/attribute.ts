/**
 * How JSON becomes attributes: normalized, concise and simplified representation (GS CIM 009, 4.5.2 to 4.5.5),
 * sub-attributes to any allowed depth, several instances told apart by datasetId. Members that only the gateway
 * writes are ignored, so that what was read may be sent back. Values are taken over, not copied.
 *
 * Platform clients write several relationships of one name as `hosts#1`, `hosts#2` (all mapped to one IRI) or as a
 * plain array. Relationships without datasetId that differ in nothing but their targets therefore become one
 * Relationship with several targets; any other repetition is an error.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { canonicalDateTime, toleratedDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf, own, sameJson } from '#ngsi-ld/values/json.ts'
import { checkName, checkUri, keyword, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  checkSeals,
  checkValue,
  geoProperty,
  inferKind,
  type Kind,
  kindNamed,
  kindsByMember,
  plainMembers,
  property,
  type Reading,
} from './attribute-kind.ts'

/** An attribute is one instance, or several told apart by datasetId (GS CIM 009, 4.5.5). */
export type Attribute = AttributeInstance | readonly AttributeInstance[]

/** One attribute instance in normalized representation; `type` is its kind. Sub-attributes are further members. */
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

/** Further members of attributes that only answers and notifications have. */
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
 * @param path where the attribute stands, for error texts.
 * @param depth level of JSON nesting at which it stands.
 * @throws ngsi-ld.bad-request-data naming the member at fault.
 */
export function readAttribute(raw: Json, path: string, reading: Reading, depth: number): Attribute {
  if (depth > limits.jsonDepthMax.value) {
    throw badRequestData(`nested more than ${limits.jsonDepthMax.value} deep`, path)
  }
  if (isList(raw) && !reading.simplified && raw.some((item) => isInstance(item, reading))) {
    return joinInstances(
      raw.map((item: Json, index) => {
        if (!isInstance(item, reading))
          throw badRequestData('is not an attribute instance', `${path}[${index}]`)
        return readOne(item, `${path}[${index}]`, reading, depth + 1)
      }),
      path,
    )
  }
  const datasets = isObject(raw) ? own(raw, 'dataset') : undefined
  return isObject(datasets) && Object.keys(raw as JsonObject).length === 1
    ? readDatasets(datasets, path, reading, depth)
    : readOne(raw, path, reading, depth)
}

/** Attributes being read, by canonical name. */
export interface Gathering {
  readonly members: Record<string, Json>
  /** All instances of names that occurred under more than one alias, once there are any. */
  repeated?: Map<string, AttributeInstance[]>
}

/** Puts an attribute among others. @throws ngsi-ld.bad-request-data for the members of a proof where it is none. */
export function gather(gathering: Gathering, name: string, attribute: Attribute): void {
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

/** All that was gathered. @throws ngsi-ld.bad-request-data for names that occurred twice and cannot be joined. */
export function gathered({ members, repeated }: Gathering): Record<string, Json> {
  for (const [name, instances] of repeated ?? []) {
    members[name] = joinInstances(instances, name) as unknown as Json
  }
  return members
}

/**
 * Members of a partial update (GS CIM 009, 5.6.4): like an attribute without having to be whole. There is a `type`
 * only where the body states one, and at most one value member.
 */
export function readPartial(raw: JsonObject, path: string, reading: Reading): JsonObject {
  const type = keyword(raw, 'type')
  const kind = type === undefined ? undefined : statedKind(type, reading)
  if (type !== undefined && kind === undefined) throw unknownKind(type, path)
  const members: Record<string, Json> = kind === undefined ? {} : { type: kind.name }
  return readMembers(raw, kind ?? inferKind(raw), members, { path, reading, depth: 2 })
}

function isInstance(item: Json, reading: Reading): boolean {
  if (!isObject(item)) return false
  const type = keyword(item, 'type')
  if (type !== undefined) return statedKind(type, reading) !== undefined
  return inferKind(item) !== undefined || Object.hasOwn(item, 'datasetId')
}

function readOne(raw: Json, path: string, reading: Reading, depth: number): AttributeInstance {
  if (!isObject(raw)) return bare(raw, path, reading, depth)
  if (reading.simplified) {
    const kind = Object.keys(raw).length === 1 ? inferKind(raw) : undefined
    return kind === undefined || !isSimplified(kind)
      ? bare(raw, path, reading, depth)
      : readInstance(raw, kind, path, reading, depth)
  }
  const type = keyword(raw, 'type')
  const kind = type === undefined ? inferKind(raw) : statedKind(type, reading)
  if (kind !== undefined) return readInstance(raw, kind, path, reading, depth)
  if (isGeometry(raw)) return bare(raw, path, reading, depth)
  if (type !== undefined) throw unknownKind(type, path)
  if (reading.merging && Object.keys(raw).length > 0) return readLacking(raw, path, reading, depth)
  throw badRequestData('has neither a type nor a value', path)
}

/** What is merged into an instance without saying its kind or its value: the type is empty. */
function readLacking(raw: JsonObject, path: string, reading: Reading, depth: number): AttributeInstance {
  const members = readMembers(raw, undefined, { type: '' }, { path, reading, depth })
  return members as unknown as AttributeInstance
}

const statedKind = (type: Json, { context }: Reading): Kind | undefined =>
  typeof type === 'string' ? kindNamed(context.expand(type)) : undefined

const unknownKind = (type: Json, path: string): Error =>
  badRequestData(
    `${typeof type === 'string' ? type.slice(0, 64) : 'it'} is no kind of attribute`,
    `${path}.type`,
  )

/** Kinds whose simplified form is an object with their value member; the others are bare. */
const isSimplified = (kind: Kind): boolean => kind.member !== 'value' && kind.member !== 'object'

/** A value without anything around it. */
function bare(raw: Json, path: string, reading: Reading, depth: number): AttributeInstance {
  const kind = isGeometry(raw) ? geoProperty : property
  return { type: kind.name, value: kind.check(raw, path, reading, depth) }
}

function readDatasets(datasets: JsonObject, path: string, reading: Reading, depth: number): Attribute {
  const instances = Object.entries(datasets).map(([datasetId, raw]) => {
    const field = `${path}.dataset.${datasetId}`
    const instance = readOne(raw, field, reading, depth + 2)
    return datasetId === '@none' ? instance : { ...instance, datasetId: checkUri(datasetId, field) }
  })
  if (instances.length === 0) throw badRequestData('has no instance', path)
  return joinInstances(instances, path)
}

function readInstance(
  raw: JsonObject,
  kind: Kind,
  path: string,
  reading: Reading,
  depth: number,
): AttributeInstance {
  const members: Record<string, Json> = { type: kind.name }
  if (!reading.merging || Object.hasOwn(raw, kind.member)) members[kind.member] = null
  readMembers(raw, kind, members, { path, reading, depth })
  if (members[kind.member] === null) throw badRequestData(`a ${kind.name} needs it`, `${path}.${kind.member}`)
  return members as unknown as AttributeInstance
}

interface Place {
  readonly path: string
  readonly reading: Reading
  readonly depth: number
}

/** Reads every member but the type into `members`. */
function readMembers(
  raw: JsonObject,
  kind: Kind | undefined,
  members: Record<string, Json>,
  { path, reading, depth }: Place,
): JsonObject {
  const gathering: Gathering = { members }
  for (const key of Object.keys(raw)) {
    const name = reading.context.expand(key)
    const value = raw[key]!
    const field = `${path}.${key}`
    if (isIgnored(name)) continue
    if (name === kind?.member) members[name] = kind.check(value, field, reading, depth + 1)
    else if (kindsByMember.has(name))
      throw badRequestData(`a ${kind?.name ?? 'partial update'} has none`, field)
    else if (kind?.prohibited.includes(name) === true) throw badRequestData(`a ${kind.name} has none`, field)
    else if (plainMembers.has(name)) readPlain(name, value, members, { path: field, reading, depth })
    else gather(gathering, checkName(name, field), readAttribute(value, field, reading, depth + 1))
  }
  return gathered(gathering)
}

function readPlain(name: string, value: Json, members: Record<string, Json>, { path, reading }: Place): void {
  if (value === ngsiLdNull && reading.nulls && name !== 'datasetId') {
    members[name] = value
  } else if (name === 'observedAt' || name === 'expiresAt') {
    members[name] = checkDateTime(value, path)
  } else if (name === 'unitCode') {
    if (typeof value !== 'string') throw badRequestData('must be a text', path)
    members[name] = checkValue(value, path, reading, 0)
  } else if (name === 'datasetId') {
    if (value !== '@none') members[name] = checkUri(value, path)
  } else if (name === 'entityIdSealed') {
    members[name] = checkUri(value, path)
  } else {
    members[name] = readTypes(value, path, reading)
  }
}

/** Canonical text of a DateTime. @throws ngsi-ld.bad-request-data naming `field`. */
export function checkDateTime(value: Json, field: string): string {
  const text = typeof value === 'string' ? canonicalDateTime(toleratedDateTime(value)) : undefined
  if (text === undefined) throw badRequestData('must be a DateTime such as 2024-12-31T23:59:59.999Z', field)
  return text
}

/** One type name or several, as canonical names without repetition. */
export function readTypes(
  value: Json | undefined,
  field: string,
  { context }: Pick<Reading, 'context'>,
): Json {
  const types = value === undefined ? [] : listOf(value)
  const names = types.map((type) => {
    if (typeof type !== 'string') throw badRequestData('must be a name or a list of names', field)
    const name = context.expand(type)
    // They stand for @id and @type, which are no names of anything.
    if (name === 'id' || name === 'type') throw badRequestData(`${type} is a word of JSON-LD`, field)
    return checkName(name, field)
  })
  if (names.length === 0) throw badRequestData('must be a name or a list of names', field)
  const distinct = [...new Set(names)]
  return distinct.length === 1 ? distinct[0]! : distinct
}

/** Several instances of one attribute as one value. @throws ngsi-ld.bad-request-data for a repeated datasetId. */
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
    throw badRequestData(`more than ${limits.instancesPerAttributeMax.value} instances`, path)
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
  if (first.type !== 'Relationship' || !alike) throw badRequestData('two instances without datasetId', path)
  return { ...first, object: [...new Set([first, ...others].flatMap(({ object }) => listOf(object!)))] }
}
