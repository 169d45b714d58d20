/**
 * Combines index rows of an attribute with values that are newer than the index. For entities with an
 * unwritten newer value the index is stale; the in-memory value decides.
 */
import type { Json } from '#contract/pipeline.ts'
import { intervalsOf, type QueryComparison, type QueryMatch } from '#ngsi-ld/query/query.ts'
import { compileItemTest, itemsOf } from '#ngsi-ld/query/query-match.ts'
import { scalarKinds } from '#store/entities/entity-index.ts'
import type { ScalarArms } from './scalar-sql.ts'
import { type Arm, type ArmRow, listArm } from './sql-text.ts'

/** Test of an attribute's value; a number outside the bounds never fits. */
export interface ValueTest {
  readonly fits: (value: Json) => boolean
  readonly low: number
  readonly high: number
}

/** Entities whose newest value of an attribute is not in the index yet. */
export interface Unwritten {
  /** Entities whose newest value fits. */
  readonly rids: readonly number[]
  /** True for each of these entities: its index rows may be stale. */
  readonly has: (rid: number) => boolean
}

/** Turns a comparison or pattern into a test of whole values: at least one item must fit. */
export function testOf(term: QueryComparison | QueryMatch): ValueTest {
  const isFitting = compileItemTest(term)
  const numbers =
    term.kind === 'match' ? [] : intervalsOf(term).filter((interval) => interval.type === 'number')
  return {
    fits: (value) => itemsOf(value).some(isFitting),
    low: Math.min(...numbers.map(({ low = -Infinity }) => low as number)),
    high: Math.max(...numbers.map(({ high = Infinity }) => high as number)),
  }
}

export const allFit = (tests: readonly ValueTest[]): ValueTest => ({
  fits: (value) => tests.every(({ fits }) => fits(value)),
  low: Math.max(...tests.map(({ low }) => low)),
  high: Math.min(...tests.map(({ high }) => high)),
})

/** Arms of a condition; arms from the index alone keep their exactness. */
type ArmsAsOfNow = Omit<ScalarArms, 'exact' | 'probe'> & { readonly armsExact: boolean }

/**
 * A stale row is still relevant only if the attribute has several values: the row may then belong to another
 * value than the newer one.
 */
export function asOfNow(
  { arms, exact, ordered, refine, isTight }: ScalarArms,
  fresh: Unwritten | undefined,
  hasSeveral: () => boolean,
): ArmsAsOfNow {
  if (fresh === undefined)
    return { arms, armsExact: exact, ordered, isTight, ...(refine === undefined ? {} : { refine }) }
  const marksSeveral = hasSeveral()
  return {
    arms: [...(marksSeveral ? arms.map(withSeveral) : arms), listArm(fresh.rids)],
    armsExact: false,
    ordered: false,
    isTight,
    refine(row) {
      if (row.length === 1) return true
      if (fresh.has(row[0])) return marksSeveral && row.at(-1) === 1 ? undefined : false
      if (refine === undefined) return exact || undefined
      return refine(marksSeveral ? (row.slice(0, -1) as unknown as ArmRow) : row)
    },
  }
}

/** Adds a column to the arm: whether the attribute of the row has several values. */
const withSeveral = ({ part: _, ...arm }: Arm): Arm => ({
  ...arm,
  columns: `${arm.columns}, ${severalOfRow}`,
})

const severalOfRow = `(SELECT 1 FROM scalar k
  WHERE k.name = d.name AND k.kind = ${scalarKinds.several} AND k.value = 1 AND k.rid = d.rid)`
