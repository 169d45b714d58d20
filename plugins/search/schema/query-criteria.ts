/**
 * Converts the arguments of a query to criteria. Scalars become terms of NGSI-LD's q, objects become criteria
 * of linked entities; all must hold. Pure functions; arguments that cannot be queried are rejected by name.
 */
import { GraphQLError, type GraphQLInputType, getNamedType, isInputObjectType } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { FieldModel, Model, TypeModel } from './model.ts'

/** Conditions on entities of a type. */
export interface QueryCriteria {
  readonly type: TypeModel
  /** Undefined: any id. */
  readonly ids?: readonly string[] | undefined
  /** Terms of q; all must hold. */
  readonly terms: readonly string[]
  /** Parameters of a geo-query. */
  readonly near?: Near | undefined
  readonly words?: Words | undefined
  readonly links: readonly LinkCriteria[]
}

/** The field must link to an entity that satisfies one of these criteria. */
export interface LinkCriteria {
  readonly field: FieldModel
  readonly anyOf: readonly QueryCriteria[]
}

/** Words to search for. */
export interface Words {
  /** As written, for the index. */
  readonly text: string
  /** Terms of q that find each word in a label or name of the entity itself. */
  readonly q: string
}

export interface Near {
  readonly lon: number
  readonly lat: number
  /** Metres. */
  readonly maxDistance?: number | null
  readonly minDistance?: number | null
}

export type GivenArguments = Readonly<Record<string, unknown>>

/** Types of arguments or of the fields of an input, by name. */
export type InputTypes = (name: string) => GraphQLInputType | undefined

interface Draft {
  readonly model: Model
  readonly type: TypeModel
  ids: readonly string[] | undefined
  near: Near | undefined
  words: Words | undefined
  readonly terms: string[]
  readonly links: LinkCriteria[]
}

/** Arguments that shape the response and select no entities. */
const responseArguments = new Set([
  ...['offset', 'limit', 'first', 'after'],
  ...['ranking', 'rankPoint', 'rankDistance', 'rankAge'],
])

/** @throws GraphQLError for arguments by which the type cannot be searched. */
export function toCriteria(
  model: Model,
  type: TypeModel,
  given: GivenArguments,
  types: InputTypes,
): QueryCriteria {
  const draft = emptyDraft(model, type)
  take(draft, given, types, undefined)
  return criteriaIn(draft)
}

const emptyDraft = (model: Model, type: TypeModel): Draft => ({
  model,
  type,
  ids: undefined,
  near: undefined,
  words: undefined,
  terms: [],
  links: [],
})

const criteriaIn = ({ type, ids, near, words, terms, links }: Draft): QueryCriteria => ({
  type,
  ids,
  near,
  words,
  terms,
  links,
})

/** Whether the criteria are only ids, so that nothing must be read to evaluate them. */
export const isBare = ({ terms, near, words, links }: QueryCriteria): boolean =>
  terms.length === 0 && near === undefined && words === undefined && links.length === 0

function take(draft: Draft, given: GivenArguments, types: InputTypes, input: string | undefined): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || responseArguments.has(name)) continue
    takeOne(draft, name, value, types(name), input)
  }
}

function takeOne(
  draft: Draft,
  name: string,
  value: unknown,
  inputType: GraphQLInputType | undefined,
  input: string | undefined,
): void {
  const named = inputType === undefined ? undefined : getNamedType(inputType)
  const inner = isInputObjectType(named) ? named : undefined
  const types: InputTypes = (key) => inner?.getFields()[key]?.type
  const ownUris = input === undefined ? undefined : draft.model.inputUris.get(input)?.get(name)
  if (name === 'id' || name === 'ids') takeIds(draft, value)
  else if (name === 'filter' && isGiven(value)) take(draft, value, types, inner?.name)
  else if (name === 'near' && isGiven(value)) takeNear(draft, value as unknown as Near)
  else if (name === 'search') takeSearch(draft, String(value))
  else if (ownUris !== undefined) takeValue(draft, ownUris, name, value)
  else takeField(draft, name, value, { types, input: inner?.name })
}

interface Inner {
  readonly types: InputTypes
  /** Name of the value's input type. */
  readonly input: string | undefined
}

function takeField(draft: Draft, name: string, value: unknown, inner: Inner): void {
  const field = fieldOf(draft.type, name)
  if (field === undefined || field.kind === 'own' || field.kind === 'place') {
    throw refuse(`${draft.type.name} cannot be searched by ${name}: its type has no such attribute`)
  }
  const { uris, member } = field
  if (field.kind === 'link') takeLink(draft, field, value, inner)
  else if (field.kind === 'part') takePart(draft, field, value)
  else if (name === 'alternativeType') takeValue(draft, uris, name, classesOf(draft.model, value))
  else
    takeValue(
      draft,
      uris.map((uri) => pathOf(uri, member)),
      name,
      value,
    )
}

/** `labelIn` matches any of several values of `label`. */
function fieldOf({ fields }: TypeModel, name: string): FieldModel | undefined {
  return fields.get(name) ?? (name.endsWith('In') ? fields.get(name.slice(0, -2)) : undefined)
}

function takeIds(draft: Draft, value: unknown): void {
  const ids = [value].flat().filter((one): one is string => typeof one === 'string')
  if (ids.length > limits.searchIdsMax.value) {
    throw refuse(`too many ids (${ids.length}); at most ${limits.searchIdsMax.value}`)
  }
  const wanted = new Set(draft.ids ?? ids)
  draft.ids = [...new Set(ids.filter((id) => wanted.has(id)))]
}

