/**
 * Parses text of the q language to a syntax tree [NGSI-LD 4.9]. `;` (and) binds tighter than `|` (or).
 * Extensions to the standard's grammar: blanks around tokens are skipped, a quoted DateTime compared with a
 * time member is a time, and a full IRI may be an attribute name.
 *
 * An IRI that starts with http://, https:// or urn: extends to the next operator, bracket, parenthesis, `;`
 * or `|`. It includes dots, except before `.observedAt` and similar members and before a second IRI. To
 * continue with any other sub-attribute, write `<IRI>.sub`. Within the braces of a linked entity a colon ends
 * the types, so a name with a colon requires the `<IRI>` form there too.
 */
import { limits } from '#base/limits/limits.ts'
import type { Expand } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { dateTimeToMs, isDate } from '#ngsi-ld/values/datetime.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import {
  type ComparisonOperator,
  iriSyntax,
  keySyntax,
  nameSyntax,
  type QueryPath,
  type QueryScalar,
  type QueryTerm,
  type QueryTree,
  type QueryValue,
  timeMembers,
  timeToMs,
} from './query.ts'

export interface QueryOptions {
  /**
   * Canonical names of attributes whose values in the query are terms that represent IRIs [4.9, since 1.8].
   */
  readonly expandValues?: ReadonlySet<string> | undefined
  /** Name of the text in errors; default `q`. */
  readonly field?: string | undefined
}

/**
 * Parses a query.
 * @throws GatewayError ngsi-ld.bad-request-data with the position of the error, ngsi-ld.too-complex beyond
 * the limits.
 */
export function parseQuery(text: string, expand: Expand, options: QueryOptions = {}): QueryTree {
  if (text.length > limits.queryCharactersMax.value)
    throw tooComplex(`q has ${text.length} characters, more than the limit`)
  const { expandValues, field = 'q' } = options
  const cursor: Cursor = { text, expand, expandValues, field, at: 0, terms: 0 }
  const tree = parseJunction(cursor, 0)
  skipBlanks(cursor)
  if (cursor.at < text.length) fail(cursor, `unexpected ${text[cursor.at]}`)
  return tree
}

interface Cursor {
  readonly text: string
  readonly expand: Expand
  readonly expandValues: ReadonlySet<string> | undefined
  readonly field: string
  at: number
  terms: number
}

function parseJunction(cursor: Cursor, depth: number): QueryTree {
  if (depth > limits.queryNestingMax.value)
    throw tooComplex(`q has more than ${depth - 1} levels of parentheses`)
  const parts = [parseConjunction(cursor, depth)]
  while (eat(cursor, '|')) parts.push(parseConjunction(cursor, depth))
  return join('or', parts)
}

function parseConjunction(cursor: Cursor, depth: number): QueryTree {
  const parts = [parseOperand(cursor, depth)]
  while (eat(cursor, ';')) parts.push(parseOperand(cursor, depth))
  return join('and', parts)
}

function join(kind: 'and' | 'or', parts: readonly QueryTree[]): QueryTree {
  const flat = parts.flatMap((part) => (part.kind === kind ? part.parts : [part]))
  return flat.length === 1 ? flat[0]! : { kind, parts: flat }
}

function parseOperand(cursor: Cursor, depth: number): QueryTree {
  if (!eat(cursor, '(')) return parseTerm(cursor)
  const tree = parseJunction(cursor, depth + 1)
  expect(cursor, ')')
  return tree
}

function parseTerm(cursor: Cursor): QueryTerm {
  countTerm(cursor)
  if (eat(cursor, '!')) return { kind: 'absent', path: parsePath(cursor, 0) }
  const path = parsePath(cursor, 0)
  skipBlanks(cursor)
  const operator = take(cursor, /!~=|~=|==|!=|>=|<=|>|</y)
  if (operator === undefined) return { kind: 'exists', path }
  if (operator === '~=' || operator === '!~=') {
    return { kind: 'match', path, negated: operator === '!~=', pattern: parsePattern(cursor) }
  }
  const comparison = operator as ComparisonOperator
  return { kind: 'compare', path, operator: comparison, value: parseValue(cursor, path, comparison) }
}

// ---- Paths

