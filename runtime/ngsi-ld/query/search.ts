/**
 * A search for entities from the parameters of a query [NGSI-LD 5.7.2], and its form as a predicate on one
 * entity. The predicate defines the result; SQL may only compute the same result faster.
 */
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import {
  compilePattern,
  createQueryBudget,
  type Pattern,
  type PatternBudget,
} from '#ngsi-ld/values/pattern.ts'
import { type EntitySelector, matchesType, type TypeSelection } from './entity-selector.ts'
import { compileGeoQuery, type GeoQuery } from './geo-query.ts'
import type { QueryTree } from './query.ts'
import { compileQuery, type Follow, type QueryPredicate } from './query-match.ts'
import { matchesScope, type ScopeQuery } from './scope-query.ts'

/** Members are joined by AND; absent ones do not restrict. Names are core-compacted. */
export interface EntitySearch {
  readonly selection?: TypeSelection | undefined
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: Pattern | undefined
  /** At least one of these selectors must match. */
  readonly selectors?: readonly EntitySelector[] | undefined
  readonly scope?: ScopeQuery | undefined
  /** At least one of these attributes must exist. */
  readonly attrs?: readonly string[] | undefined
  readonly q?: QueryTree | undefined
  readonly geo?: GeoQuery | undefined
}

/**
 * Compiles the search to a function.
 * @throws GatewayError ngsi-ld.not-supported for terms on linked entities without `follow`.
 */
export function compileSearch(
  search: EntitySearch,
  follow?: Follow,
  budget = createQueryBudget(),
): QueryPredicate {
  const { selection, ids, idPattern, selectors, scope, attrs, q, geo } = search
  const tests: QueryPredicate[] = []
  if (selection !== undefined) tests.push(({ type }) => matchesType(selection, type))
  if (ids !== undefined) {
    const wanted = new Set(ids)
    tests.push(({ id }) => wanted.has(id))
  }
  if (idPattern !== undefined) tests.push(({ id }) => idPattern.test(id))
  if (selectors !== undefined) {
    const each = selectors.map((one) => compileSelector(one, budget))
    tests.push((entity) => each.some((test) => test(entity)))
  }
  if (scope !== undefined) tests.push((entity) => matchesScope(scope, entity.scope))
  if (attrs !== undefined) tests.push((entity) => attrs.some((name) => hasAttribute(entity, name)))
  if (q !== undefined) tests.push(compileQuery(q, follow, budget))
  if (geo !== undefined) tests.push(compileGeoQuery(geo, budget))
  return (entity, times) => {
    budget.begin()
    return tests.every((test) => test(entity, times))
  }
}

/** If both ids and a pattern are given, the ids decide. */
function compileSelector(
  { types, ids, idPattern }: EntitySelector,
  budget: PatternBudget,
): (entity: Entity) => boolean {
  const wanted = ids === undefined ? undefined : new Set(ids)
  const pattern =
    idPattern === undefined || ids !== undefined ? undefined : compilePattern(idPattern, 'idPattern', budget)
  return ({ id, type }) =>
    (types === undefined || matchesType(types, type)) &&
    wanted?.has(id) !== false &&
    pattern?.test(id) !== false
}

function hasAttribute(entity: Entity, name: string): boolean {
  return typeof instancesOf(entity, name)[0] === 'object'
}
