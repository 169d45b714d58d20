/**
 * Regular expressions from clients: idPattern, the ~= operator, selectors of registrations and subscriptions.
 * A pattern matches if any part of the text matches. RE2 runs it in time linear in the text.
 * `pattern-source.ts` reads facts from the source of a pattern without compiling it: how each matching text
 * begins and ends, and how many states the pattern has at least.
 *
 * A budget bounds the work. Patterns and geometries of a query share it (`query/geo-query.ts` spends the part
 * of geometries). Comparing a text costs its length times the states of the pattern. A query that exceeds the
 * budget fails with 403 TooComplexQuery. Without a query, a text that exceeds it does not match.
 */
import { RE2JSException, RE2Set } from 're2js'
import { limits } from '#base/limits/limits.ts'
import { badRequestData, tooComplex } from './ngsi-ld-problem.ts'
import { literalsOf, statesAtLeast } from './pattern-source.ts'

export interface Pattern {
  /** True if some part of the text matches. */
  test(text: string): boolean
  /** Literal characters that every matching text begins with; empty if unknown. */
  readonly prefix: string
  /** Literal characters that every matching text ends with; empty if unknown. */
  readonly suffix: string
}

/** Bounds the work of patterns and geometries. A text or geometry beyond the budget does not match. */
export interface PatternBudget {
  /** Starts the comparison of the next entity. */
  begin(): void
  /** Whether this many more steps are allowed; may throw instead of returning false. */
  spend(steps: number): boolean
}

/** Bounds each text on its own: for ids, and for patterns that an operator configured. */
export const textBudget: PatternBudget = {
  begin: () => {},
  spend: (steps) => steps <= limits.patternEntitySteps.value,
}

/** The budget of one query. Throws ngsi-ld.too-complex when the query's patterns would take too much work. */
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
        throw tooComplex('the query would compare its patterns or geometry with too much data')
      return true
    },
  }
}

/** Shared by everything that compares one change of an entity, one comparison after another. */
export interface ChangeBudget extends PatternBudget {
  /** Starts the comparison of the next change. */
  renew(): void
  /** Number of texts skipped so far because the budget was used up. */
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
 * @param field the member or parameter that contains the pattern, for error texts.
 * @throws GatewayError ngsi-ld.bad-request-data if RE2 cannot compile it, ngsi-ld.too-complex if it is too
 * large.
 */
export function compilePattern(source: string, field = 'pattern', budget = textBudget): Pattern {
  return patternOf(source, automatonOf(source, field).states, budget)
}

/**
 * A pattern that was validated when it was stored. It is compiled again when a text needs it, and the budget
 * pays for that, too.
 */
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

/** Compiling one state takes about 3 us, as long as this many steps. */
const stepsToCompile = 200

/**
 * Compiles a pattern of ids. An empty pattern would match every id, which no client intends.
 * @throws GatewayError as compilePattern, and ngsi-ld.bad-request-data for an empty pattern.
 */
export function compileIdPattern(source: string, field: string): Pattern {
  if (source.trim() === '') throw badRequestData('must not be an empty pattern', field)
  return compilePattern(source, field)
}

interface Automaton {
  readonly set: RE2Set
  readonly states: number
}

/**
 * The automata compiled last, by source. They grow while in use, and thousands of subscriptions may each have
 * one. A source always compiles to an equivalent automaton, so evicting one changes no result.
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
    throw tooComplex(
      `${field}: the pattern has ${source.length} characters; at most ${charactersMax} are allowed`,
    )
  const statesMax = limits.patternStatesMax.value
  if (statesAtLeast(source) > statesMax)
    throw tooComplex(`${field}: the pattern has more than ${statesMax} states`)
  // A set of one pattern, because only a set accepts a memory limit.
  const set = new RE2Set(RE2Set.UNANCHORED, 0, limits.patternMemoryBytes.value)
  try {
    set.add(source)
    set.compile()
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw badRequestData(`"${source}" is not a valid RE2 pattern: ${error.message}`, field)
  }
  const states = set.prog.numInst()
  if (states > statesMax) throw tooComplex(`${field}: the pattern has more than ${statesMax} states`)
  return { set, states }
}
