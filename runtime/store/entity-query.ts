/**
 * Answers searches for entities from the tables: pages in order of creation (rid), and counts. SQL finds candidates;
 * where it cannot decide alone, each candidate is judged by the predicate, so the answer is always that of
 * `compileSearch`. The statements it prepares are remembered within a bound.
 */

import type BetterSqlite3 from 'better-sqlite3'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import { needsTimes } from '#ngsi-ld/query.ts'
import type { QueryTimes } from '#ngsi-ld/query-match.ts'
import { compileSearch, type EntitySearch } from '#ngsi-ld/search.ts'
import type { Database } from './database.ts'
import type { Entities, EntityRow } from './entities.ts'
import {
  choosePlan,
  chooseSets,
  countArmStatement,
  countStatement,
  type Plan,
  ridsStatement,
} from './query-plan.ts'
import { type Condition, compileConditions, type SqlPorts } from './query-sql.ts'
import { type Arm, listArm, type Sql } from './sql-text.ts'

/** What a judge sees of an entity: the stored document, or something newer. */
export interface JudgedEntity {
  entity(): Entity
  times(): QueryTimes
}

export interface EntityQueryPorts extends SqlPorts {
  readonly database: Database
  readonly entities: Pick<Entities, 'byRid'>
  /** The entity of a row as it is now; absent, the row is taken as it is. */
  readonly view?: (row: EntityRow) => JudgedEntity
}

export interface EntityPageRequest {
  readonly limit: number
  readonly offset: number
  /** Only entities behind this rid. */
  readonly after?: number | undefined
}

export interface EntityPage {
  readonly rows: readonly EntityRow[]
  /** True when more follow. */
  readonly more: boolean
}

export interface EntityQuerySettings {
  /** A condition with at most so many rows may drive. */
  readonly selectiveRowsMax: number
  /** Entities walked in order before sets are intersected instead. */
  readonly walkedEntitiesMax: number
  /** Rids asked for at first; each further time four times as many, since each question costs anew. */
  readonly ridsAtFirst: number
}

const defaults: EntityQuerySettings = {
  selectiveRowsMax: limits.driverRowsMax.value,
  walkedEntitiesMax: limits.walkedEntitiesMax.value,
  ridsAtFirst: 128,
}

export function createEntityQuery(ports: EntityQueryPorts, settings = defaults) {
  const statements = createStatements(ports.database)

  const planPorts: PlanPorts = {
    selectiveRowsMax: settings.selectiveRowsMax,
    countRows: (arms, most) => statements.number(countArmsStatement(arms, most)),
    lookCloser(condition) {
      const { rids, certain } = lookAt(statements, condition)
      return { ...condition, arms: [listArm(rids)], armsExact: certain, ordered: true }
    },
  }

  /** Calls `take` for each match in order until it returns false. */
  const walk = (
    search: EntitySearch,
    conditions: readonly Condition[],
    start: Plan,
    after: number,
    take: (row: EntityRow) => boolean,
  ): void => {
    const view = ports.view ?? storedEntity
    let plan = start
    let isMatch = judgeOf(search, view, plan.exact)
    let last = after
    let walked = 0
    for (let limit = settings.ridsAtFirst; ; limit = Math.min(4 * limit, ridsAtOnce)) {
      const rids = statements.numbers(ridsStatement(plan, { after: last, limit, offset: 0 }))
      for (const rid of rids) {
        const row = ports.entities.byRid(rid)
        if (row !== undefined && isMatch(row) && !take(row)) return
      }
      if (rids.length < limit) return
      last = rids.at(-1)!
      walked += rids.length
      if (walked > settings.walkedEntitiesMax && !plan.selective && !plan.exact) {
        plan = chooseSets(conditions, planPorts)
        isMatch = judgeOf(search, view, plan.exact)
      }
    }
  }

  return Object.freeze({
    /** @throws GatewayError ngsi-ld.not-supported for terms on linked entities. */
    page(search: EntitySearch, { limit, offset, after = 0 }: EntityPageRequest): EntityPage {
      const conditions = compileConditions(search, ports)
      const plan = choosePlan(conditions, planPorts)
      if (plan.exact && search.idPattern === undefined) {
        const rids = statements.numbers(ridsStatement(plan, { after, limit: limit + 1, offset }))
        const rows = rids.slice(0, limit).map((rid) => ports.entities.byRid(rid))
        return { rows: rows.filter((row) => row !== undefined), more: rids.length > limit }
      }
      const rows: EntityRow[] = []
      let skipped = 0
      walk(search, conditions, plan, after, (row) => {
        if (skipped < offset) skipped++
        else rows.push(row)
        return rows.length <= limit
      })
      return { rows: rows.slice(0, limit), more: rows.length > limit }
    },

    /** How many entities match. @throws as page does. */
    count(search: EntitySearch): number {
      const conditions = compileConditions(search, ports)
      const chosen = choosePlan(conditions, planPorts)
      const plan = chosen.selective ? chosen : chooseSets(conditions, planPorts)
      if (plan.exact && search.idPattern === undefined) return statements.number(countStatement(plan))
      let count = 0
      walk(search, conditions, plan, 0, () => {
        count++
        return true
      })
      return count
    },
  })
}

export type EntityQueryStore = ReturnType<typeof createEntityQuery>

/** The most rids asked for at once. */
const ridsAtOnce = 65_536

/** Whether a candidate matches: its id first, its document only where SQL has not decided. */
function judgeOf(
  search: EntitySearch,
  view: (row: EntityRow) => JudgedEntity,
  exact: boolean,
): (row: EntityRow) => boolean {
  const { idPattern, q } = search
  const isMatch = compileSearch(search)
  const withTimes = q !== undefined && needsTimes(q)
  return (row) => {
    if (idPattern !== undefined && !idPattern.test(row.id)) return false
    if (exact) return true
    const judged = view(row)
    return isMatch(judged.entity(), withTimes ? judged.times() : undefined)
  }
}

function storedEntity(row: EntityRow): JudgedEntity {
  return {
    entity: () => JSON.parse(row.doc) as Entity,
    times: () => ({
      created: row.created,
      modified: row.modified,
      attributes: JSON.parse(row.sys) as QueryTimes['attributes'],
    }),
  }
}

/** The rids that a closer look leaves, ascending; certain when it left no doubt about them. */
function lookAt(
  statements: Statements,
  { arms = [], look = () => undefined }: Condition,
): { rids: readonly number[]; certain: boolean } {
  const doubtful = new Set<number>()
  const sure = new Set<number>()
  for (const alike of Map.groupBy(arms, ({ columns }) => columns).values()) {
    for (const row of statements.rows<ArmRow>(armRowsStatement(alike))) {
      const verdict = look(row)
      if (verdict === true) sure.add(row[0])
      else if (verdict === undefined) doubtful.add(row[0])
    }
  }
  const certain = doubtful.isSubsetOf(sure)
  return { rids: [...(certain ? sure : sure.union(doubtful))].sort((a, b) => a - b), certain }
}

type Statement = BetterSqlite3.Statement<unknown[]>

/** Prepared statements by text; the least recently used one leaves when there are too many. */
function createStatements(database: Database) {
  const known = new Map<string, Statement>()
  const prepared = (kind: 'pluck' | 'raw', { text }: Sql): Statement => {
    const key = `${kind} ${text}`
    const statement = known.get(key) ?? database.prepare<unknown[]>(text)[kind](true)
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

type Statements = ReturnType<typeof createStatements>
