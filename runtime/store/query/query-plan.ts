/**
 * Which condition of a search drives, and the statement that follows: the selective one, found by bounded counts, or
 * where none is, a walk in rid order that ends when the page is full. A plan lists rids in ascending order, once
 * each; it is exact, or a superset that the caller must judge.
 */
import { scalarKinds } from '#store/entities/entity-index.ts'
import type { Condition } from './sql-text.ts'
import { type Arm, joined, listArm, type Probe, type Sql } from './sql-text.ts'

/** An answer in the making, which may rest after each step. */
export type Steps<T> = Generator<void, T>

export interface Plan {
  readonly arms: readonly Arm[]
  /** True when every arm is in rid order already. */
  readonly ordered: boolean
  readonly filters: readonly Probe[]
  /** True when a filter is a set, which each statement makes anew. */
  readonly hasSets: boolean
  /** True when arms and filters decide alone. */
  readonly exact: boolean
  /** True when the arms together have few rows. */
  readonly selective: boolean
  /** How many rows the arms together have, where they are few. */
  readonly rows?: number
  /** What the arms list, when it is known already. */
  readonly rids?: readonly number[]
  /** Those of the rids that match without doubt, where the plan as a whole is not exact. */
  readonly sure?: ReadonlySet<number>
}

/** Rids behind `after`, up to `to`. */
export interface RidRange {
  readonly after: number
  readonly to: number
}

/** A condition with a closer look after it was taken: its arms are the rids that remain. */
export interface SeenCondition extends Condition {
  readonly rids: readonly number[]
  readonly sure: ReadonlySet<number>
}

export interface PlanPorts {
  /** How many rows the arms have; where they are more than `most`, any number of them beyond it. */
  readonly countRows: (arms: readonly Arm[], most: number) => number
  /** Takes the closer look; undefined when there are more than `most` rows to look at. */
  readonly lookCloser: (condition: Condition, most: number) => Steps<SeenCondition | undefined>
  /** A condition with at most so many rows may drive. */
  readonly selectiveRowsMax: number
}

/** Few enough to stop looking for fewer, even if the other conditions cannot be asked exactly. */
const enoughRows = 100

/** Rows looked at for each that may remain: a few go for nothing, at a fraction of what reading an entity costs. */
const rowsPerLook = 4

/** The plan for a page from the start. */
export function* choosePlan(conditions: readonly Condition[], ports: PlanPorts): Steps<Plan> {
  if (conditions.length === 1 && conditions[0]!.ordered)
    return assemble(conditions, conditions[0], () => false)
  const counts = yield* countConditions(conditions, ports)
  const rowsOf = (condition: Condition): number => counts.get(condition)?.rows ?? Infinity
  const isFew = (condition: Condition): boolean => rowsOf(condition) <= ports.selectiveRowsMax
  const [best] = [...counts.keys()].toSorted((a, b) => rowsOf(a) - rowsOf(b))
  if (best === undefined || !isFew(best)) return assemble(conditions, orderedDriver(conditions), () => false)
  const driver = counts.get(best)!.seen ?? best
  const others = conditions.filter((condition) => condition !== best)
  return { ...assemble([driver, ...others], driver, isFew), selective: true, rows: rowsOf(best) }
}

/** The plan for a search that selects much and skips much: sets of rids are made and intersected. */
export function* chooseSets(conditions: readonly Condition[], { lookCloser }: PlanPorts): Steps<Plan> {
  const seen: Condition[] = []
  for (const condition of conditions)
    seen.push(condition.look === undefined ? condition : (yield* lookCloser(condition, Infinity))!)
  return assemble(seen, orderedDriver(seen), () => true)
}

interface Counted {
  readonly rows: number
  readonly seen?: SeenCondition | undefined
}

function* countConditions(
  conditions: readonly Condition[],
  ports: PlanPorts,
): Steps<ReadonlyMap<Condition, Counted>> {
  const counts = new Map<Condition, Counted>()
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
 * Rows in rid order are only counted, because a page reads as many as it needs. Others are all read to be put in
 * order, so counting them first would be to read them twice, unless a look that rejects little may find too many.
 */
function* countCondition(
  condition: Condition,
  { countRows, lookCloser, selectiveRowsMax }: PlanPorts,
): Steps<Counted> {
  const { arms, look, ordered, isTight } = condition
  if (ordered || isTight === true) {
    const rows = countRows(arms!, selectiveRowsMax + 1)
    if (ordered || rows > selectiveRowsMax) return { rows }
  }
  const seen = yield* lookCloser(condition, selectiveRowsMax * (look === undefined ? 1 : rowsPerLook))
  return { rows: seen?.rids.length ?? Infinity, seen }
}

function orderedDriver(conditions: readonly Condition[]): Condition | undefined {
  return conditions
    .filter((condition) => condition.ordered && condition.arms !== undefined)
    .toSorted((a, b) => a.rank - b.rank)[0]
}

function assemble(
  conditions: readonly Condition[],
  driver: (Condition & Partial<SeenCondition>) | undefined,
  mayBeSet: (condition: Condition) => boolean,
): Plan {
  const filters: Probe[] = []
  let filtersExact = true
  let hasSets = false
  for (const condition of conditions) {
    if (condition === driver) continue
    const { arms, armsExact, probe, probeExact, look } = condition
    if (probe !== undefined && probeExact) {
      filters.push(probe)
    } else if (arms !== undefined && mayBeSet(condition) && (armsExact || look !== undefined)) {
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

/** Those of the rids that pass the filters, in their order, at most `most`. */
export function passingStatement(rids: readonly number[], filters: readonly Sql[], most: number): Sql {
  const { from, params } = listArm(rids)
  const asked = joined(filters, ' AND ')
  return {
    text: `SELECT d.rid FROM ${from} WHERE ${asked.text} LIMIT ?`,
    params: [...params, ...asked.params, most],
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

/** Whether some entity has several values of an attribute: 1 or 0. */
export function severalStatement(name: number): Sql {
  const several = 'SELECT 1 FROM scalar WHERE name = ? AND kind = ? AND value = 1'
  return { text: `SELECT EXISTS (${several})`, params: [name, scalarKinds.several] }
}

/** Rows of arms that tell the same columns, at most `most`. */
export function armRowsStatement(arms: readonly Arm[], most: number): Sql {
  const rows = arms.map(({ columns, from, where }) => {
    const told = columns === undefined ? 'd.rid' : `d.rid, ${columns}`
    return `SELECT ${told} FROM ${from} WHERE ${where}`
  })
  return {
    text: `${rows.join(' UNION ALL ')} LIMIT ?`,
    params: [...arms.flatMap((arm) => arm.params), most === Infinity ? -1 : most],
  }
}

function selectRids(plan: Plan, { after, to }: RidRange): Sql {
  const asked = plan.filters.map((filter) => ` AND ${filter.text}`).join('')
  const askedParams = plan.filters.flatMap((filter) => filter.params)
  const distinct = plan.arms.length === 1 && !plan.ordered ? 'DISTINCT ' : ''
  return {
    text: plan.arms
      .map(
        (arm) =>
          `SELECT ${distinct}d.rid FROM ${arm.from} WHERE ${arm.where} AND d.rid > ? AND d.rid <= ?${asked}`,
      )
      .join(' UNION '),
    params: plan.arms.flatMap((arm) => [...arm.params, after, to, ...askedParams]),
  }
}
