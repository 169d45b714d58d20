/**
 * Which model applies to a stream. Settings replace the `assign` of the models that they name. Pure.
 */
import type { ModelSubject } from '#contract'
import type { Expand } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { hasLinked } from '#ngsi-ld/query/query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** At most one of the three is given; none assigns the model to no stream. */
export interface Assign {
  readonly property?: string | undefined
  readonly stream?: string | undefined
  readonly q?: string | undefined
}

/** How specific the match is, 3 for the stream itself; 0 if there is none. */
export type MatchRank = (subject: ModelSubject) => 0 | 1 | 2 | 3

/** @throws ngsi-ld.bad-request-data for an invalid query */
export function compileAssign(assigns: readonly Assign[], expand: Expand): MatchRank {
  const matchers = assigns.map((one) => matcherOf(one, expand))
  return (subject) => {
    const ranks = matchers.map((rank) => rank(subject))
    return Math.max(0, ...ranks) as ReturnType<MatchRank>
  }
}

function matcherOf({ property, stream, q }: Assign, expand: Expand): MatchRank {
  if (stream !== undefined) return (subject) => (subject.stream === stream ? 3 : 0)
  if (q !== undefined) {
    const matches = predicateOf(q, expand)
    return ({ entity }) => (entity !== undefined && matches(entity) ? 2 : 0)
  }
  const label = property?.toLowerCase()
  return (subject) => (label !== undefined && subject.property?.toLowerCase() === label ? 1 : 0)
}

function predicateOf(q: string, expand: Expand): (entity: Entity) => boolean {
  const tree = parseQuery(q, expand, { field: 'assign.q' })
  if (hasLinked(tree)) throw badRequestData('must not follow relationships', 'assign.q')
  const matches = compileQuery(tree)
  return (entity) => matches(entity)
}
