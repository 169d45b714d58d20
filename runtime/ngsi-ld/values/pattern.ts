/**
 * Regular expressions of clients: idPattern, the ~= operator, selectors of registrations and subscriptions. They run on
 * RE2, in time linear in the text; `pattern-source.ts` says what is known of a pattern without running it. A pattern
 * matches when any part of the text does. A budget bounds the work: one step is one state on one character.
 */
import { RE2JSException, RE2Set } from 're2js'
import { limits } from '#base/limits/limits.ts'
import { badRequestData, tooComplex } from './ngsi-ld-problem.ts'
import { literalsOf, statesAtLeast } from './pattern-source.ts'

export interface Pattern {
  /** True when some part of the text matches. */
  test(text: string): boolean
  /** Literal characters that every matching text begins with; empty when nothing is certain. */
  readonly prefix: string
  /** Literal characters that every matching text ends with; empty when nothing is certain. */
  readonly suffix: string
}

/** Bounds the work of patterns, and of geometries. What is not compared does not match. */
export interface PatternBudget {
  /** The next entity is compared. */
  begin(): void
  /** Whether so many steps may still be made; may throw instead of returning false. */
  spend(steps: number): boolean
}

/** Bounds each text alone: for ids, and for what an operator configured. */
export const textBudget: PatternBudget = {
  begin: () => {},
  spend: (steps) => steps <= limits.patternEntitySteps.value,
}

/** For one query. Throws ngsi-ld.too-complex when the patterns of the query would take too much work. */
export function createQueryBudget(): PatternBudget {
  let ofEntity = 0
  let ofQuery = 0
  return {
    begin() {
      ofEntity = 0
    },
    spend(steps) {
      ofEntity += steps
      ofQuery += steps
      if (ofEntity > limits.patternEntitySteps.value)
        throw tooComplex('a pattern or geometry is too large for a text or geometry that it is compared with')
      if (ofQuery > limits.patternQuerySteps.value)
        throw tooComplex('the patterns or geometry of the query would be compared with too much')
      return true
    },
  }
}

/** For all that compare one change of an entity, one after the other. */
export interface ChangeBudget extends PatternBudget {
  /** The next change is compared. */
  renew(): void
  /** How many texts were not compared so far, for want of steps. */
  refused(): number
}

export function createChangeBudget(): ChangeBudget {
  let ofChange = 0
  let refused = 0
  return {
    begin: () => {},
    renew() {
      ofChange = 0
    },
    refused: () => refused,
    spend(steps) {
      const isWithin = ofChange + steps <= limits.patternEntitySteps.value
      if (isWithin) ofChange += steps
      else refused++
      return isWithin
    },
  }
}

/**
 * Compiles a pattern.
 * @param field the member or parameter it stands in, for error texts.
 * @throws GatewayError ngsi-ld.bad-request-data when RE2 cannot compile it, ngsi-ld.too-complex when it is too large.
 */
export function compilePattern(source: string, field = 'pattern', budget = textBudget): Pattern {
  return patternOf(source, automatonOf(source, field).states, budget)
}

/** A pattern that was compiled when it was stored: it is compiled again when a text needs it, and that costs of the budget, too. */
export const storedPattern = (source: string, budget: PatternBudget): Pattern =>
  patternOf(source, Math.max(1, statesAtLeast(source)), budget)

function patternOf(source: string, states: number, budget: PatternBudget): Pattern {
  const { prefix, suffix, literal } = literalsOf(source)
  return Object.freeze({
    prefix,
    suffix,
    test(text: string): boolean {
      if (!text.startsWith(prefix) || !text.endsWith(suffix)) return false
      if (literal !== undefined) return text.includes(literal)
      const steps = states * (text.length + (compiled.has(source) ? 0 : stepsToCompile))
      return budget.spend(steps) && automatonOf(source, 'pattern').set.match(text).length > 0
    },
  })
}

/** What compiling one state takes: about 3 us, as long as so many steps. */
const stepsToCompile = 200

/**
 * Compiles a pattern of ids. An empty one would be met by all, which nobody writes who means it.
 * @throws GatewayError as compilePattern, and ngsi-ld.bad-request-data for an empty one.
 */
export function compileIdPattern(source: string, field: string): Pattern {
  if (source.trim() === '') throw badRequestData('is an empty pattern', field)
  return compilePattern(source, field)
}

interface Automaton {
  readonly set: RE2Set
  readonly states: number
}

/**
 * Automata compiled last, by source: they grow while they are used, and thousands of subscriptions may have one each.
 * The same source always gives the same automaton, so nothing depends on what is kept here.
 */
const compiled = new Map<string, Automaton>()

function automatonOf(source: string, field: string): Automaton {
  const known = compiled.get(source)
  compiled.delete(source)
  const automaton = known ?? compileAutomaton(source, field)
  compiled.set(source, automaton)
  if (compiled.size > limits.patternsCompiledMax.value) compiled.delete(compiled.keys().next().value!)
  return automaton
}

function compileAutomaton(source: string, field: string): Automaton {
  const charactersMax = limits.patternCharactersMax.value
  if (source.length > charactersMax)
    throw tooComplex(`${field}: a pattern of ${source.length} characters; at most ${charactersMax}`)
  const statesMax = limits.patternStatesMax.value
  if (statesAtLeast(source) > statesMax)
    throw tooComplex(`${field}: a pattern with more than ${statesMax} states`)
  // A set of one: it takes a bound of memory, a single pattern does not.
  const set = new RE2Set(RE2Set.UNANCHORED, 0, limits.patternMemoryBytes.value)
  try {
    set.add(source)
    set.compile()
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw badRequestData(`"${source}" is no pattern of RE2: ${error.message}`, field)
  }
  const states = set.prog.numInst()
  if (states > statesMax) throw tooComplex(`${field}: a pattern with more than ${statesMax} states`)
  return { set, states }
}
