/**
 * How JSON becomes attributes: normalized, concise and simplified representation (GS CIM 009, 4.5.2 to 4.5.5),
 * sub-attributes to any allowed depth, several instances told apart by datasetId. Members that only the gateway
 * writes are ignored, so that what was read may be sent back. Values are taken over, not copied.
 *
 * Platform clients write several relationships of one name as `hosts#1`, `hosts#2` (all mapped to one IRI) or as a
 * plain array. Relationships without datasetId that differ in nothing but their targets therefore become one
 * Relationship with several targets; any other repetition is an error.
 */
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import {
  checkValue,
  geoProperty,
  inferKind,
  type Kind,
  kindNamed,
  kindsByMember,
  ngsiLdNull,
  plainMembers,
  property,
  type Reading,
} from './attribute-kind.ts'
import { canonicalDateTime } from './datetime.ts'
import type { Attribute, AttributeInstance } from './entity.ts'
import { isGeometry } from './geometry.ts'
import { isObject, type JsonObject, listOf, own, sameJson } from './json.ts'
import { checkName, checkUri } from './name.ts'
import { badRequestData, notSupported } from './problem.ts'

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
  if (Array.isArray(raw) && !reading.simplified && raw.some((item) => isInstance(item, reading))) {
    return joinInstances(
      raw.map((item: Json, index) => {
        if (!isInstance(item, reading))
          throw badRequestData('is not an attribute instance', `${path}[${index}]`)
        return readOne(item, `${path}[${index}]`, reading, depth + 1)
      }),
      path,
    )
  }
  const datasets = isObject(raw) && Object.keys(raw).length === 1 ? own(raw, 'dataset') : undefined
  return isObject(datasets)
    ? readDatasets(datasets, path, reading, depth)
    : readOne(raw, path, reading, depth)
}

/** Puts an attribute among others; one that is there under another alias is joined with it. */
export function addAttribute(
  members: Record<string, Json>,
  name: string,
  attribute: Attribute,
  path: string,
): void {
  const present = own(members, name) as Attribute | undefined
  const joined =
    present === undefined ? attribute : joinInstances([...listOf(present), ...listOf(attribute)], path)
  members[name] = joined as unknown as Json
}

/**
 * Members of a partial update (GS CIM 009, 5.6.4): like an attribute without having to be whole. There is a `type`
 * only where the body states one, and at most one value member.
 */
export function readPartial(raw: JsonObject, path: string, reading: Reading): JsonObject {
  const type = own(raw, 'type') ?? own(raw, '@type')
  const kind = type === undefined ? undefined : statedKind(type, reading)
  if (type !== undefined && kind === undefined) throw unknownKind(type, path)
  const members: Record<string, Json> = kind === undefined ? {} : { type: kind.name }
  readMembers(raw, kind ?? inferKind(raw), members, { path, reading, depth: 2 })
  return members
}

function isInstance(item: Json, reading: Reading): boolean {
  if (!isObject(item)) return false
  const type = own(item, 'type') ?? own(item, '@type')
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
  const type = own(raw, 'type') ?? own(raw, '@type')
  const kind = type === undefined ? inferKind(raw) : statedKind(type, reading)
  if (kind !== undefined) return readInstance(raw, kind, path, reading, depth)
  if (isGeometry(raw)) return bare(raw, path, reading, depth)
  if (type === undefined) throw badRequestData('has neither a type nor a value', path)
  throw unknownKind(type, path)
}

const statedKind = (type: Json, { context }: Reading): Kind | undefined =>
  typeof type === 'string' ? kindNamed(context.expand(type)) : undefined

const unknownKind = (type: Json, path: string): Error =>
  badRequestData(`${JSON.stringify(type).slice(0, 64)} is not a kind of attribute`, `${path}.type`)

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
  const members: Record<string, Json> = { type: kind.name, [kind.member]: null }
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
  place: Place,
): void {
  const { path, reading, depth } = place
  for (const key of Object.keys(raw)) {
    const name = reading.context.expand(key)
    const value = raw[key]!
    const field = `${path}.${key}`
    if (isIgnored(name)) continue
    if (name === kind?.member) members[name] = kind.check(value, field, reading, depth + 1)
    else if (kindsByMember.has(name))
      throw badRequestData(`a ${kind?.name ?? 'partial update'} has none`, field)
    else if (plainMembers.has(name)) readPlain(name, value, members, { ...place, path: field })
    else {
      checkName(name, field)
      addAttribute(members, name, readAttribute(value, field, reading, depth + 1), field)
    }
  }
}

function readPlain(name: string, value: Json, members: Record<string, Json>, { path, reading }: Place): void {
  if (value === ngsiLdNull && reading.nulls && name !== 'datasetId') {
    members[name] = value
  } else if (name === 'observedAt') {
    members[name] = checkDateTime(value, path)
  } else if (name === 'unitCode') {
    if (typeof value !== 'string') throw badRequestData('must be a text', path)
    members[name] = checkValue(value, path, reading, 0)
  } else if (name === 'datasetId') {
    if (value !== '@none') members[name] = checkUri(value, path)
  } else if (name === 'expiresAt') {
    throw notSupported(`${path}: attributes that expire are not built yet`)
  } else {
    members[name] = readTypes(value, path, reading)
  }
}

/** Canonical text of a DateTime. @throws ngsi-ld.bad-request-data naming `field`. */
export function checkDateTime(value: Json, field: string): string {
  const text = typeof value === 'string' ? canonicalDateTime(value) : undefined
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
    return checkName(context.expand(type), field)
  })
  if (names.length === 0) throw badRequestData('must be a name or a list of names', field)
  const distinct = [...new Set(names)]
  return distinct.length === 1 ? distinct[0]! : distinct
}

/** Several instances of one attribute as one value. @throws ngsi-ld.bad-request-data for a repeated datasetId. */
function joinInstances(instances: readonly AttributeInstance[], path: string): Attribute {
  const byDataset = new Map<string | undefined, AttributeInstance>()
  for (const instance of instances) {
    const present = byDataset.get(instance.datasetId)
    byDataset.set(instance.datasetId, present === undefined ? instance : joinTargets(present, instance, path))
  }
  const distinct = [...byDataset.values()]
  return distinct.length === 1 ? distinct[0]! : distinct
}

function joinTargets(a: AttributeInstance, b: AttributeInstance, path: string): AttributeInstance {
  if (a.datasetId !== undefined) throw badRequestData(`datasetId ${a.datasetId} occurs twice`, path)
  const sameButTargets = sameJson(
    { ...a, object: '' } as unknown as Json,
    { ...b, object: '' } as unknown as Json,
  )
  if (a.type !== 'Relationship' || !sameButTargets)
    throw badRequestData('two instances without datasetId', path)
  return { ...a, object: [...new Set([...listOf(a.object!), ...listOf(b.object!)])] }
}
