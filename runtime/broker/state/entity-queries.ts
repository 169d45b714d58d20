/** Queries of entities (GS CIM 009, 5.7.2) and their pages. */

import type { EntitySelector, TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import type { EntityOrder } from '#ngsi-ld/query/order.ts'
import type { QueryTree } from '#ngsi-ld/query/query.ts'
import type { ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import type { Pattern } from '#ngsi-ld/values/pattern.ts'
import type { EntityView } from './stored-entity.ts'

/** What a query asks for; names core-compacted, members joined by AND, absent ones do not restrict. */
export interface EntityQuery {
  readonly selection?: TypeSelection | undefined
  readonly ids?: readonly string[] | undefined
  readonly idPattern?: Pattern | undefined
  /** Entities that at least one of these means. */
  readonly selectors?: readonly EntitySelector[] | undefined
  readonly scope?: ScopeQuery | undefined
  /** Entities that have at least one of these attributes. */
  readonly attrs?: readonly string[] | undefined
  readonly q?: QueryTree | undefined
  readonly geo?: GeoQuery | undefined
  /** Without one, in order of creation. */
  readonly order?: EntityOrder | undefined
  readonly limit: number
  readonly offset: number
  /** Only what stands behind this position, the `next` of an earlier page; `offset` does not count then. */
  readonly after?: string | undefined
  readonly count: boolean
}

export interface QueryPage {
  readonly entities: readonly EntityView[]
  /** All that match, when count was asked for. */
  readonly count?: number
  /** True when more follow after this page. */
  readonly more: boolean
  /** Position behind the last entity. */
  readonly next?: string | undefined
  /** How many of the list the page covers, where lists have no positions: fewer than its limit when they are large. */
  readonly taken?: number | undefined
}