function parsePath(cursor: Cursor, depth: number): QueryPath {
  if (depth > limits.queryNestingMax.value)
    throw tooComplex(`q follows more than ${depth - 1} linked entities`)
  const first = parseName(cursor)
  const names = [first]
  while (eat(cursor, '.')) names.push(parseName(cursor, first))
  const member = eat(cursor, '[') ? parseMember(cursor) : undefined
  if (!eat(cursor, '{')) return member === undefined ? { names } : { names, member }
  const types = parseLinkedTypes(cursor)
  const linked = { types, path: parsePath(cursor, depth + 1) }
  expect(cursor, '}')
  return member === undefined ? { names, linked } : { names, member, linked }
}

function parseName(cursor: Cursor, within?: string): string {
  skipBlanks(cursor)
  const bracketed = take(cursor, /<[^\s<>]+>/y)
  const name = bracketed?.slice(1, -1) ?? take(cursor, iriSyntax) ?? take(cursor, nameSyntax)
  return name === undefined ? fail(cursor, 'expected an attribute name') : cursor.expand(name, within)
}

function parseMember(cursor: Cursor): readonly string[] {
  const keys = [parseKey(cursor)]
  while (eat(cursor, '.')) keys.push(parseKey(cursor))
  expect(cursor, ']')
  return keys
}

function parseKey(cursor: Cursor): string {
  skipBlanks(cursor)
  if (cursor.text[cursor.at] === '"') return parseString(cursor)
  return take(cursor, keySyntax) ?? fail(cursor, 'expected a key within [ ]')
}

/** `Type,Type:` before a linked path; a type that contains a colon is written `<IRI>`. */
function parseLinkedTypes(cursor: Cursor): readonly string[] {
  const types = take(
    cursor,
    /(?:<[^\s<>]+>|(?!urn:|https?:)[^\s.[\]{}()<>=!~;|,":]+)(?:,(?:<[^\s<>]+>|[^\s.[\]{}()<>=!~;|,":]+))*:/y,
  )
  if (types === undefined) return []
  const each = types.slice(0, -1).match(/<[^>]+>|[^,<>]+/g) ?? []
  return each.map((type) => cursor.expand(type.startsWith('<') ? type.slice(1, -1) : type))
}

// ---- Values

function parseValue(cursor: Cursor, path: QueryPath, operator: ComparisonOperator): QueryValue {
  const first = parseScalar(cursor, path)
  const isEquality = operator === '==' || operator === '!='
  if (!isEquality) {
    if (first.kind === 'boolean' || first.kind === 'name')
      fail(cursor, `${operator} requires a number, string or time`)
    if (cursor.text.startsWith('..', cursor.at) || cursor.text[cursor.at] === ',') {
      fail(cursor, 'a range or list requires == or !=')
    }
    return first
  }
  if (take(cursor, /\.\./y) !== undefined) {
    const high = parseScalar(cursor, path)
    if (first.kind === 'boolean' || first.kind === 'name' || first.kind !== high.kind) {
      fail(cursor, 'a range requires two numbers, strings or times')
    }
    return { kind: 'range', low: first, high }
  }
  const items = [first]
  while (eat(cursor, ',')) {
    countTerm(cursor)
    items.push(parseScalar(cursor, path))
  }
  return items.length === 1 ? first : { kind: 'list', items }
}

function parseScalar(cursor: Cursor, path: QueryPath): QueryScalar {
  skipBlanks(cursor)
  if (cursor.text[cursor.at] === '"') {
    const value = parseString(cursor)
    const isTime = timeMembers.has(path.names.at(-1)!) && path.member === undefined
    if (isTime && dateTimeToMs(value) !== undefined) return { kind: 'dateTime', value }
    return namedText(cursor, path, { kind: 'string', value })
  }
  const word = parseTime(cursor) ?? parseNumber(cursor) ?? parseWord(cursor)
  return word.kind === 'name' ? namedText(cursor, path, word) : word
}

/**
 * If the attribute is listed in expandValues, a text becomes the IRI that the @context defines for it (4.9).
 */
function namedText(
  cursor: Cursor,
  path: QueryPath,
  text: { readonly kind: 'string' | 'name'; readonly value: string },
): QueryScalar {
  if (cursor.expandValues?.has(path.names[0]!) !== true) return text
  return { kind: 'string', value: toIri(cursor.expand(text.value, path.names[0])) }
}

