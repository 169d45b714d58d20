/**
 * The kinds of attributes (GS CIM 009, 4.5.2 to 4.5.24): which member carries the value of each, and what may
 * stand in it. A kind is one row of the table; nothing else in the house lists them.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { checkGeometry, isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkUri, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** How a body is read. */
export interface Reading {
  readonly context: Context
  /** Whether NGSI-LD Null may stand for a whole value or member: in merge, update and partial update. */
  readonly nulls: boolean
  /** Whether the body is merged: NGSI-LD Null may stand within values too, and values may be left out. */
  readonly merging: boolean
  /** Whether every value is bare, as with `options=keyValues`; otherwise normalized and concise both are read. */
  readonly simplified: boolean
  /** Whether a value is raw JSON, in which nothing is JSON-LD. */
  readonly raw?: boolean
}

/** @param depth level of JSON nesting at which the value stands. */
type Check = (value: Json, field: string, reading: Reading, depth: number) => Json

export interface Kind {
  readonly name: string
  /** The member that carries the value. */
  readonly member: string
  /** The value as it is kept. @throws ngsi-ld.bad-request-data naming the part at fault. */
  readonly check: Check
  /** Non-reified members that an instance of this kind never has. */
  readonly prohibited: readonly string[]
}

const kind = (name: string, member: string, check: Check, prohibited: readonly string[] = []): Kind => ({
  ...{ name, member, check, prohibited },
})

const kindList: readonly Kind[] = [
  kind('Property', 'value', checkValue),
  kind('GeoProperty', 'value', unlessNull(checkGeometryValue)),
  kind('Relationship', 'object', unlessNull(checkTargets), ['unitCode']),
  kind('LanguageProperty', 'languageMap', unlessNull(checkLanguageMap), ['unitCode', 'valueType']),
  kind('VocabProperty', 'vocab', unlessNull(checkVocab), ['unitCode']),
  kind('JsonProperty', 'json', unlessNull(checkJson), ['unitCode']),
  kind('ListProperty', 'valueList', unlessNull(checkValueList)),
  kind('ListRelationship', 'objectList', unlessNull(checkTargetList), ['unitCode']),
]

const kindsByName: ReadonlyMap<string, Kind> = new Map([
  ...kindList.map((kind) => [kind.name, kind] as const),
  // The name it had in the core context of 1.7 only.
  ['VocabularyProperty', kindList.find(({ name }) => name === 'VocabProperty')!],
])

/** First kind of each value member: a bare `value` belongs to a Property until it proves to be a geometry. */
export const kindsByMember: ReadonlyMap<string, Kind> = new Map(
  kindList.toReversed().map((kind) => [kind.member, kind]),
)

/** Members of an attribute that are neither its value nor attributes themselves. */
export const plainMembers: ReadonlySet<string> = new Set([
  'observedAt',
  'unitCode',
  'datasetId',
  'objectType',
  'valueType',
  'expiresAt',
  'lang',
  // What a proof is about (ngsildproof).
  'entityIdSealed',
  'entityTypeSealed',
])

/** The non-reified member of an instance that its kind prohibits, if there is one. */
export const prohibitedIn = (kind: Kind, instance: object): string | undefined =>
  kind.prohibited.find((member) => Object.hasOwn(instance, member))

/** The only attribute that has the members of a proof. */
const proof = 'ngsildproof'

/** @throws ngsi-ld.bad-request-data for the members of a proof in another attribute (4.5.2.2). */
export function checkSeals(name: string, instance: object, field: string): void {
  if (name === proof) return
  const seal = ['entityIdSealed', 'entityTypeSealed'].find((member) => Object.hasOwn(instance, member))
  if (seal !== undefined) throw badRequestData(`stands only in ${proof}`, `${field}.${seal}`)
}

/** Attributes of the core @context that are GeoProperties (GS CIM 009, 5.2.4). */
const geoNames: ReadonlySet<string> = new Set(['location', 'observationSpace', 'operationSpace'])

/** @throws ngsi-ld.bad-request-data for an instance of `location` and the like that is no GeoProperty. */
export function checkGeoName(name: string, instance: { readonly type: string; readonly value?: Json }): void {
  if (!geoNames.has(name) || instance.type === geoProperty.name || instance.value === ngsiLdNull) return
  throw badRequestData('must be a GeoProperty', name)
}

/** Whether a member of a stored instance is an attribute of that attribute. */
export const isSubAttribute = (member: string): boolean =>
  member !== 'type' && !kindsByMember.has(member) && !plainMembers.has(member)

export const property = kindList[0]!
export const geoProperty = kindList[1]!

/** Kind of a name, canonical or from an old core. */
export const kindNamed = (name: string): Kind | undefined => kindsByName.get(name)

/** Kind of a stored instance. */
export const kindOf = (instance: { readonly type: string }): Kind =>
  kindsByName.get(instance.type) ?? property

/** Kind of a concise attribute, by the first value member it has (4.5.0, table of concise representations). */
export function inferKind(raw: JsonObject): Kind | undefined {
  for (const kind of kindsByMember.values()) {
    if (Object.hasOwn(raw, kind.member))
      return kind === property && isGeometry(raw['value']!) ? geoProperty : kind
  }
  return undefined
}

