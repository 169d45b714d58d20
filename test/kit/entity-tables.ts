/**
 * The entity tables of a tenant in memory: the real schema, filled by the writer's own statements from the index rows
 * of plain entities. Rids follow the order of the entities, beginning with 1. There is no log and no live state.
 */
import BetterSqlite3 from 'better-sqlite3'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { QueryTimes } from '#ngsi-ld/query/query-match.ts'
import { timesText } from '#store/entities/attribute-times.ts'
import { type IndexRows, indexRows } from '#store/entities/entity-index.ts'
import { createEntities, entityWrites } from '#store/entities/entity-rows.ts'
import { migrations } from '#store/file/database-schema.ts'

const noRows: IndexRows = { types: [], attributes: [], scalars: [], places: [] }
const epoch: QueryTimes = { created: 0, modified: 0, attributes: {} }

export function createEntityTables() {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  const numbers = new Map<string, number>()
  const statements = new Map<string, BetterSqlite3.Statement<unknown[]>>()
  const documents = createEntities(database)
  let filled: readonly Entity[] = []
  let lastPlace = 0

  const intern = (text: string): number => {
    if (!numbers.has(text)) numbers.set(text, numbers.size + 1)
    return numbers.get(text)!
  }
  // Kinds are interned with the shapes of entities; queries ask whether there is a VocabProperty.
  intern('VocabProperty')
  const write = (name: keyof typeof entityWrites, ...params: unknown[]): void => {
    const statement = statements.get(name) ?? database.prepare<unknown[]>(entityWrites[name])
    statements.set(name, statement)
    statement.run(...params)
  }

  /** Changes the index rows of an entity, as a write of its document does. */
  const reindex = (rid: number, { add, remove }: { add: IndexRows; remove: IndexRows }): void => {
    for (const type of remove.types) write('type.delete', intern(type), rid)
    for (const name of remove.attributes) write('attribute.delete', intern(name), rid)
    for (const [name, kind, value] of remove.scalars) write('scalar.delete', intern(name), kind, value, rid)
    for (const name of new Set(remove.places.map((place) => place.name))) {
      write('place.delete', rid, intern(name))
      write('place.forget', rid, intern(name))
    }
    for (const type of add.types) write('type.insert', intern(type), rid)
    for (const name of add.attributes) write('attribute.insert', intern(name), rid)
    for (const [name, kind, value] of add.scalars) write('scalar.insert', intern(name), kind, value, rid)
    documents.columns.renew(rid, { add, remove }, (text) => numbers.get(text))
    documents.renewPlaces()
    for (const { name, box, lon, lat } of add.places) {
      const i = ++lastPlace
      write('place.insert', i, box.x0, box.x1, box.y0, box.y1, rid, intern(name), lon ?? null, lat ?? null)
      write('place.note', rid, intern(name), i)
    }
  }

  const create = (rid: number, entity: Entity, { created, modified, attributes }: QueryTimes): void => {
    const sys = timesText(created, attributes)
    write('entity.insert', rid, entity.id, rid, created, modified, sys, JSON.stringify(entity))
    reindex(rid, { add: indexRows(entity), remove: noRows })
  }

  return Object.freeze({
    database,
    /** What a query over these tables needs. */
    ports: { database, entities: documents, nameOf: (text: string) => numbers.get(text) },
    reindex,
    /** Replaces whatever the tables hold. */
    fill(entities: readonly Entity[], timesOf: (at: number) => QueryTimes = () => epoch): void {
      database.transaction(() => {
        for (const table of ['entity', 'entity_type', 'scalar', 'has_attribute', 'place', 'place_of']) {
          database.exec(`DELETE FROM ${table}`)
        }
        for (const [at, entity] of entities.entries()) create(at + 1, entity, timesOf(at))
      })()
      // As whoever deletes entities does.
      for (const { id } of [...filled, ...entities]) documents.forget(id)
      documents.pages.forget()
      documents.columns.forget()
      filled = entities
    },
    /** Every index row, in order. */
    indexed: () => [
      database.prepare('SELECT * FROM entity_type ORDER BY 1, 2').all(),
      database.prepare('SELECT * FROM scalar ORDER BY 1, 2, 3, 4').all(),
      database.prepare('SELECT * FROM has_attribute ORDER BY 1, 2').all(),
      database
        .prepare('SELECT x0, x1, y0, y1, rid, name, lon, lat FROM place ORDER BY 5, 6, 1, 2, 3, 4')
        .all(),
    ],
  })
}