function parseTime(cursor: Cursor): QueryScalar | undefined {
  const dateTime = take(cursor, /\d{4}-\d\d-\d\dT[\d:]+(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?![^\s;|(),.])/y)
  if (dateTime !== undefined) {
    if (dateTimeToMs(dateTime) === undefined) fail(cursor, `${dateTime} is not a DateTime in UTC`)
    return { kind: 'dateTime', value: dateTime }
  }
  const date = take(cursor, /\d{4}-\d\d-\d\d(?![^\s;|(),.])/y)
  if (date !== undefined)
    return isDate(date) ? { kind: 'date', value: date } : fail(cursor, `${date} is not a date`)
  const time = take(cursor, /\d\d:\d\d:\d\d(?:[.,]\d+)?Z(?![^\s;|(),.])/y)
  if (time === undefined) return undefined
  return timeToMs(time) === undefined ? fail(cursor, `${time} is not a time`) : { kind: 'time', value: time }
}

function parseNumber(cursor: Cursor): QueryScalar | undefined {
  const number = take(cursor, /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?=\.\.|[\s;|(),]|$)/y)
  if (number === undefined) return undefined
  const value = Number(number)
  return Number.isFinite(value)
    ? { kind: 'number', value: value + 0 }
    : fail(cursor, `${number} is too large`)
}

/**
 * true, false, a URI, or any other unquoted word. It may not start with `=`, `.` or a single quote, which
 * would be half a range or a wrongly quoted text.
 */
function parseWord(cursor: Cursor): QueryScalar {
  const word = take(cursor, /(?![=.'])[^\s;|(),"<>]+/y)
  if (word === undefined) fail(cursor, 'expected a value; a text must be in double quotes')
  if (word === 'true' || word === 'false') return { kind: 'boolean', value: word === 'true' }
  return { kind: 'name', value: word }
}

/** A JSON string. */
function parseString(cursor: Cursor): string {
  const literal = take(cursor, /"(?:[^"\\]|\\.)*"/sy)
  if (literal === undefined) fail(cursor, 'the string has no closing quote')
  try {
    return JSON.parse(literal) as string
  } catch {
    return fail(cursor, `${literal} is not a JSON string`)
  }
}

/**
 * A pattern, quoted or bare. Within quotes only \" is special, everything else belongs to the pattern. A bare
 * pattern ends at `;` and at a `|` or `)` outside its own parentheses.
 */
function parsePattern(cursor: Cursor): string {
  skipBlanks(cursor)
  const quoted = take(cursor, /"(?:[^"\\]|\\.)*"/sy)
  const pattern = unescapeQuotes(quoted?.slice(1, -1) ?? takeBarePattern(cursor))
  if (pattern === '') fail(cursor, 'expected a pattern')
  compilePattern(pattern)
  return pattern
}

/** Normalizes `\"` to `"`, which means the same, so that equal patterns give equal trees. */
function unescapeQuotes(pattern: string): string {
  return pattern.replace(/\\(.)/gs, (pair, next: string) => (next === '"' ? next : pair))
}

function takeBarePattern(cursor: Cursor): string {
  const start = cursor.at
  let depth = 0
  for (; cursor.at < cursor.text.length; cursor.at++) {
    const next = cursor.text[cursor.at]!
    if (next === ';' || (depth === 0 && (next === '|' || next === ')'))) break
    if (next === '\\') cursor.at++
    else if (next === '(') depth++
    else if (next === ')') depth--
  }
  cursor.at = Math.min(cursor.at, cursor.text.length)
  return cursor.text.slice(start, cursor.at).trim()
}

// ---- The cursor

function countTerm(cursor: Cursor): void {
  if (++cursor.terms > limits.queryTermsMax.value)
    throw tooComplex(`q has more than ${limits.queryTermsMax.value} terms and values`)
}

function skipBlanks(cursor: Cursor): void {
  while (cursor.text[cursor.at] === ' ') cursor.at++
}

function eat(cursor: Cursor, character: string): boolean {
  skipBlanks(cursor)
  if (cursor.text[cursor.at] !== character) return false
  cursor.at++
  return true
}

function expect(cursor: Cursor, character: string): void {
  if (!eat(cursor, character)) fail(cursor, `expected ${character}`)
}

function take(cursor: Cursor, sticky: RegExp): string | undefined {
  sticky.lastIndex = cursor.at
  const match = sticky.exec(cursor.text)
  if (match === null) return undefined
  cursor.at += match[0].length
  return match[0]
}

function fail(cursor: Cursor, reason: string): never {
  throw badRequestData(`${reason} at character ${cursor.at + 1} of "${cursor.text}"`, cursor.field)
}