function takeNear(draft: Draft, near: Near): void {
  checkPoint('near', near)
  const { maxDistance, minDistance } = near
  if ([maxDistance, minDistance].filter((one) => typeof one === 'number').length !== 1) {
    throw refuse('near requires either maxDistance or minDistance, in metres')
  }
  if ([maxDistance, minDistance].some((one) => typeof one === 'number' && one < 0)) {
    throw refuse('near: a distance must be 0 or more, in metres')
  }
  if (draft.near !== undefined) throw refuse('near is given twice')
  draft.near = near
}

/** @throws GraphQLError for coordinates out of range. */
export function checkPoint(name: string, { lon, lat }: Pick<Near, 'lon' | 'lat'>): void {
  const isPlace = Math.abs(lon) <= 180 && Math.abs(lat) <= 90
  if (!isPlace) throw refuse(`${name}: ${lon}, ${lat} is not a valid place; lon first, in degrees`)
}

/** All words must occur. Without the index, each must occur in a label or name, ignoring case. */
function takeSearch(draft: Draft, text: string): void {
  if (text.length > limits.searchTextCharacters.value) {
    throw refuse(`search has ${text.length} characters; at most ${limits.searchTextCharacters.value}`)
  }
  const uris = ['label', 'name'].flatMap((name) => draft.type.fields.get(name)?.uris ?? [])
  if (uris.length === 0) throw refuse(`${draft.type.name} has no label to search in`)
  const words = text.split(/\s+/).filter((one) => one !== '')
  if (words.length === 0) return
  const each = words.map((word) => anyOf(uris.map((uri) => `${uri}~="${patternOf(word)}"`)))
  const known = draft.words === undefined ? [] : [draft.words]
  draft.words = {
    text: [...known.map((one) => one.text), text].join(' '),
    q: [...known.map((one) => one.q), ...each].join(';'),
  }
}

function patternOf(word: string): string {
  const each = Array.from(word, (one) => {
    const [lower, upper] = [one.toLowerCase(), one.toUpperCase()]
    // Some letters, such as ß, have no single-letter counterpart.
    const isPair = lower.length === one.length && upper.length === one.length
    if (lower !== upper) return isPair ? `[${lower}${upper}]` : one
    return /[\p{L}\p{N}_-]/u.test(one) ? one : `\\${one}`
  })
  return each.join('')
}

function takeLink(draft: Draft, field: FieldModel, value: unknown, { types, input }: Inner): void {
  const target = draft.model.types.get(field.of)!
  const each = [value].flat().filter(isGiven)
  const criteria = each.map((given) => {
    const inner = emptyDraft(draft.model, target)
    take(inner, given, types, input)
    return criteriaIn(inner)
  })
  if (criteria.length > 0) draft.links.push({ field, anyOf: criteria })
}

/** An object within an attribute; its fields are sub-attributes. */
function takePart(draft: Draft, field: FieldModel, value: unknown): void {
  if (!isGiven(value)) throw refuse(`${field.name} requires an object`)
  const part = draft.model.types.get(field.of)!
  for (const [name, wanted] of Object.entries(value)) {
    if (wanted === null || wanted === undefined) continue
    const sub = part.fields.get(name)
    if (sub === undefined || sub.kind !== 'value') throw refuse(`${field.name} has no ${name}`)
    const [uri] = sub.uris
    const paths = field.uris.map((owner) => (uri === 'value' ? owner : `${owner}.${uri}`))
    takeValue(draft, paths, `${field.name}.${name}`, wanted)
  }
}

// ---- Terms of q

const operators: Readonly<Record<string, string>> = {
  eq: '==',
  neq: '!=',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  in: '==',
  text: '==',
  textNot: '!=',
  textIn: '==',
}

function takeValue(draft: Draft, paths: readonly string[], name: string, value: unknown): void {
  if (!isGiven(value)) {
    const wanted = [value].flat().filter((one) => one !== null)
    const list = listOf(wanted, name, textLiteral)
    draft.terms.push(anyOf(paths.map((path) => `${path}==${list}`)))
    return
  }
  for (const [operator, wanted] of Object.entries(value)) {
    if (wanted === null || wanted === undefined) continue
    const sign = operators[operator]
    if (sign === undefined) throw refuse(`${name} has no operator ${operator}`)
    const place = `${name}.${operator}`
    const form = operator.startsWith('text') ? textLiteral : (one: unknown) => figureLiteral(one, place)
    const list = listOf([wanted].flat(), place, form)
    draft.terms.push(anyOf(paths.map((path) => `${path}${sign}${list}`)))
  }
}

function listOf(values: readonly unknown[], name: string, form: (value: unknown) => string): string {
  if (values.length === 0) throw refuse(`${name} is an empty list`)
  if (values.length > limits.searchIdsPerRead.value) {
    throw refuse(`${name} has ${values.length} values; at most ${limits.searchIdsPerRead.value}`)
  }
  return values.map(form).join(',')
}

const textLiteral = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : String(value)

/** Values that operators compare: numbers, and texts that are times. */
function figureLiteral(value: unknown, name: string): string {
  if (typeof value !== 'string') return String(value)
  const isTime = /^\d{4}-\d\d-\d\dT/.test(value) && dateTimeToMs(value) !== undefined
  if (!isTime) throw refuse(`${name}: ${value} is not a DateTime in UTC, such as 2026-01-31T12:00:00Z`)
  return value
}

const anyOf = (terms: readonly string[]): string => (terms.length === 1 ? terms[0]! : `(${terms.join('|')})`)

const pathOf = (uri: string, member: string | undefined): string =>
  member === undefined ? uri : `${uri}.${member}`

/** A GraphQL type name may replace the IRI of its class. */
function classesOf(model: Model, value: unknown): unknown {
  const classes = typeof value === 'string' ? (model.types.get(value)?.classes ?? []) : []
  return classes.length === 0 ? value : classes
}

const isGiven = (value: unknown): value is GivenArguments =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const refuse = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
