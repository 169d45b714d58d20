/**
 * The kinds of attributes (GS CIM 009, 4.5.2 to 4.5.24): the member that carries the value of each, and the
 * values allowed in it. Each kind is one row of the table; no other file lists the kinds.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { checkGeometry, isGeometry } from '#ngsi-ld/geo/geometry.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkUri, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Rules for parsing a body. */
export interface ParseRules {
  readonly context: Context
  /** Whether NGSI-LD Null may replace a whole value or member: in merge, update and partial update. */
  readonly nulls: boolean
  /** Whether the body is merged: values may also contain NGSI-LD Null, and may be missing. */
  readonly merging: boolean
  /**
   * Whether every value is bare, as with `options=keyValues`; otherwise both normalized and concise are
   * accepted.
   */
  readonly simplified: boolean
  /** Whether a value is raw JSON, which contains no JSON-LD. */
  readonly raw?: boolean
}

/** @param depth level of JSON nesting of the value. */
type Check = (value: Json, field: string, rules: ParseRules, depth: number) => Json

export interface AttributeKind {
  readonly name: string
  /** The member that carries the value. */
  readonly member: string
  /**
   * The value to store.
   * @throws ngsi-ld.bad-request-data naming the invalid part.
   */
  readonly check: Check
  /** Non-reified members that an instance of this kind may not have. */
  readonly prohibited: readonly string[]
}

const kind = (
  name: string,
  member: string,
  check: Check,
  prohibited: readonly string[] = [],
): AttributeKind => ({ name, member, check, prohibited })

const kindList: readonly AttributeKind[] = [
  kind('Property', 'value', checkValue),
  kind('GeoProperty', 'value', unlessNull(checkGeometryValue)),
  kind('Relationship', 'object', unlessNull(checkTargets), ['unitCode']),
  kind('LanguageProperty', 'languageMap', unlessNull(checkLanguageMap), ['unitCode', 'valueType']),
  kind('VocabProperty', 'vocab', unlessNull(checkVocab), ['unitCode']),
  kind('JsonProperty', 'json', unlessNull(checkJson), ['unitCode']),
  kind('ListProperty', 'valueList', unlessNull(checkValueList)),
  kind('ListRelationship', 'objectList', unlessNull(checkTargetList), ['unitCode']),
]

const kindsByName: ReadonlyMap<string, AttributeKind> = new Map([
  ...kindList.map((kind) => [kind.name, kind] as const),
  // Name of VocabProperty in the core context of 1.7 only.
  ['VocabularyProperty', kindList.find(({ name }) => name === 'VocabProperty')!],
])

/**
 * First kind of each value member: a bare `value` belongs to a Property unless it turns out to be a geometry.
 */
export const kindsByMember: ReadonlyMap<string, AttributeKind> = new Map(
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
  // The entity id and type that a proof covers (ngsildproof).
  'entityIdSealed',
  'entityTypeSealed',
])

/** The non-reified member of an instance that its kind prohibits, if any. */
export const prohibitedIn = (kind: AttributeKind, instance: object): string | undefined =>
  kind.prohibited.find((member) => Object.hasOwn(instance, member))

/** The only attribute with the members of a proof. */
const proof = 'ngsildproof'

/** @throws ngsi-ld.bad-request-data for the members of a proof in any other attribute (4.5.2.2). */
export function checkSeals(name: string, instance: object, field: string): void {
  if (name === proof) return
  const seal = ['entityIdSealed', 'entityTypeSealed'].find((member) => Object.hasOwn(instance, member))
  if (seal !== undefined) throw badRequestData(`is allowed only in ${proof}`, `${field}.${seal}`)
}

/** Attributes of the core @context that are GeoProperties (GS CIM 009, 5.2.4). */
const geoNames: ReadonlySet<string> = new Set(['location', 'observationSpace', 'operationSpace'])

/** @throws ngsi-ld.bad-request-data for an instance of `location` and the like that is not a GeoProperty. */
export function checkGeoName(name: string, instance: { readonly type: string; readonly value?: Json }): void {
  if (!geoNames.has(name) || instance.type === geoProperty.name || instance.value === ngsiLdNull) return
  throw badRequestData('must be a GeoProperty', name)
}

/** Whether a member of a stored instance is a sub-attribute. */
export const isSubAttribute = (member: string): boolean =>
  member !== 'type' && !kindsByMember.has(member) && !plainMembers.has(member)

export const property = kindList[0]!
export const geoProperty = kindList[1]!

/** Kind of a name, canonical or from an old core. */
export const kindNamed = (name: string): AttributeKind | undefined => kindsByName.get(name)

/** Kind of a stored instance. */
export const kindOf = (instance: { readonly type: string }): AttributeKind =>
  kindsByName.get(instance.type) ?? property

/**
 * Kind of a concise attribute, by the first value member it has (4.5.0, table of concise representations).
 */
export function inferKind(raw: JsonObject): AttributeKind | undefined {
  for (const kind of kindsByMember.values()) {
    if (Object.hasOwn(raw, kind.member))
      return kind === property && isGeometry(raw['value']!) ? geoProperty : kind
  }
  return undefined
}

/**
 * Accepts any JSON value except null: finite numbers, bounded depth, NGSI-LD Null only where deletion is
 * allowed.
 */