/** Any JSON but null itself: numbers finite, not too deep, no NGSI-LD Null where nothing may be deleted. */
export function checkValue(value: Json, field: string, reading: Reading, depth: number): Json {
  if (value === null) throw badRequestData(`null is not a value; ${ngsiLdNull} deletes`, field)
  if (value !== ngsiLdNull || !reading.nulls) checkInside(value, field, reading, depth)
  return value
}

function checkInside(value: Json, field: string, reading: Reading, depth: number): void {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw badRequestData('number out of range', field)
  } else if (typeof value === 'string') {
    if (value === ngsiLdNull && !reading.merging)
      throw badRequestData(`${ngsiLdNull} is not allowed here`, field)
  } else if (typeof value === 'object' && value !== null) {
    if (depth > limits.jsonDepthMax.value) {
      throw badRequestData(`nested more than ${limits.jsonDepthMax.value} deep`, field)
    }
    if (reading.raw !== true && Object.hasOwn(value, '@context'))
      throw badRequestData('@context stands only at the top of a document (5.5.7)', field)
    const inner = reading.merging && Array.isArray(value) ? withoutNulls(reading) : reading
    for (const item of Object.values(value)) checkInside(item, field, inner, depth + 1)
  }
}

/** Raw JSON is an object, or an array (4.5.24). */
function checkJson(value: Json, field: string, reading: Reading, depth: number): Json {
  if (typeof value !== 'object' || value === null)
    throw badRequestData('must be an object or an array', field)
  return checkValue(value, field, { ...reading, raw: true }, depth)
}

/** Within an array nothing is deleted: merging replaces it whole (RFC 7396). */
const withoutNulls = (reading: Reading): Reading => ({ ...reading, nulls: false, merging: false })

function unlessNull(check: Check): Check {
  return (value, field, reading, depth) =>
    value === ngsiLdNull && reading.nulls ? value : check(value, field, reading, depth)
}

/** A geometry; what is merged into one may lack its type, and is checked when it is merged. */
function checkGeometryValue(value: Json, field: string, reading: Reading, depth: number): Json {
  if (reading.merging && isObject(value) && !Object.hasOwn(value, 'type'))
    return checkValue(value, field, reading, depth)
  return checkValue(checkGeometry(value, field), field, reading, depth)
}

/** One target, or several in one instance (since 1.8). */
function checkTargets(value: Json, field: string): Json {
  if (!Array.isArray(value)) return checkTarget(value, field)
  if (value.length === 0) throw badRequestData('names no target', field)
  return value.map((target: Json, index) => checkTarget(target, `${field}[${index}]`))
}

function checkTarget(value: Json | undefined, field: string): string {
  return checkUri(value, field)
}

/** Whether a text may be the key of a language map. */
export const isLanguageTag = (text: string): boolean => languageTag.test(text)

const languageTag = /^(?:[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|@none)$/

function checkLanguageMap(value: Json, field: string, reading: Reading): Json {
  if (!isObject(value)) throw badRequestData('must be an object with a text per language', field)
  for (const [language, texts] of Object.entries(value)) {
    if (!isLanguageTag(language))
      throw badRequestData('not a language tag (RFC 5646)', `${field}.${language}`)
    // Only merging deletes one language; elsewhere {"@none": NGSI-LD Null} alone stands for the whole map (4.5.0).
    const isWhole = language === '@none' && Object.keys(value).length === 1
    const mayDelete = !Array.isArray(texts) && (reading.merging || isWhole)
    for (const text of listOf(texts)) {
      if (typeof text !== 'string')
        throw badRequestData('must be a text or a list of texts', `${field}.${language}`)
      checkValue(text, `${field}.${language}`, mayDelete ? reading : withoutNulls(reading), 0)
    }
  }
  return value
}

/** Terms of a vocabulary, kept as canonical names; unlike names of attributes they may have any form. */
function checkVocab(value: Json, field: string, reading: Reading): Json {
  const names = listOf(value).map((term) => {
    if (typeof term !== 'string' || term === '')
      throw badRequestData('must be a term or a list of terms', field)
    checkValue(term, field, withoutNulls(reading), 0)
    return reading.context.expand(term)
  })
  if (names.length === 0) throw badRequestData('names no term', field)
  return Array.isArray(value) ? names : names[0]!
}

function checkValueList(value: Json, field: string, reading: Reading, depth: number): Json {
  if (!Array.isArray(value)) throw badRequestData('must be an array', field)
  if (reading.nulls && isNullList(value)) return ngsiLdNull
  return checkValue(value, field, reading, depth)
}

/** Where an array is needed, NGSI-LD Null is an array of it alone (4.5.0). */
function isNullList([item, ...more]: readonly Json[]): boolean {
  return more.length === 0 && (item === ngsiLdNull || (isObject(item) && own(item, 'object') === ngsiLdNull))
}

/** Kept as a list of `{object}`; a list of URIs is read as the same. */
function checkTargetList(value: Json, field: string, reading: Reading): Json {
  if (!Array.isArray(value)) throw badRequestData('must be an array', field)
  if (reading.nulls && isNullList(value)) return ngsiLdNull
  return value.map((item: Json, index) => {
    const target = isObject(item) ? own(item, 'object') : item
    return { object: checkTarget(target, `${field}[${index}].object`) }
  })
}
