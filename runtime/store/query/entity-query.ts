/**
 * Answers entity searches from the index tables: pages in order of creation (rid), and counts. SQL finds
 * candidates. If SQL alone is not exact, the predicate tests each candidate, so the result is always that of
 * `compileSearch`. Prepared statements are cached within a limit.
 */

import { limits } from '#base/limits/limits.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { compileOrder, type EntityOrder } from '#ngsi-ld/query/order.ts'
import { needsTimes } from '#ngsi-ld/query/query.ts'
import type { QueryTimes } from '#ngsi-ld/query/query-match.ts'
import { compileSearch, type EntitySearch } from '#ngsi-ld/query/search.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { storedTimes } from '#store/entities/attribute-times.ts'
import { scalarKinds } from '#store/entities/entity-index.ts'
import type { Entities } from '#store/entities/entity-rows.ts'
import type { ListedPage } from '#store/entities/known-pages.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import { rowsAhead } from '#store/entities/rows-ahead.ts'
import type { Database } from '#store/file/database.ts'
import { firstPlaces, indexedKeys, type OrderedPageRequest, type OrderedPlace } from './entity-order.ts'
import { refineRows } from './exact-check.ts'
import type { SqlPorts } from './place-sql.ts'
import {
  armRowsStatement,
  choosePlan,
  chooseSets,
  countArmsStatement,
  countStatement,
  type Plan,
  type PlanPorts,
  passingStatement,
  ridsStatement,
  type SearchSteps,
  severalStatement,
} from './query-plan.ts'
import { compileConditions } from './query-sql.ts'
import { allAfter, isOneStatement, rangesOf, ridsPerStatement } from './rid-slices.ts'
import { type Arm, type ArmRow, listArm, type SqlCondition } from './sql-text.ts'
import { createStatements } from './statement-cache.ts'

/** The entity that the predicate tests: the stored document, or a newer state. */
export interface SearchedEntity {
  entity(): Entity
  times(): QueryTimes
}

export interface EntityQueryPorts extends Omit<SqlPorts, 'hasSeveral' | 'hasBoxes'> {
  readonly database: Database
  readonly entities: Pick<
    Entities,
    'byId' | 'byRid' | 'byRids' | 'knownRows' | 'pages' | 'columns' | 'lastPlace' | 'lastRid'
  >
  /** The current state of a row's entity; if absent, the row itself is current. */
  readonly view?: (row: EntityRow) => SearchedEntity
}

export interface EntityPageRequest {
  readonly limit: number
  readonly offset: number
  /** Only entities after this rid. */
  readonly after?: number | undefined
}

export interface EntityPage {
  readonly rows: readonly EntityRow[]
  /** True when more follow. */
  readonly more: boolean
}

export interface EntityQuerySettings {
  /** A condition with at most this many rows may drive the query. */
  readonly selectiveRowsMax: number
  /** Entities tested in order before sets are intersected instead. */
  readonly walkedEntitiesMax: number
  /** Rids in the first batch; each further batch is four times as large, because each statement costs. */
  readonly ridsAtFirst: number
}

const defaults: EntityQuerySettings = {
  selectiveRowsMax: limits.driverRowsMax.value,
  walkedEntitiesMax: limits.walkedEntitiesMax.value,
  ridsAtFirst: 128,
}

