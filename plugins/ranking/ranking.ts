/**
 * Ranks a query. Candidates arrive from the backend page by page. Memory holds the id and the values of each,
 * and the entities of the first pages up to a limit. The other entities of the requested page are read again
 * by id, with the same query: one that was deleted or no longer matches is omitted, one that changed is
 * current.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import type { Backend, BackendAnswer, BackendOutcome, RequestOptions, WantedEntities } from './backend.ts'
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
  const spellings = (name: string): readonly string[] => [...new Set([name, toIri(context().expand(name))])]

  return Object.freeze({
    async rank(
      rankedQuery: RankedQuery,
      options: RequestOptions,
    ): Promise<Exclude<BackendOutcome, { kind: 'read' }> | RankedList> {
      const { terms, isNormalized, offset, limit } = rankedQuery
      const finder = createAttributeFinder((name) => context().expand(name))
      const yardsticks = { ...rankedQuery.yardsticks, now: clock.now() }
      const { headers, isShown } = derivedRequest(rankedQuery, options.headers)
      const candidateOptions = { ...options, headers }
      const { others, isPartial, pick } = pickingOf(rankedQuery, headers, context().expand)
      const plain = { ...options, headers: plainHeaders(headers) }
      const ports = {
        finder,
        spellings,
        linked: (ids: readonly string[], wanted: WantedEntities) => backend.byId(ids, wanted, plain),
        yieldIfDue,
      }
      const [missing, beyond] = [terms.map(() => 0), terms.map(() => 0)]
      const failures = new Set<string>()
      const all: Candidate<string>[] = []
      /** Entities as the client receives them, by id. */
      const held = new Map<string, JsonObject>()

      const hold = (item: JsonObject): void => {
        held.set(item['id'] as string, item)
        pick(item)
        if (!isShown) hide(item, derivedName)
      }
      const tally = (values: Float64Array): void => {
        for (const [term, value] of values.entries())
          if (Number.isNaN(value)) missing[term]!++
          else if (!isNormalized && terms[term]!.isFalling && (value < 0 || value > 1)) beyond[term]!++
      }

      const outcome = await backend.candidates(others, candidateOptions, async (items, bytes) => {
        const entities = items.map(membersOf)
        const found = await createGathering({ terms, entities, yardsticks, isPartial }, ports).gather()
        for (const failure of found.failures) failures.add(failure)
        for (const [index, values] of found.values.entries()) {
          all.push({ item: items[index]!['id'] as string, values })
          tally(values)
        }
        if (bytes <= limits.rankingHeldBytes.value) items.forEach(hold)
      })
      if (outcome.kind !== 'read') return outcome
      const spans = isNormalized ? spansOf(terms.length, all) : undefined
      const scored: Ranked<string>[] = []
      for (const one of all) {
        await yieldIfDue()
        scored.push({ ...one, score: scoreOf(terms, one.values, spans) })
      }
      const best = bestOf(scored, offset + limit).slice(offset)
      const lacking = best.flatMap(({ item: id }) => (held.has(id) ? [] : [id]))
      const again = await backend.byId(lacking, ...againBy(others, candidateOptions))
      if (again.failure !== undefined) return { kind: 'unanswered', reason: again.failure }
      for (const item of again.entities.values()) hold(item)
      const page = best.flatMap((one) => {
        const item = held.get(one.item)
        return item === undefined ? [] : [{ ...one, item }]
      })
      const gone = best.length - page.length
      if (gone > 0) failures.add(`missing here, deleted or changed while ranked: ${gone}`)
      const { first, warnings } = outcome
      return {
        kind: 'ranked',
        page,
        count: all.length,
        missing,
        beyond,
        spans,
        warnings,
        failures: [...failures],
        first,
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

/**
 * How to read candidates again by id. Conditions stay, unless candidates need not satisfy them: entities of
 * an entity map, and those that `join=flat` adds to the list.
 */
function againBy(pairs: readonly string[], options: RequestOptions) {
  const { 'ngsild-entitymap': map, ...headers } = options.headers
  const left = map !== undefined || pairs.includes('join=flat') ? conditions : byId
  const query = pairs.filter((pair) => !left.has(decodeURIComponent(pair.split('=', 1)[0]!)))
  return [{ query }, { ...options, headers }] as const
}

/** Parameters that select by id or create an entity map, and all that select. */
const byId: ReadonlySet<string> = new Set(['id', 'idPattern', 'entityMap', 'entityMapLifetime'])
const conditions = byId.union(
  new Set(['type', 'q', 'scopeQ', 'csf', 'georel', 'geometry', 'coordinates', 'geoproperty']),
)

/** Linked entities are requested as plain JSON, whatever format the client wants. */
const plainHeaders = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ...headers,
  accept: 'application/json',
})
