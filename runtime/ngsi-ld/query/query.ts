/**
 * The q language as a value [NGSI-LD 4.9]: a syntax tree in plain JSON, its canonical text, and properties
 * derived from it. Names in a tree are core-compacted; `query-parse.ts` builds trees, `query-match.ts`
 * evaluates them. Parsing the printed text of a tree returns an equal tree.
 */
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'

export type QueryTree = QueryJunction | QueryTerm

/** All or any of at least two parts; a part is never a junction of the same kind. */
export type QueryJunction =
  | { readonly kind: 'and'; readonly parts: readonly QueryTree[] }
  | { readonly kind: 'or'; readonly parts: readonly QueryTree[] }

export type QueryTerm = QueryExistence | QueryComparison | QueryMatch

/** `attr` and `!attr`. */
export type QueryExistence =
  | { readonly kind: 'exists'; readonly path: QueryPath }
  | { readonly kind: 'absent'; readonly path: QueryPath }

export type ComparisonOperator = '==' | '!=' | '>' | '>=' | '<' | '<='

/** A list or range occurs only with == and !=. */
export interface QueryComparison {
  readonly kind: 'compare'
  readonly path: QueryPath
  readonly operator: ComparisonOperator
  readonly value: QueryValue
}

/** `~=` and `!~=`. */
export interface QueryMatch {
  readonly kind: 'match'
  readonly path: QueryPath
  readonly negated: boolean
  readonly pattern: string
}

/**
 * `names[0].names[1]...[member.member]{types:linked}`: sub-attributes, then keys of the value, then another
 * entity.
 */
export interface QueryPath {
  readonly names: readonly string[]
  /** Keys within a JSON value, or one language of a language map (`*` for any). */
  readonly member?: readonly string[]
  /** An attribute of the entity that the relationship points to. */
  readonly linked?: { readonly types: readonly string[]; readonly path: QueryPath }
}

/** Unquoted URIs and words are `name`; date and time literals are stored as written. */
export type QueryScalar =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'string' | 'name'; readonly value: string }
  | { readonly kind: 'dateTime' | 'date' | 'time'; readonly value: string }

export type QueryValue =
  | QueryScalar
  | { readonly kind: 'list'; readonly items: readonly QueryScalar[] }
  | { readonly kind: 'range'; readonly low: QueryScalar; readonly high: QueryScalar }

/**
 * Members of an attribute instance that are allowed at the end of a path although they are not
 * sub-attributes.
 */
export const timeMembers: ReadonlySet<string> = new Set([
  'observedAt',
  'createdAt',
  'modifiedAt',
  'expiresAt',
])
export const textMembers: ReadonlySet<string> = new Set(['unitCode', 'datasetId', 'objectType', 'valueType'])

// ---- Text

/** The canonical text of a tree. `show` converts canonical names to those of a client's @context. */
export function printQuery(tree: QueryTree, show: (name: string) => string = (name) => name): string {
  if (tree.kind === 'or') return tree.parts.map((part) => printQuery(part, show)).join('|')
  if (tree.kind === 'and') {
    const print = (part: QueryTree): string =>
      part.kind === 'or' ? `(${printQuery(part, show)})` : printQuery(part, show)
    return tree.parts.map(print).join(';')
  }
  const path = printPath(tree.path, show)
  if (tree.kind === 'compare') return `${path}${tree.operator}${printValue(tree.value)}`
  if (tree.kind === 'match') return `${path}${tree.negated ? '!~=' : '~='}${printPattern(tree.pattern)}`
  return tree.kind === 'exists' ? path : `!${path}`
}

function printPath(path: QueryPath, show: (name: string) => string, isLinked = false): string {
  const last = path.names.length - 1
  const names = path.names.map((name, index) => printName(show(name), index === last, isLinked)).join('.')
  const member = path.member === undefined ? '' : `[${path.member.map(printKey).join('.')}]`
  if (path.linked === undefined) return names + member
  const types = path.linked.types.map((type) => printType(show(type))).join(',')
  return `${names}${member}{${types}${types === '' ? '' : ':'}${printPath(path.linked.path, show, true)}}`
}

/**
 * A bare IRI is allowed only at the end of a path, because dots belong to it; within { } a colon ends the
 * types.
 */
function printName(name: string, isLast: boolean, isLinked: boolean): string {
  if (isLinked && name.includes(':')) return `<${name}>`
  return wholly(nameSyntax, name) || (isLast && wholly(iriSyntax, name)) ? name : `<${name}>`
}

function printType(name: string): string {
  return wholly(nameSyntax, name) && !name.includes(':') ? name : `<${name}>`
}

function printKey(key: string): string {
  return wholly(keySyntax, key) ? key : JSON.stringify(key)
}

function printPattern(pattern: string): string {
  return `"${pattern.replace(/\\.|"/gsu, (found) => (found === '"' ? '\\"' : found))}"`
}

function printValue(value: QueryValue): string {
  if (value.kind === 'list') return value.items.map(printScalar).join(',')
  if (value.kind === 'range') return `${printScalar(value.low)}..${printScalar(value.high)}`
  return printScalar(value)
}

function printScalar(scalar: QueryScalar): string {
  return scalar.kind === 'string' ? JSON.stringify(scalar.value) : String(scalar.value)
}

/**
 * Syntax of a term or CURIE, of an IRI, and of a key in brackets. Sticky, so that the parser can match them
 * in place.
 */
