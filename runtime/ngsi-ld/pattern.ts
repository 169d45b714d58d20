/**
 * Regular expressions that cannot hang: idPattern and the ~= operator run foreign patterns on foreign texts, so
 * they run on a finite automaton, in time linear in the text. As in POSIX a pattern matches when any part of the
 * text does; `pattern-syntax.ts` says what may be written.
 */
import { limits } from '#base/limits.ts'
import { type CharacterTest, type PatternNode, parsePattern } from './pattern-syntax.ts'
import { badRequestData, tooComplex } from './problem.ts'

export interface Pattern {
  /** True when some part of the text matches. */
  test(text: string): boolean
  /** Literal characters that every matching text begins with; empty when nothing is certain. */
  readonly prefix: string
  /** Literal characters that every matching text ends with; empty when nothing is certain. */
  readonly suffix: string
}

/**
 * Compiles a pattern.
 * @param field the member or parameter it stands in, for error texts.
 * @throws GatewayError ngsi-ld.bad-request-data when it is malformed, ngsi-ld.too-complex when it is too large.
 */
export function compilePattern(source: string, field = 'pattern'): Pattern {
  if (source.length > limits.patternCharactersMax.value) {
    const most = limits.patternCharactersMax.value
    throw tooComplex(`${field}: a pattern of ${source.length} characters; at most ${most}`)
  }
  const { node, ignoreCase } = parsePattern(source, field)
  const program = compileProgram(node, ignoreCase, field)
  const prefix = ignoreCase ? '' : literalPrefix(node)
  const suffix = ignoreCase ? '' : literalSuffix(node)
  return Object.freeze({ test: createMatcher(program, prefix), prefix, suffix })
}

/**
 * Compiles a pattern of ids. An empty one would be met by all, which nobody writes who means it.
 * @throws GatewayError as compilePattern, and ngsi-ld.bad-request-data for an empty one.
 */
export function compileIdPattern(source: string, field: string): Pattern {
  if (source.trim() === '') throw badRequestData('is an empty pattern', field)
  return compilePattern(source, field)
}

function literalPrefix(node: PatternNode): string {
  if (node.kind !== 'sequence' || node.parts[0]?.kind !== 'begin') return ''
  let prefix = ''
  for (const part of node.parts.slice(1)) {
    if (part.kind !== 'character' || part.literal === undefined) break
    prefix += part.literal
  }
  return prefix
}

function literalSuffix(node: PatternNode): string {
  if (node.kind !== 'sequence' || node.parts.at(-1)?.kind !== 'end') return ''
  let suffix = ''
  for (const part of node.parts.slice(0, -1).toReversed()) {
    if (part.kind !== 'character' || part.literal === undefined) break
    suffix = part.literal + suffix
  }
  return suffix
}

/** One state of the automaton; it goes on to the next in line, a split to its targets. */
type Instruction =
  | { readonly kind: 'character'; readonly matches: CharacterTest }
  | { readonly kind: 'begin' | 'end' | 'match' }
  | { readonly kind: 'split'; targets: readonly number[] }