export function createEntityQuery(ports: EntityQueryPorts, settings = defaults) {
  const statements = createStatements(ports.database)
  const { pages, columns, lastRid } = ports.entities
  const view = ports.view ?? storedEntity
  /** Visits at most `most` rows of arms with equal columns, and maybe more from memory; returns how many. */
  function* eachRow(alike: readonly Arm[], most: number, visit: (row: ArmRow) => void): SearchSteps<number> {
    const queried: Arm[] = []
    const pairs: number[] = []
    for (const arm of alike) {
      for (const rid of arm.rids ?? []) visit([rid])
      const isKnown =
        arm.rids !== undefined ||
        (arm.part && columns.each(arm.part, most, ([rid, value]) => void pairs.push(rid, value))) !==
          undefined
      if (!isKnown) queried.push(arm)
    }
    const row: [rid: number, value: number] = [0, 0.5]
    for (let at = 0; at < pairs.length; at += 2) {
      row[0] = pairs[at]!
      row[1] = pairs[at + 1]!
      visit(row)
      if ((at / 2) % rowsPerStep === rowsPerStep - 1) yield
    }
    const rows = queried.length === 0 ? [] : statements.rows<ArmRow>(armRowsStatement(queried, most))
    for (const [at, one] of rows.entries()) {
      visit(one)
      if (at % rowsPerStep === rowsPerStep - 1) yield
    }
    return alike.reduce((sum, { rids }) => sum + (rids?.length ?? 0), pairs.length / 2 + rows.length)
  }

  /** The rids of the rows of one arm. */
  const ridsOfArm = (arm: Arm, most: number): readonly number[] =>
    arm.rids ??
    (arm.part && columns.rids(arm.part, most)) ??
    statements.numbers(armRowsStatement([arm], most))

  const conditionsOf = (search: EntitySearch): readonly SqlCondition[] => {
    columns.begin()
    return compileConditions(search, sqlPorts)
  }
  const sqlPorts: SqlPorts = {
    ...ports,
    hasSeveral(name) {
      const column = { name, kind: scalarKinds.several }
      const known = columns.count({ column, ranges: [{ low: 1, high: 1 }] })
      return (known ?? statements.number(severalStatement(name))) > 0
    },
    hasBoxes: () => ports.entities.lastPlace() > 0,
  }
  const planPorts: PlanPorts = {
    selectiveRowsMax: settings.selectiveRowsMax,
    countRows(arms, most) {
      const known = arms.map(({ rids, part }) => rids?.length ?? (part && columns.count(part)))
      const queried = arms.filter((_, i) => known[i] === undefined)
      const count = known.reduce<number>((sum, rows = 0) => sum + rows, 0)
      return count + (queried.length === 0 ? 0 : statements.number(countArmsStatement(queried, most)))
    },
    *refineCondition(condition, most) {
      const refined = yield* refineRows({ eachRow, ridsOfArm }, condition, most)
      return refined && { ...condition, ...refined, arms: [listArm(refined.rids)], ordered: true }
    },
  }

  /** At most `limit` rids of a plan after `after`, ascending; may pause between two statements. */
  function* ridsOf(plan: Plan, after: number, limit: number, offset: number): SearchSteps<readonly number[]> {
    if (plan.rids !== undefined) return yield* knownRids(plan, plan.rids, after, { limit, offset })
    if (isOneStatement(plan)) {
      const rids = statements.numbers(ridsStatement(plan, { ...allAfter(after), limit, offset }))
      yield
      return rids
    }
    const found: number[] = []
    for (const range of rangesOf(plan, after, lastRid())) {
      const most = limit + offset - found.length
      for (const rid of statements.numbers(ridsStatement(plan, { ...range, limit: most, offset: 0 })))
        found.push(rid)
      if (found.length >= limit + offset) break
      yield
    }
    return found.slice(offset)
  }

  function* knownRids(
    plan: Plan,
    rids: readonly number[],
    after: number,
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): SearchSteps<readonly number[]> {
    const listed = rids.filter((rid) => rid > after)
    if (plan.filters.length === 0) return listed.slice(offset, offset + limit)
    const tests = plan.filters.map(({ type }) => (type === undefined ? undefined : columns.ofType(type)))
    const unknown = plan.filters.filter((_, i) => tests[i] === undefined)
    const most = limit + offset
    const atOnce = ridsPerStatement(plan, listed.length)
    const found: number[] = []
    let size = Math.min(Math.ceil(listedPerWanted * most), atOnce)
    for (let first = 0; first < listed.length && found.length < most; ) {
      const left = tests.reduce<readonly number[]>(
        (some, test) => test?.(some) ?? some,
        listed.slice(first, first + size),
      )
      const wanted = Math.min(most - found.length, left.length)
      const passing =
        unknown.length === 0
          ? left.slice(0, wanted)
          : statements.numbers(passingStatement(left, unknown, wanted))
      found.push(...passing)
      first += size
      size = Math.min(2 * size, atOnce)
      if (unknown.length > 0) yield
    }
    return found.slice(offset)
  }

  function* listPage(plan: Plan, after: number, limit: number, offset: number): SearchSteps<ListedPage> {
    const rids = yield* ridsOf(plan, after, limit + 1, offset)
    return rids.length > limit ? { rids: rids.slice(0, limit), more: true } : { rids, more: false }
  }
  const pageOf = ({ rids, more }: ListedPage, read?: ReadonlyMap<number, EntityRow>): EntityPage => {
    const { rows, taken } = ports.entities.byRids(rids, read)
    return { rows, more: more || taken < rids.length }
  }

  /**
   * Visits the matches of a plan in order until `visit` returns false. A plan that yields many candidates and
   * few matches is replaced by sets. If these are exact, returns the plan and rid to continue with.
   */
  function* walk(
    search: EntitySearch,
    conditions: readonly SqlCondition[],
    start: Plan,
    after: number,
    visit: (rid: number, row: EntityRow | undefined) => boolean,
  ): SearchSteps<{ readonly plan: Plan; readonly after: number } | undefined> {
    const { idPattern, q } = search
    const isMatch = compileSearch(search, (id) => {
      const row = ports.entities.byId(id)
      return row === undefined ? undefined : view(row)
    })
    const withTimes = q !== undefined && needsTimes(q)
    let plan = start
    const isSure = (rid: number): boolean => plan.exact || plan.sure?.has(rid) === true
    const needsRow = (rid: number): boolean => idPattern !== undefined || !isSure(rid)
    const isTaken = (rid: number, row: EntityRow | undefined): boolean => {
      if (row === undefined) return !needsRow(rid)
      if (idPattern?.test(row.id) === false) return false
      if (isSure(rid)) return true
      const current = view(row)
      return isMatch(current.entity(), withTimes ? current.times() : undefined)
    }
    let last = after
    let walked = 0
    for (let limit = settings.ridsAtFirst; ; limit = Math.min(4 * limit, ridsAtOnce)) {
      const rids = yield* ridsOf(plan, last, limit, 0)
      const read = rowsAhead(rids.filter(needsRow), ports.entities.byRids)
      for (const rid of rids) {
        const row = read(rid)
        if (isTaken(rid, row) && !visit(rid, row)) return undefined
        if (row !== undefined) yield
      }
      yield
      if (rids.length < limit) return undefined
      last = rids.at(-1)!
      walked += rids.length
      if (walked <= settings.walkedEntitiesMax || plan.selective || plan.exact) continue
      plan = yield* chooseSets(conditions, planPorts)
      if (isListable(plan, search)) return { plan, after: last }
    }
  }

  function* page(
    search: EntitySearch,
    { limit, offset, after = 0 }: EntityPageRequest,
  ): SearchSteps<EntityPage> {
    const known = pages.find(search, { limit, offset, after })
    if (known !== undefined) return pageOf(known)
    const version = pages.version()
    const conditions = conditionsOf(search)
    const plan = yield* choosePlan(conditions, planPorts)
    if (isListable(plan, search)) {
      const listed = yield* listPage(plan, after, limit, offset)
      // A write between two steps may be missing in the list, so a list that spans one is not cached.
      if (pages.version() === version) pages.remember(search, { limit, offset, after }, listed)
      return pageOf(listed)
    }
    const rids: number[] = []
    const read = new Map<number, EntityRow>()
    let skipped = 0
    let size = 0
    const rest = yield* walk(search, conditions, plan, after, (rid, row) => {
      if (skipped < offset) skipped++
      else {
        rids.push(rid)
        size += row?.doc.length ?? 0
        if (row !== undefined) read.set(rid, row)
      }
      return rids.length <= limit && size <= limits.pageBytesMax.value
    })
    const isFull = rids.length > limit || size > limits.pageBytesMax.value
    if (rest === undefined) return pageOf({ rids: rids.slice(0, limit), more: isFull }, read)
    const others = yield* listPage(rest.plan, rest.after, limit - rids.length, offset - skipped)
    return pageOf({ rids: [...rids, ...others.rids], more: others.more }, read)
  }

  /** The matching rids, at most one more than can be ordered; undefined when SQL alone is not exact. */
  function* listed(search: EntitySearch): SearchSteps<readonly number[] | undefined> {
    if (search.idPattern !== undefined) return undefined
    const conditions = conditionsOf(search)
    const chosen = yield* choosePlan(conditions, planPorts)
    const plan = chosen.selective ? chosen : yield* chooseSets(conditions, planPorts)
    return plan.exact ? yield* ridsOf(plan, 0, limits.orderedEntitiesMax.value + 1, 0) : undefined
  }

  /** Visits all matches, which SQL alone cannot list. */
  function* eachMatch(search: EntitySearch, visit: (row: EntityRow) => void): SearchSteps<void> {
    let seen = 0
    for (let after = 0, more = true; more; ) {
      const found = yield* page(search, { limit: ridsPerSort, offset: 0, after })
      seen += found.rows.length
      checkCount(seen, limits.orderedDocumentsMax.value)
      for (const row of found.rows) {
        visit(row)
        yield
      }
      after = found.rows.at(-1)?.rid ?? 0
      more = found.more
    }
  }

  return Object.freeze({
    page,

    /** A page, if all of it is in memory: the same result as a search now. */
    knownPage(search: EntitySearch, { limit, offset, after = 0 }: EntityPageRequest): EntityPage | undefined {
      const known = pages.find(search, { limit, offset, after })
      const found = known && ports.entities.knownRows(known.rids)
      return found && { rows: found.rows, more: known.more || found.taken < known.rids.length }
    },

    /** A page in another order than that of creation, which breaks ties. */
    *ordered(
      search: EntitySearch,
      order: EntityOrder,
      request: OrderedPageRequest,
    ): SearchSteps<OrderedPage> {
      const compiled = compileOrder(order)
      const first = firstPlaces(compiled, request)
      const read = (row: EntityRow): void => {
        const current = view(row)
        first.offer({ rid: row.rid, keys: compiled.keysOf(current.entity(), current.times()) })
      }
      const rids = yield* listed(search)
      if (rids === undefined) yield* eachMatch(search, read)
      else {
        checkCount(rids.length, limits.orderedEntitiesMax.value)
        const isLong = rids.length > settings.walkedEntitiesMax
        const known = isLong ? indexedKeys(order, ports, statements.rows) : undefined
        if (known === undefined) checkCount(rids.length, limits.orderedDocumentsMax.value)
        for (const rid of rids) {
          const keys = known?.(rid)
          const row = keys === undefined ? ports.entities.byRid(rid) : undefined
          if (keys !== undefined) first.offer({ rid, keys })
          else if (row !== undefined) read(row)
          yield
        }
      }
      const { places, more } = first.result()
      const { rows, taken } = ports.entities.byRids(places.map(({ rid }) => rid))
      return { rows, more: more || taken < places.length, last: places[taken - 1] }
    },

    /** Number of matching entities. */
    *count(search: EntitySearch): SearchSteps<number> {
      const conditions = conditionsOf(search)
      const chosen = yield* choosePlan(conditions, planPorts)
      const plan = chosen.selective ? chosen : yield* chooseSets(conditions, planPorts)
      let count = 0
      if (isListable(plan, search)) {
        if (plan.rids !== undefined) return (yield* ridsOf(plan, 0, Infinity, 0)).length
        if (isOneStatement(plan)) return statements.number(countStatement(plan, allAfter(0)))
        for (const range of rangesOf(plan, 0, lastRid())) {
          count += statements.number(countStatement(plan, range))
          yield
        }
        return count
      }
      yield* walk(search, conditions, plan, 0, () => {
        count++
        return true
      })
      return count
    },
  })
}

export interface OrderedPage extends EntityPage {
  /** Place of the last row. */
  readonly last: OrderedPlace | undefined
}

/** Entities read at once for ordering. */
const ridsPerSort = 1000

function checkCount(count: number, most: number): void {
  if (count > most) throw tooComplex(`more than ${most} entities would have to be ordered`)
}

/** Whether the rows of a plan are the matches, without a test of each. */
const isListable = ({ exact }: Plan, { idPattern }: EntitySearch): boolean => exact && idPattern === undefined

/** Largest batch of rids. */
const ridsAtOnce = 65_536
/** Rows tested in one step: each is compared with all positions of a geometry. */
const rowsPerStep = 32
/** The first batch of a known list is this many times the wanted number, because most of its rids pass. */
const listedPerWanted = 1.25

function storedEntity(row: EntityRow): SearchedEntity {
  return {
    entity: () => JSON.parse(row.doc) as Entity,
    times: () => ({
      created: row.created,
      modified: row.modified,
      attributes: storedTimes(row),
    }),
  }
}
