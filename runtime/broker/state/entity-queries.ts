/** Queries of entities (GS CIM 009, 5.7.2) and their pages. */

import type { EntityOrder } from '#ngsi-ld/query/order.ts'
import type { EntitySearch } from '#ngsi-ld/query/search.ts'
import type { EntityView } from './stored-entity.ts'

/** The parameters of a query: which entities, in which order, and the page. */
export interface EntityQuery extends EntitySearch {
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
