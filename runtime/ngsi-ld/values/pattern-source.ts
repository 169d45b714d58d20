/**
 * Derives facts from the text of a pattern without compiling it: literal prefixes and suffixes for indexes,
 * and a lower bound of its states, so that `(a{500}){500}` is rejected before it is built. Uncertain facts
 * are reported as unknown; RE2 decides which patterns are valid.
 */

/** Escapes, classes, bounds, then any character. */
const token = /\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\{(\d+)(?:(,)(\d*))?\}|./gsu
const special = /^[\\^$.*+?()[\]{}|]/
const quantifier = /^[*+?{]/
/** Escapes that represent one character or class and consume nothing that follows. */
const plainEscape = /^\\[dDwWsSbBAzntr]$/

interface Literals {
  readonly prefix: string
  readonly suffix: string
  /** The pattern, if it consists of literal characters only. */
  readonly literal: string | undefined
}

const unknown: Literals = { prefix: '', suffix: '', literal: undefined }

/** Literal characters at the start and end of every matching text. */
export function literalsOf(source: string): Literals {
  const tokens = source.match(token) ?? []
  if (tokens.every((each) => literalOf(each) !== undefined))
    return { prefix: '', suffix: '', literal: tokens.map(literalOf).join('') }
  const isCertain = tokens.every((each, i) => {
    if (each === '|' || (each === '(' && tokens[i + 1] === '?' && tokens[i + 2] !== ':')) return false
    return literalOf(each) !== undefined || plainEscape.test(each) || !each.startsWith('\\')
  })
  if (!isCertain) return unknown
  const begins = tokens[0] === '^' ? literalRun(tokens.slice(1)) : []
  // A quantifier after a character makes that character optional.
  const next = tokens[begins.length + 1]
  if (next !== undefined && quantifier.test(next)) begins.pop()
  const ends = tokens.at(-1) === '$' ? literalRun(tokens.slice(0, -1).toReversed()).toReversed() : []
  return { prefix: begins.join(''), suffix: ends.join(''), literal: undefined }
}

/** The literal characters that a list of tokens begins with. */
function literalRun(tokens: readonly string[]): string[] {
  const run: string[] = []
  for (const each of tokens) {
    const literal = literalOf(each)
    if (literal === undefined) break
    run.push(literal)
  }
  return run
}

/** The character that a token represents; undefined if it represents anything else. */
function literalOf(each: string): string | undefined {
  if (!special.test(each)) return each
  return /^\\[^\p{L}\p{N}_]$/u.test(each) ? each.slice(1) : undefined
}

/** Counts characters and classes with their repeats; RE2's automaton has at least about as many states. */
export function statesAtLeast(source: string): number {
  const open = [0]
  let last = 0
  const add = (states: number): void => {
    open[open.length - 1]! += states
    last = states
  }
  for (const [each, least, range, most] of source.matchAll(token)) {
    if (least !== undefined) {
      const times = Math.max(Number(least), range === undefined ? 0 : Number(most), 1)
      const before = last
      add(before * (times - 1))
      last = before * times
    } else if (each === '(') open.push(0)
    else if (each === ')' && open.length > 1) add(open.pop()!)
    else if (!quantifier.test(each)) add(special.test(each) && !/^[.[\\]/.test(each) ? 0 : 1)
  }
  return open.reduce((sum, states) => sum + states, 0)
}