export function checkValue(value: Json, field: string, rules: ParseRules, depth: number): Json {
  if (value === null) throw badRequestData(`null is not a value; use ${ngsiLdNull} to delete`, field)
  if (value !== ngsiLdNull || !rules.nulls) checkInside(value, field, rules, depth)
  return value
}

function checkInside(value: Json, field: string, rules: ParseRules, depth: number): void {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw badRequestData('number is out of range', field)
  } else if (typeof value === 'string') {
    if (value === ngsiLdNull && !rules.merging)
      throw badRequestData(`${ngsiLdNull} is not allowed here`, field)
  } else if (typeof value === 'object' && value !== null) {
    if (depth > limits.jsonDepthMax.value) {
      throw badRequestData(`is nested more than ${limits.jsonDepthMax.value} levels deep`, field)
    }
    if (rules.raw !== true && Object.hasOwn(value, '@context'))
      throw badRequestData('@context is allowed only at the top of a document (5.5.7)', field)
    const inner = rules.merging && Array.isArray(value) ? withoutNulls(rules) : rules
    for (const item of Object.values(value)) checkInside(item, field, inner, depth + 1)
  }
}

/** Raw JSON is an object or an array (4.5.24). */
function checkJson(value: Json, field: string, rules: ParseRules, depth: number): Json {
  if (typeof value !== 'object' || value === null)
    throw badRequestData('must be an object or an array', field)
  return checkValue(value, field, { ...rules, raw: true }, depth)
}

/** An array contains no deletions: a merge replaces it as a whole (RFC 7396). */
const withoutNulls = (rules: ParseRules): ParseRules => ({ ...rules, nulls: false, merging: false })

function unlessNull(check: Check): Check {
  return (value, field, rules, depth) =>
    value === ngsiLdNull && rules.nulls ? value : check(value, field, rules, depth)
}

/** A geometry. A geometry to merge may lack its type; it is checked after the merge. */
function checkGeometryValue(value: Json, field: string, rules: ParseRules, depth: number): Json {
  if (rules.merging && isObject(value) && !Object.hasOwn(value, 'type'))
    return checkValue(value, field, rules, depth)
  return checkValue(checkGeometry(value, field), field, rules, depth)
}

/** A target, or several in one instance (since 1.8). */
function checkTargets(value: Json, field: string): Json {
  if (!Array.isArray(value)) return checkTarget(value, field)
  if (value.length === 0) throw badRequestData('must contain at least one target', field)
  return value.map((target: Json, index) => checkTarget(target, `${field}[${index}]`))
}

function checkTarget(value: Json | undefined, field: string): string {
  return checkUri(value, field)
}

/** Whether a text may be the key of a language map. */
export const isLanguageTag = (text: string): boolean => languageTag.test(text)

const languageTag = /^(?:[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|@none)$/

function checkLanguageMap(value: Json, field: string, rules: ParseRules): Json {
  if (!isObject(value)) throw badRequestData('must be an object with a text per language', field)
  for (const [language, texts] of Object.entries(value)) {
    if (!isLanguageTag(language))
      throw badRequestData('must be a language tag (RFC 5646)', `${field}.${language}`)
    // Only a merge deletes a single language; elsewhere {"@none": NGSI-LD Null} alone replaces the whole map
    // (4.5.0).
    const isWhole = language === '@none' && Object.keys(value).length === 1
    const mayDelete = !Array.isArray(texts) && (rules.merging || isWhole)
    for (const text of listOf(texts)) {
      if (typeof text !== 'string')
        throw badRequestData('must be a text or a list of texts', `${field}.${language}`)
      checkValue(text, `${field}.${language}`, mayDelete ? rules : withoutNulls(rules), 0)
    }
  }
  return value
}

/** Terms of a vocabulary, stored as canonical names; unlike attribute names they may have any form. */
function checkVocab(value: Json, field: string, rules: ParseRules): Json {
  const names = listOf(value).map((term) => {
    if (typeof term !== 'string' || term === '')
      throw badRequestData('must be a term or a list of terms', field)
    checkValue(term, field, withoutNulls(rules), 0)
    return rules.context.expand(term)
  })
  if (names.length === 0) throw badRequestData('must contain at least one term', field)
  return Array.isArray(value) ? names : names[0]!
}

function checkValueList(value: Json, field: string, rules: ParseRules, depth: number): Json {
  if (!Array.isArray(value)) throw badRequestData('must be an array', field)
  if (rules.nulls && isNullList(value)) return ngsiLdNull
  return checkValue(value, field, rules, depth)
}

/** In place of an array, NGSI-LD Null is an array with this one item (4.5.0). */
function isNullList([item, ...more]: readonly Json[]): boolean {
  return more.length === 0 && (item === ngsiLdNull || (isObject(item) && own(item, 'object') === ngsiLdNull))
}

/** Stored as a list of `{object}`; a list of URIs is read as an equivalent. */
function checkTargetList(value: Json, field: string, rules: ParseRules): Json {
  if (!Array.isArray(value)) throw badRequestData('must be an array', field)
  if (rules.nulls && isNullList(value)) return ngsiLdNull
  return value.map((item: Json, index) => {
    const target = isObject(item) ? own(item, 'object') : item
    return { object: checkTarget(target, `${field}[${index}].object`) }
  })
}
