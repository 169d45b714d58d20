/**
 * Parses the ranking arguments of a query: weights, and the reference values of proximity and freshness. Pure
 * functions. Rejects, naming the argument, what the ranking component would reject.
 */
import { GraphQLError } from 'graphql'
import { checkPoint, type GivenArguments, type Near } from '#plugins/search/schema/query-criteria.ts'
import type { RankingParameters } from './reads.ts'

/** @param near of the query; its point is the default for rankPoint. @throws GraphQLError */
export function rankingOf(given: GivenArguments, near: Near | undefined): RankingParameters | undefined {
  const { ranking, rankPoint, rankDistance, rankAge } = given as Arguments
  const yardsticks = Object.entries({ rankPoint, rankDistance, rankAge })
  const lone = yardsticks.find(([, value]) => value !== undefined && value !== null)
  if (!Array.isArray(ranking) || ranking.length === 0) {
    if (lone !== undefined) throw refuse(`${lone[0]} requires ranking`)
    return undefined
  }
  const weights = (ranking as readonly Criterion[]).map(({ name, value }) => {
    if (typeof name !== 'string' || name === '' || typeof value !== 'number') {
      throw refuse('each criterion of ranking requires a name and a value')
    }
    return [name, value] as const
  })
  const point = rankPoint ?? near
  if (point !== undefined) checkPoint('rankPoint', point)
  if (point === undefined && weights.some(([name]) => /(?:^|[.-])@proximity$/.test(name))) {
    throw refuse('ranking by @proximity requires rankPoint or near')
  }
  return {
    weights,
    point,
    distance: above('rankDistance', rankDistance),
    age: above('rankAge', rankAge),
  }
}

interface Criterion {
  readonly name?: string | null
  readonly value?: number | null
}

interface Arguments {
  readonly ranking?: unknown
  readonly rankPoint?: { readonly lon: number; readonly lat: number } | null
  readonly rankDistance?: number | null
  readonly rankAge?: number | null
}

function above(name: string, value: number | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined
  if (value > 0 && value <= 1e12) return value
  throw refuse(`${name} must be a number above 0`)
}

const refuse = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
