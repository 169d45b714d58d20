/**
 * Caches prepared statements by their text, so that a repeated search prepares nothing. The least recently
 * used one is evicted.
 */
import type BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits/limits.ts'
import type { Database } from '#store/file/database.ts'
import type { Sql } from './sql-text.ts'

type Statement = BetterSqlite3.Statement<unknown[]>

export function createStatements(database: Database) {
  const known = new Map<string, Statement>()
  const prepared = (kind: 'pluck' | 'raw', { text }: Sql): Statement => {
    const key = `${kind} ${text}`
    const statement = known.get(key) ?? database.prepare<unknown[]>(text)[kind]()
    known.delete(key)
    known.set(key, statement)
    if (known.size > limits.statementsCachedMax.value) known.delete(known.keys().next().value!)
    return statement
  }
  return Object.freeze({
    number: (sql: Sql) => prepared('pluck', sql).get(...sql.params) as number,
    numbers: (sql: Sql) => prepared('pluck', sql).all(...sql.params) as number[],
    rows: <Row>(sql: Sql) => prepared('raw', sql).all(...sql.params) as Row[],
  })
}