export const nameSyntax: RegExp = /(?!(?:https?:\/\/|urn:))[^\s.[\]{}()<>=!~;|,"]+/y
export const iriSyntax: RegExp =
  /(?:https?:\/\/|urn:)(?:(?!==|!=|~=|!~=|\.(?:https?:\/\/|urn:|(?:observedAt|createdAt|modifiedAt|unitCode|datasetId)\b))[^\s[\]{}()<>;|"])+/y
export const keySyntax: RegExp = /[^\s.[\]"]+/y

function wholly(sticky: RegExp, text: string): boolean {
  sticky.lastIndex = 0
  return sticky.exec(text)?.[0].length === text.length
}

// ---- Properties of a tree

/** The terms of a tree, in order. */
export function termsOf(tree: QueryTree): readonly QueryTerm[] {
  return tree.kind === 'and' || tree.kind === 'or' ? tree.parts.flatMap(termsOf) : [tree]
}

/** First-level attributes used in a tree, without repetition. */
export function attributesOf(tree: QueryTree): readonly string[] {
  return [...new Set(termsOf(tree).map((term) => term.path.names[0]!))]
}

/** True if the tree uses createdAt or modifiedAt, which are stored beside the document. */
export function needsTimes(tree: QueryTree): boolean {
  return termsOf(tree).some(({ path }) => ['createdAt', 'modifiedAt'].includes(path.names.at(-1)!))
}

/** True if a term follows a relationship to another entity. */
export function hasLinked(tree: QueryTree): boolean {
  return termsOf(tree).some((term) => term.path.linked !== undefined)
}

/** The maximum number of consecutive relationships that a query follows. */
export function linkedDepthOf(tree: QueryTree): number {
  const depthOf = ({ linked }: QueryPath): number => (linked === undefined ? 0 : 1 + depthOf(linked.path))
  return Math.max(0, ...termsOf(tree).map(({ path }) => depthOf(path)))
}

/**
 * The necessary condition that a tree sets for the entity alone: every entity that satisfies the tree
 * satisfies this too, whatever its linked entities. Undefined if there is no such condition.
 */
export function withoutLinked(tree: QueryTree): QueryTree | undefined {
  if (tree.kind === 'and' || tree.kind === 'or') {
    const { kind } = tree
    const parts = tree.parts.map(withoutLinked)
    if (kind === 'or' && parts.includes(undefined)) return undefined
    const left = parts.flatMap((part) => (part?.kind === kind ? part.parts : (part ?? [])))
    return left.length < 2 ? left[0] : { kind, parts: left }
  }
  if (tree.path.linked === undefined) return tree
  // Without the relationship there is no linked entity, so only an `absent` term can hold.
  return tree.kind === 'absent' ? undefined : { kind: 'exists', path: { names: tree.path.names } }
}

/** Values from `low` to `high` of one type; times are milliseconds UTC, dates are texts. */
export interface Interval {
  readonly type: 'number' | 'boolean' | 'string' | 'dateTime' | 'date' | 'time'
  readonly low?: number | string | boolean
  readonly high?: number | string | boolean
  readonly lowOpen?: boolean
  readonly highOpen?: boolean
}

/** The values that a comparison accepts, as intervals; for != the values that it rejects. */
export function intervalsOf(term: QueryComparison): readonly Interval[] {
  const { operator, value } = term
  if (value.kind === 'list')
    return value.items.map((item) => ({ ...bound(item, 'low'), ...bound(item, 'high') }))
  if (value.kind === 'range') return [{ ...bound(value.low, 'low'), ...bound(value.high, 'high') }]
  if (operator === '==' || operator === '!=') return [{ ...bound(value, 'low'), ...bound(value, 'high') }]
  const side = operator.startsWith('>') ? 'low' : 'high'
  return [{ ...bound(value, side), ...(operator.length === 1 ? { [`${side}Open`]: true } : {}) }]
}

function bound(scalar: QueryScalar, side: 'low' | 'high'): Interval {
  const value =
    scalar.kind === 'dateTime'
      ? dateTimeToMs(scalar.value)
      : scalar.kind === 'time'
        ? timeToMs(scalar.value)
        : scalar.kind === 'string' || scalar.kind === 'name'
          ? scalar.value.toWellFormed()
          : scalar.value
  return { type: scalar.kind === 'name' ? 'string' : scalar.kind, [side]: value }
}

/** Milliseconds of a time of day `hh:mm:ss[.s]Z`; undefined if the text is not a time. */
export function timeToMs(text: string): number | undefined {
  return dateTimeToMs(`1970-01-01T${text}`)
}

/** A comparison of the value of one first-level attribute, which an index on values can evaluate. */
export interface ScalarTerm {
  readonly attribute: string
  readonly negated: boolean
  /** True for == and !=; other operators never hold for relationships. */
  readonly equality: boolean
  readonly intervals: readonly Interval[]
}

/** The normal form of a plain first-level comparison; undefined for any other term. */
export function scalarTermOf(tree: QueryTree): ScalarTerm | undefined {
  if (tree.kind !== 'compare' || !isPlain(tree.path)) return undefined
  const equality = tree.operator === '==' || tree.operator === '!='
  return {
    attribute: tree.path.names[0]!,
    negated: tree.operator === '!=',
    equality,
    intervals: intervalsOf(tree),
  }
}

/** True for a path to the value of a first-level attribute. */
export function isPlain(path: QueryPath): boolean {
  return (
    path.names.length === 1 && path.member === undefined && path.linked === undefined && !isSystemTime(path)
  )
}

/** True for createdAt and modifiedAt of the entity itself. */
export function isSystemTime(path: QueryPath): boolean {
  return path.names.length === 1 && (path.names[0] === 'createdAt' || path.names[0] === 'modifiedAt')
}
