/** Queries of entities (GS CIM 009, 5.7.2) and their pages. */

import type { EntitySelector, TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import type { EntityOrder } from '#ngsi-ld/query/order.ts'
import type { QueryTree } from '#ngsi-ld/query/query.ts'
import type { ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import type { Pattern } from '#ngsi-ld/values/pattern.ts'
import type { EntityView } from './stored-entity.ts'

/** The parameters of a query. Names are core-compacted; all given members must match. */
export interface EntityQuery {
  readonly selection?: TypeSelection | undefined
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: Pattern | undefined
  /** Entities that match at least one selector. */
  readonly selectors?: readonly EntitySelector[] | undefined
  readonly scope?: ScopeQuery | undefined
  /** Entities that have at least one of these attributes. */
  readonly attrs?: readonly string[] | undefined
  readonly q?: QueryTree | undefined
  readonly geo?: GeoQuery | undefined
  /** Default: order of creation. */
  readonly order?: EntityOrder | undefined
  readonly limit: number
  readonly offset: number
  /** Continues behind this position, the `next` of an earlier page; `offset` is then ignored. */
  readonly after?: string | undefined
  readonly count: boolean
}

export interface QueryPage {
  readonly entities: readonly EntityView[]
  /** Number of all matches, if the query has `count`. */
  readonly count?: number
  /** True when more entities follow this page. */
  readonly more: boolean
  /** Position behind the last entity. */
  readonly next?: string | undefined
  /**
   * For lists without positions: how many list entries the page covers. Fewer than the limit if entities are
   * large.
   */
  readonly taken?: number | undefined
}
