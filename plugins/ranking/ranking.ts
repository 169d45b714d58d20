/**
 * A ranked query from question to answer: candidates come from the backend page by page, each page gets its values, and the best are
 * kept. Only what can still be in the answer stays in memory, unless normalisation has to see all first.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import type { Answered, Asking, Backend, Outcome, Wanted } from './backend.ts'
import { createGathering } from './gathering.ts'
import { pickingOf } from './picking.ts'
import type { Question } from './ranked-query.ts'
import { derivedHeader, derivedName } from './ranking-criteria.ts'
import { bestOf, type Candidate, type Ranked, type Span, scoreOf, spansOf } from './score.ts'
import { createFinder } from './value.ts'

export interface Ranking {
  rank(question: Question, asking: Asking): Promise<Exclude<Outcome, { kind: 'read' }> | RankedList>
}

export interface RankedList {
  readonly kind: 'ranked'
  /** The page asked for, the best first. */
  readonly page: readonly Ranked<JsonObject>[]
  /** Of all candidates. */
  readonly count: number
  /** By term, of how many candidates it has no number. */
  readonly missing: readonly number[]
  /** By term, of how many candidates the number makes 1 minus it leave 0 to 1, so that those without one may come first. */
  readonly beyond: readonly number[]
  readonly spans: readonly Span[] | undefined
  /** What the backend and linked entities had to warn of. */
  readonly warnings: readonly string[]
  readonly failures: readonly string[]
  /** The first answer, whose headers go with the list. */
  readonly first: Answered
}

export interface RankingPorts {
  readonly backend: Backend
  readonly clock: Clock
  /** Of the platform; compiled when it is needed. */
  readonly context: () => Context
}

export function createRanking({ backend, clock, context }: RankingPorts): Ranking {
  const yieldIfDue = createYield(clock.monotonic, limits.queryTurnMs.value)
  const finder = createFinder((name) => context().expand(name))
  const spellings = (name: string): readonly string[] => [...new Set([name, toIri(context().expand(name))])]

  return Object.freeze({
    async rank(question, asking) {
      const { terms, isNormalised, offset, limit } = question
      const yardsticks = { ...question.yardsticks, now: clock.now() }
      const { headers, isShown } = derivedAsked(question, asking.headers)
      const asked = { ...asking, headers }
      const { others, isPartial, pick } = pickingOf(question, headers, context().expand)
      const plain = { ...asking, headers: plainHeaders(headers) }
      const ports = {
        finder,
        spellings,
        linked: (ids: readonly string[], wanted: Wanted) => backend.linked(ids, wanted, plain),
        yieldIfDue,
      }
      const [missing, beyond] = [terms.map(() => 0), terms.map(() => 0)]
      const failures = new Set<string>()
      let [count, kept] = [0, [] as readonly Ranked<JsonObject>[]]
      let all: readonly Candidate<JsonObject>[] = []

      const outcome = await backend.candidates(others, asked, async (items) => {
        count += items.length
        const entities = items.map(membersOf)
        const found = await createGathering({ terms, entities, yardsticks, isPartial }, ports).gather()
        for (const failure of found.failures) failures.add(failure)
        for (const item of items) {
          pick(item)
          if (!isShown) hide(item, derivedName)
        }
        const candidates = items.map((item, index) => ({ item, values: found.values[index]! }))
        for (const { values } of candidates)
          for (const [term, value] of values.entries()) {
            if (Number.isNaN(value)) missing[term]!++
            else if (!isNormalised && terms[term]!.isFalling && (value < 0 || value > 1)) beyond[term]!++
          }
        if (isNormalised) all = [...all, ...candidates]
        else kept = bestOf([...kept, ...candidates.map((one) => ranked(one))], offset + limit)
      })
      if (outcome.kind !== 'read') return outcome
      const spans = isNormalised ? spansOf(terms.length, all) : undefined
      if (isNormalised)
        kept = bestOf(
          all.map((one) => ranked(one, spans)),
          offset + limit,
        )
      const { first, warnings } = outcome
      return {
        kind: 'ranked',
        page: kept.slice(offset),
        count,
        missing,
        beyond,
        spans,
        warnings,
        failures: [...failures],
        first,
      }

      function ranked(one: Candidate<JsonObject>, within?: readonly Span[]): Ranked<JsonObject> {
        return { ...one, score: scoreOf(terms, one.values, within) }
      }
    },
  } satisfies Ranking)
}

/** Where the attributes of an item are: of a feature, its properties. */
export function membersOf(item: JsonObject): JsonObject {
  const properties = own(item, 'properties')
  if (item['type'] !== 'Feature' || !isObject(properties)) return item
  return { ...properties, id: item['id']! }
}

function hide(item: JsonObject, name: string): void {
  const properties = own(item, 'properties')
  delete (item as Record<string, unknown>)[name]
  if (isObject(properties)) delete (properties as Record<string, unknown>)[name]
}

/** Headers by which the backend tells what it derives, where that counts; whether the client wants to see it. */
function derivedAsked({ terms }: Question, headers: Readonly<Record<string, string>>) {
  const isShown = headers[derivedHeader] === 'true'
  const isNeeded = terms.some(({ path }) => path.criterion !== undefined)
  return { isShown, headers: isNeeded ? { ...headers, [derivedHeader]: 'true' } : headers }
}

/** Linked entities are read as they are, whatever form the client wants. */
const plainHeaders = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ...headers,
  accept: 'application/json',
})