function compileProgram(root: PatternNode, ignoreCase: boolean, field: string): readonly Instruction[] {
  const program: Instruction[] = []
  let steps = 0

  const emit = (node: PatternNode): void => {
    // Counted here and not by the program's length alone: repeats of nothing emit nothing.
    if (Math.max(++steps, program.length) > limits.patternStatesMax.value) {
      throw tooComplex(`${field}: a pattern with more than ${limits.patternStatesMax.value} states`)
    }
    if (node.kind === 'character') {
      program.push({ kind: 'character', matches: ignoreCase ? foldCase(node.matches) : node.matches })
    } else if (node.kind === 'sequence') {
      for (const part of node.parts) emit(part)
    } else if (node.kind === 'choice') {
      emitChoice(node.parts)
    } else if (node.kind === 'repeat') {
      emitRepeat(node.part, node.least, node.most)
    } else {
      program.push({ kind: node.kind })
    }
  }

  const emitChoice = (parts: readonly PatternNode[]): void => {
    const starts: number[] = []
    const exits: { kind: 'split'; targets: readonly number[] }[] = []
    program.push({ kind: 'split', targets: starts })
    for (const part of parts) {
      starts.push(program.length)
      emit(part)
      const exit = { kind: 'split' as const, targets: [] as readonly number[] }
      exits.push(exit)
      program.push(exit)
    }
    for (const exit of exits) exit.targets = [program.length]
  }

  const emitRepeat = (part: PatternNode, least: number, most: number): void => {
    for (let count = 0; count < least; count++) emit(part)
    const loop = most === Number.POSITIVE_INFINITY
    for (let count = least; count < (loop ? least + 1 : most); count++) {
      const entry = program.length
      const split = { kind: 'split' as const, targets: [] as readonly number[] }
      program.push(split)
      emit(part)
      if (loop) program.push({ kind: 'split', targets: [entry] })
      split.targets = [entry + 1, program.length]
    }
  }

  emit(root)
  program.push({ kind: 'match' })
  return program
}

function foldCase(test: CharacterTest): CharacterTest {
  return (code) => {
    const character = String.fromCodePoint(code)
    return (
      test(code) ||
      test(character.toLowerCase().codePointAt(0)!) ||
      test(character.toUpperCase().codePointAt(0)!)
    )
  }
}

/** The states of the automaton that are alive at one place of the text. */
interface Alive {
  readonly states: Int32Array
  count: number
}

/** Runs all alternatives side by side, so the cost of a character is at most one visit of every state. */
function createMatcher(program: readonly Instruction[], prefix: string): (text: string) => boolean {
  const marks = new Uint32Array(program.length)
  const open: number[] = []
  let stamp = 0
  let current: Alive = { states: new Int32Array(program.length), count: 0 }
  let next: Alive = { states: new Int32Array(program.length), count: 0 }

  const begin = (alive: Alive): void => {
    alive.count = 0
    if (++stamp < 0xffffffff) return
    marks.fill(0)
    stamp = 1
  }

  /** Adds a state and all that follow it without reading; true when that reaches the end of the pattern. */
  const enter = (alive: Alive, from: number, atBegin: boolean, atEnd: boolean): boolean => {
    open.push(from)
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (marks[state] === stamp) continue
      marks[state] = stamp
      const instruction = program[state]!
      if (instruction.kind === 'match') {
        open.length = 0
        return true
      }
      if (instruction.kind === 'split') open.push(...instruction.targets)
      else if (instruction.kind === 'begin') atBegin && open.push(state + 1)
      else if (instruction.kind === 'end' && atEnd) open.push(state + 1)
      else alive.states[alive.count++] = state
    }
    return false
  }

  /** Reads one character: fills `next`; true when a match ends here. */
  const step = (code: number): boolean => {
    begin(next)
    for (let index = 0; index < current.count; index++) {
      const state = current.states[index]!
      const instruction = program[state]!
      if (instruction.kind !== 'character' || !instruction.matches(code)) continue
      if (enter(next, state + 1, false, false)) return true
    }
    // A match may begin after every character, so the start is entered again.
    return enter(next, 0, false, false)
  }

  const endsHere = (atBegin: boolean): boolean => {
    begin(next)
    for (let index = 0; index < current.count; index++) {
      if (enter(next, current.states[index]!, atBegin, true)) return true
    }
    return false
  }

  return (text) => {
    if (text.length > limits.patternTextMax.value || !text.startsWith(prefix)) return false
    begin(current)
    if (enter(current, 0, true, false)) return true
    for (let at = 0; at < text.length; ) {
      const code = text.codePointAt(at)!
      at += code > 0xffff ? 2 : 1
      if (step(code)) return true
      const spare = current
      current = next
      next = spare
      if (current.count === 0) return false
    }
    return endsHere(text.length === 0)
  }
}
