/**
 * Ranks a query. Candidates arrive from the backend page by page; each page gets its values, and the best are
 * kept. Memory holds only candidates that can still be in the response, unless normalization needs all of
 * them. They are kept as JSON text, which takes a fraction of the memory of parsed entities.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import type { Backend, BackendAnswer, BackendOutcome, RequestOptions, WantedLinks } from './backend.ts'
import { createGathering } from './gathering.ts'
import { pickingOf } from './picking.ts'
import type { RankedQuery } from './ranked-query.ts'
import { derivedHeader, derivedName } from './ranking-criteria.ts'
import { bestOf, type Candidate, type Ranked, scoreOf, spansOf, type ValueRange } from './score.ts'
import { createAttributeFinder } from './value.ts'

export interface RankedList {
  readonly kind: 'ranked'
  /** The requested page, the best first. */
  readonly page: readonly Ranked<JsonObject>[]
  /** Number of all candidates. */
  readonly count: number
  /** By term: number of candidates without a value. */
  readonly missing: readonly number[]
  /**
   * By term: number of candidates whose inverted value is outside 0 to 1, so that candidates without a value
   * may precede them.
   */
  readonly beyond: readonly number[]
  readonly spans: readonly ValueRange[] | undefined
  /** Warnings of the backend and of linked entities. */
  readonly warnings: readonly string[]
  readonly failures: readonly string[]
  /** The first response; its headers are returned with the list. */
  readonly first: BackendAnswer
}

export interface RankingPorts {
  readonly backend: Backend
  readonly clock: Clock
  /** The platform's context, compiled on first use. */
  readonly context: () => Context
}

export function createRanking({ backend, clock, context }: RankingPorts) {
  const yieldIfDue = createYield(clock.monotonic, limits.queryTurnMs.value)
  const finder = createAttributeFinder((name) => context().expand(name))
  const spellings = (name: string): readonly string[] => [...new Set([name, toIri(context().expand(name))])]

  async function written<T extends { readonly item: JsonObject | string }>(
    candidates: readonly T[],
  ): Promise<(T & { readonly item: string })[]> {
    const texts: (T & { readonly item: string })[] = []
    for (const one of candidates) {
      await yieldIfDue()
      texts.push({ ...one, item: typeof one.item === 'string' ? one.item : JSON.stringify(one.item) })
    }
    return texts
  }

  async function read(page: readonly Ranked<string>[]): Promise<Ranked<JsonObject>[]> {
    const entities: Ranked<JsonObject>[] = []
    for (const one of page) {
      await yieldIfDue()
      entities.push({ ...one, item: JSON.parse(one.item) as JsonObject })
    }
    return entities
  }

  return Object.freeze({
    async rank(
      rankedQuery: RankedQuery,
      options: RequestOptions,
    ): Promise<Exclude<BackendOutcome, { kind: 'read' }> | RankedList> {
      const { terms, isNormalized, offset, limit } = rankedQuery
      const yardsticks = { ...rankedQuery.yardsticks, now: clock.now() }
      const { headers, isShown } = derivedRequest(rankedQuery, options.headers)
      const candidateOptions = { ...options, headers }
      const { others, isPartial, pick } = pickingOf(rankedQuery, headers, context().expand)
      const plain = { ...options, headers: plainHeaders(headers) }
      const ports = {
        finder,
        spellings,
        linked: (ids: readonly string[], wanted: WantedLinks) => backend.linked(ids, wanted, plain),
        yieldIfDue,
      }
      const [missing, beyond] = [terms.map(() => 0), terms.map(() => 0)]
      const failures = new Set<string>()
      let count = 0
      let kept: readonly Ranked<string>[] = []
      const all: Candidate<string>[] = []

      const tally = (values: Float64Array): void => {
        for (const [term, value] of values.entries())
          if (Number.isNaN(value)) missing[term]!++
          else if (!isNormalized && terms[term]!.isFalling && (value < 0 || value > 1)) beyond[term]!++
      }

      const outcome = await backend.candidates(others, candidateOptions, async (items) => {
        count += items.length
        const entities = items.map(membersOf)
        const found = await createGathering({ terms, entities, yardsticks, isPartial }, ports).gather()
        for (const failure of found.failures) failures.add(failure)
        for (const item of items) {
          pick(item)
          if (!isShown) hide(item, derivedName)
        }
        const candidates = items.map((item, index) => ({ item, values: found.values[index]! }))
        for (const { values } of candidates) tally(values)
        if (isNormalized) all.push(...(await written(candidates)))
        else {
          const best = bestOf<JsonObject | string>(
            [...kept, ...candidates.map((one) => ranked(one))],
            offset + limit,
          )
          kept = await written(best)
        }
      })
      if (outcome.kind !== 'read') return outcome
      const spans = isNormalized ? spansOf(terms.length, all) : undefined
      if (isNormalized)
        kept = bestOf(
          all.map((one) => ranked(one, spans)),
          offset + limit,
        )
      const { first, warnings } = outcome
      return {
        kind: 'ranked',
        page: await read(kept.slice(offset)),
        count,
        missing,
        beyond,
        spans,
        warnings,
        failures: [...failures],
        first,
      }

      function ranked<T>(one: Candidate<T>, within?: readonly ValueRange[]): Ranked<T> {
        return { ...one, score: scoreOf(terms, one.values, within) }
      }
    },
  })
}

/** The object that holds an item's attributes; for a feature, its properties. */
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

/**
 * Adds the header that requests derived facts if a criterion needs them. Also returns whether to show the
 * facts.
 */
function derivedRequest({ terms }: RankedQuery, headers: Readonly<Record<string, string>>) {
  const isShown = headers[derivedHeader] === 'true'
  const isNeeded = terms.some(({ path }) => path.criterion !== undefined)
  return { isShown, headers: isNeeded ? { ...headers, [derivedHeader]: 'true' } : headers }
}

/** Linked entities are requested as plain JSON, whatever format the client wants. */
const plainHeaders = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ...headers,
  accept: 'application/json',
})
