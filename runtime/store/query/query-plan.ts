/**
 * Plans a search: chooses the condition whose rows are read first, and builds the statement. Bounded counts
 * find a selective condition; without one, the plan reads in rid order and ends when the page is full. A plan
 * lists rids in ascending order without duplicates. It is exact, or a superset that the caller must test.
 */
import { scalarKinds } from '#store/entities/entity-index.ts'
import { type Arm, joined, listArm, type Probe, type Sql, type SqlCondition } from './sql-text.ts'

/** A computation that may pause after each step. */
export type SearchSteps<T> = Generator<void, T>

export interface Plan {
  readonly arms: readonly Arm[]
  /** True when every arm is in rid order already. */
  readonly ordered: boolean
  readonly filters: readonly Probe[]
  /** True when a filter is a set, which each statement builds again. */
  readonly hasSets: boolean
  /** True when arms and filters alone are exact. */
  readonly exact: boolean
  /** True when the arms together have few rows. */
  readonly selective: boolean
  /** Number of rows of the arms together, if they are few. */
  readonly rows?: number
  /** The rids that the arms list, if known already. */
  readonly rids?: readonly number[]
  /** The rids that certainly match, although the plan as a whole is not exact. */
  readonly sure?: ReadonlySet<number>
}

/** Rids above `after`, up to `to`. */
export interface RidRange {
  readonly after: number
  readonly to: number
}

/** A condition after refinement: its arms list the remaining rids. */
export interface RefinedCondition extends SqlCondition {
  readonly rids: readonly number[]
  readonly sure: ReadonlySet<number>
}

export interface PlanPorts {
  /** Number of rows of the arms; any number above `most` if there are more. */
  readonly countRows: (arms: readonly Arm[], most: number) => number
  /** Refines a condition; undefined when it has more than `most` rows. */
  readonly refineCondition: (
    condition: SqlCondition,
    most: number,
  ) => SearchSteps<RefinedCondition | undefined>
  /** A condition with at most this many rows may drive. */
  readonly selectiveRowsMax: number
}

/**
 * Few enough to stop searching for a more selective condition, even if other conditions have no exact probe.
 */
const enoughRows = 100

/** Rows refined per row that may remain. Some are wasted, at a fraction of the cost of reading an entity. */
const rowsPerRefinement = 4

/** Chooses the plan for a page from the start. */
export function* choosePlan(conditions: readonly SqlCondition[], ports: PlanPorts): SearchSteps<Plan> {
  if (conditions.length === 1 && conditions[0]!.ordered)
    return assemble(conditions, conditions[0], () => false)
  const counts = yield* countConditions(conditions, ports)
  const rowsOf = (condition: SqlCondition): number => counts.get(condition)?.rows ?? Infinity
  const isFew = (condition: SqlCondition): boolean => rowsOf(condition) <= ports.selectiveRowsMax
  const [best] = [...counts.keys()].toSorted((a, b) => rowsOf(a) - rowsOf(b))
  if (best === undefined || !isFew(best)) return assemble(conditions, orderedDriver(conditions), () => false)
  const driver = counts.get(best)!.refined ?? best
  const others = conditions.filter((condition) => condition !== best)
  return { ...assemble([driver, ...others], driver, isFew), selective: true, rows: rowsOf(best) }
}

/**
 * Chooses the plan for a search that selects many entities or skips many: builds and intersects sets of rids.
 */
export function* chooseSets(
  conditions: readonly SqlCondition[],
  { refineCondition }: PlanPorts,
): SearchSteps<Plan> {
  const refined: SqlCondition[] = []
  for (const condition of conditions)
    refined.push(condition.refine === undefined ? condition : (yield* refineCondition(condition, Infinity))!)
  return assemble(refined, orderedDriver(refined), () => true)
}

interface Counted {
  readonly rows: number
  readonly refined?: RefinedCondition | undefined
}

function* countConditions(
  conditions: readonly SqlCondition[],
  ports: PlanPorts,
): SearchSteps<ReadonlyMap<SqlCondition, Counted>> {
  const counts = new Map<SqlCondition, Counted>()
  const drivers = conditions
    .filter((condition) => condition.arms !== undefined)
    .toSorted((a, b) => a.rank - b.rank)
  for (const [index, driver] of drivers.entries()) {
    const counted = yield* countCondition(driver, ports)
    counts.set(driver, counted)
    const othersAreExact = drivers.slice(index + 1).every((other) => other.probeExact)
    if (counted.rows <= (othersAreExact ? ports.selectiveRowsMax : enoughRows)) break
  }
  return counts
}

/**
 * Counts the rows of a condition. Rows in rid order are only counted, because a page reads only what it
 * needs. All other rows must be read to be sorted, so counting them first would read them twice. The
 * exception is a refinement that rejects few rows, because it may find too many.
 */
