/**
 * How a pattern is written: POSIX extended expressions with the usual additions. Literals, . * + ? {m,n}, [classes]
 * with [:names:], groups, alternation, ^ and $, the shorthands \d \w \s and their opposites, (?i) in front.
 * Back-references, look-around and other things beyond regular languages do not exist here. Text becomes a tree.
 */
import { badRequestData } from './problem.ts'

/** Whether a code point fits. */
export type CharacterTest = (code: number) => boolean

export type PatternNode =
  | { readonly kind: 'character'; readonly matches: CharacterTest; readonly literal?: string }
  | { readonly kind: 'begin' | 'end' }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly part: PatternNode; readonly least: number; readonly most: number }

interface Cursor {
  readonly source: string
  readonly field: string
  at: number
}

/**
 * Parses a pattern.
 * @throws GatewayError ngsi-ld.bad-request-data that says what is wrong and where.
 */
export function parsePattern(source: string, field: string): { node: PatternNode; ignoreCase: boolean } {
  const ignoreCase = source.startsWith('(?i)')
  const cursor: Cursor = { source, field, at: ignoreCase ? 4 : 0 }
  const node = parseChoice(cursor)
  if (cursor.at < source.length) fail(cursor, 'unmatched )')
  return { node, ignoreCase }
}

function parseChoice(cursor: Cursor): PatternNode {
  const parts = [parseSequence(cursor)]
  while (eat(cursor, '|')) parts.push(parseSequence(cursor))
  return parts.length === 1 ? parts[0]! : { kind: 'choice', parts }
}

function parseSequence(cursor: Cursor): PatternNode {
  const parts: PatternNode[] = []
  for (;;) {
    const next = cursor.source[cursor.at]
    if (next === undefined || next === '|' || next === ')') return { kind: 'sequence', parts }
    parts.push(parseRepeat(cursor, parseAtom(cursor)))
  }
}

function parseRepeat(cursor: Cursor, atom: PatternNode): PatternNode {
  let node = atom
  for (;;) {
    const bounds = parseBounds(cursor)
    if (bounds === undefined) return node
    if (node.kind === 'begin' || node.kind === 'end') fail(cursor, 'an anchor cannot be repeated')
    // A lazy mark changes which part of the text matches first, never whether one does.
    eat(cursor, '?')
    node = { kind: 'repeat', part: node, least: bounds[0], most: bounds[1] }
  }
}

function parseBounds(cursor: Cursor): readonly [least: number, most: number] | undefined {
  if (eat(cursor, '*')) return [0, Number.POSITIVE_INFINITY]
  if (eat(cursor, '+')) return [1, Number.POSITIVE_INFINITY]
  if (eat(cursor, '?')) return [0, 1]
  if (cursor.source[cursor.at] !== '{') return undefined
  const match = take(cursor, /\{(\d{1,4})(,?)(\d{0,4})\}/y)
  if (match === undefined) fail(cursor, 'expected {m}, {m,} or {m,n}; a literal { is written \\{')
  const least = Number(match[1])
  const most = match[2] === '' ? least : match[3] === '' ? Number.POSITIVE_INFINITY : Number(match[3])
  if (match[2] === '' && match[3] !== '') fail(cursor, 'a bound has at most four digits')
  if (most < least) fail(cursor, 'the bounds are in the wrong order')
  return [least, most]
}

function parseAtom(cursor: Cursor): PatternNode {
  if (eat(cursor, '^')) return { kind: 'begin' }
  if (eat(cursor, '$')) return { kind: 'end' }
  if (eat(cursor, '.')) return { kind: 'character', matches: (code) => code !== 10 && code !== 13 }
  if (eat(cursor, '(')) return parseGroup(cursor)
  if (eat(cursor, '[')) return { kind: 'character', matches: parseClass(cursor) }
  if (eat(cursor, '\\')) return parseEscape(cursor)
  const next = takeCharacter(cursor)
  if ('*+?{'.includes(next)) fail(cursor, `nothing to repeat before ${next}`)
  return literal(next)
}

function parseGroup(cursor: Cursor): PatternNode {
  if (eat(cursor, '?') && !eat(cursor, ':')) fail(cursor, 'look-around and named groups are not supported')
  const node = parseChoice(cursor)
  if (!eat(cursor, ')')) fail(cursor, 'missing )')
  return node
}

function parseEscape(cursor: Cursor): PatternNode {
  const next = takeCharacter(cursor)
  const shorthand = shorthands[next]
  if (shorthand !== undefined) return { kind: 'character', matches: shorthand }
  const control = controls[next]
  if (control !== undefined) return literal(control)
  if (/[A-Za-z0-9]/.test(next)) fail(cursor, `\\${next} is not supported`)
  return literal(next)
}

/** After the opening bracket. A ] in first place is a literal, as in POSIX. */
function parseClass(cursor: Cursor): CharacterTest {
  const negated = eat(cursor, '^')
  const tests: CharacterTest[] = []
  for (let first = true; first || cursor.source[cursor.at] !== ']'; first = false) {
    tests.push(parseClassItem(cursor))
  }
  cursor.at++
  return (code) => tests.some((test) => test(code)) !== negated
}

function parseClassItem(cursor: Cursor): CharacterTest {
  const named = take(cursor, /\[:([a-z]+):\]/y)
  if (named !== undefined) {
    return posixClasses[named[1]!] ?? fail(cursor, `unknown class [:${named[1]}:]`)
  }
  const low = parseClassMember(cursor)
  if (typeof low === 'function') return low
  const isRange = cursor.source[cursor.at] === '-' && cursor.source[cursor.at + 1] !== ']'
  if (!isRange) return (code) => code === low
  cursor.at++
  const high = parseClassMember(cursor)
  if (typeof high === 'function' || high < low)
    fail(cursor, 'a range runs from a lower to a higher character')
  return (code) => code >= low && code <= high
}

function parseClassMember(cursor: Cursor): number | CharacterTest {
  const next = takeCharacter(cursor)
  if (next !== '\\') return next.codePointAt(0)!
  const escaped = takeCharacter(cursor)
  return shorthands[escaped] ?? (controls[escaped] ?? escaped).codePointAt(0)!
}

const isDigit: CharacterTest = (code) => code >= 48 && code <= 57
const isUpper: CharacterTest = (code) => code >= 65 && code <= 90
const isLower: CharacterTest = (code) => code >= 97 && code <= 122
const isSpace: CharacterTest = (code) => code === 32 || (code >= 9 && code <= 13) || code === 0xa0
const isWord: CharacterTest = (code) => isDigit(code) || isUpper(code) || isLower(code) || code === 95
const not =
  (test: CharacterTest): CharacterTest =>
  (code) =>
    !test(code)

const shorthands: Readonly<Record<string, CharacterTest | undefined>> = {
  d: isDigit,
  D: not(isDigit),
  w: isWord,
  W: not(isWord),
  s: isSpace,
  S: not(isSpace),
}

const controls: Readonly<Record<string, string | undefined>> = { n: '\n', r: '\r', t: '\t' }

const posixClasses: Readonly<Record<string, CharacterTest | undefined>> = {
  alpha: (code) => isUpper(code) || isLower(code),
  alnum: (code) => isUpper(code) || isLower(code) || isDigit(code),
  digit: isDigit,
  upper: isUpper,
  lower: isLower,
  space: isSpace,
  blank: (code) => code === 32 || code === 9,
  xdigit: (code) => isDigit(code) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102),
  punct: (code) => code > 32 && code < 127 && !isDigit(code) && !isUpper(code) && !isLower(code),
}

function literal(character: string): PatternNode {
  const wanted = character.codePointAt(0)!
  return { kind: 'character', matches: (code) => code === wanted, literal: character }
}

function eat(cursor: Cursor, character: string): boolean {
  if (cursor.source[cursor.at] !== character) return false
  cursor.at++
  return true
}

function take(cursor: Cursor, sticky: RegExp): RegExpExecArray | undefined {
  sticky.lastIndex = cursor.at
  const match = sticky.exec(cursor.source)
  if (match === null) return undefined
  cursor.at += match[0].length
  return match
}

function takeCharacter(cursor: Cursor): string {
  const code = cursor.source.codePointAt(cursor.at)
  if (code === undefined) fail(cursor, 'it ends too early')
  const character = String.fromCodePoint(code)
  cursor.at += character.length
  return character
}

function fail(cursor: Cursor, reason: string): never {
  throw badRequestData(`${reason} at character ${cursor.at + 1} of "${cursor.source}"`, cursor.field)
}