function* countCondition(
  condition: SqlCondition,
  { countRows, refineCondition, selectiveRowsMax }: PlanPorts,
): SearchSteps<Counted> {
  const { arms, refine, ordered, isTight } = condition
  if (ordered || isTight === true) {
    const rows = countRows(arms!, selectiveRowsMax + 1)
    if (ordered || rows > selectiveRowsMax) return { rows }
  }
  const refined = yield* refineCondition(
    condition,
    selectiveRowsMax * (refine === undefined ? 1 : rowsPerRefinement),
  )
  return { rows: refined?.rids.length ?? Infinity, refined }
}

function orderedDriver(conditions: readonly SqlCondition[]): SqlCondition | undefined {
  return conditions
    .filter((condition) => condition.ordered && condition.arms !== undefined)
    .toSorted((a, b) => a.rank - b.rank)[0]
}

function assemble(
  conditions: readonly SqlCondition[],
  driver: (SqlCondition & Partial<RefinedCondition>) | undefined,
  mayBeSet: (condition: SqlCondition) => boolean,
): Plan {
  const filters: Probe[] = []
  let filtersExact = true
  let hasSets = false
  for (const condition of conditions) {
    if (condition === driver) continue
    const { arms, armsExact, probe, probeExact, refine } = condition
    if (probe !== undefined && probeExact) {
      filters.push(probe)
    } else if (arms !== undefined && mayBeSet(condition) && (armsExact || refine !== undefined)) {
      filters.push(setFilter(arms))
      hasSets = true
      filtersExact &&= armsExact
    } else {
      if (probe !== undefined) filters.push(probe)
      filtersExact = false
    }
  }
  return {
    arms: driver?.arms ?? [{ from: 'entity d', where: '1', params: [] }],
    ordered: driver === undefined || driver.ordered,
    filters,
    hasSets,
    exact: filtersExact && (driver === undefined || driver.armsExact),
    selective: false,
    ...(driver?.rids === undefined ? {} : { rids: driver.rids }),
    ...(filtersExact && driver?.sure !== undefined ? { sure: driver.sure } : {}),
  }
}

function setFilter(arms: readonly Arm[]): Sql {
  const selects = arms.map((arm) => `SELECT d.rid FROM ${arm.from} WHERE ${arm.where}`)
  return { text: `d.rid IN (${selects.join(' UNION ALL ')})`, params: arms.flatMap((arm) => arm.params) }
}

// ---- Statements

/** Lists the rids of a plan within a range, ascending. */
export function ridsStatement(plan: Plan, page: RidRange & { limit: number; offset: number }): Sql {
  const { text, params } = selectRids(plan, page)
  return { text: `${text} ORDER BY 1 LIMIT ? OFFSET ?`, params: [...params, page.limit, page.offset] }
}

/** Selects the rids that pass the filters, in their order, at most `most`. */
export function passingStatement(rids: readonly number[], filters: readonly Sql[], most: number): Sql {
  const { from, params } = listArm(rids)
  const queried = joined(filters, ' AND ')
  return {
    text: `SELECT d.rid FROM ${from} WHERE ${queried.text} LIMIT ?`,
    params: [...params, ...queried.params, most],
  }
}

/** Counts the rids of a plan within a range. */
export function countStatement(plan: Plan, range: RidRange): Sql {
  const { text, params } = selectRids(plan, range)
  return { text: `SELECT count(*) FROM (${text})`, params }
}

/** Counts the rows of arms, at most `most`. */
export function countArmsStatement(arms: readonly Arm[], most: number): Sql {
  const rows = arms.map((arm) => `SELECT 1 FROM ${arm.from} WHERE ${arm.where}`).join(' UNION ALL ')
  return {
    text: `SELECT count(*) FROM (${rows} LIMIT ?)`,
    params: [...arms.flatMap((arm) => arm.params), most],
  }
}

/** Selects 1 if some entity has several values of an attribute, otherwise 0. */
export function severalStatement(name: number): Sql {
  const several = 'SELECT 1 FROM scalar WHERE name = ? AND kind = ? AND value = 1'
  return { text: `SELECT EXISTS (${several})`, params: [name, scalarKinds.several] }
}

/** Rows of arms with equal columns, at most `most`. */
export function armRowsStatement(arms: readonly Arm[], most: number): Sql {
  const rows = arms.map(({ columns, from, where }) => {
    const selected = columns === undefined ? 'd.rid' : `d.rid, ${columns}`
    return `SELECT ${selected} FROM ${from} WHERE ${where}`
  })
  return {
    text: `${rows.join(' UNION ALL ')} LIMIT ?`,
    params: [...arms.flatMap((arm) => arm.params), most === Infinity ? -1 : most],
  }
}

function selectRids(plan: Plan, { after, to }: RidRange): Sql {
  const queried = plan.filters.map((filter) => ` AND ${filter.text}`).join('')
  const askedParams = plan.filters.flatMap((filter) => filter.params)
  const distinct = plan.arms.length === 1 && !plan.ordered ? 'DISTINCT ' : ''
  return {
    text: plan.arms
      .map(
        (arm) =>
          `SELECT ${distinct}d.rid FROM ${arm.from} WHERE ${arm.where} AND d.rid > ? AND d.rid <= ?${queried}`,
      )
      .join(' UNION '),
    params: plan.arms.flatMap((arm) => [...arm.params, after, to, ...askedParams]),
  }
}
