/**
 * What the index tells of an attribute together with the values that are newer than it. Of an entity with a newer value the
 * index tells of yesterday, and what fits today is known without it.
 */
import type { Json } from '#contract/pipeline.ts'
import { intervalsOf, type QueryComparison, type QueryMatch } from '#ngsi-ld/query/query.ts'
import { compileItemTest, itemsOf } from '#ngsi-ld/query/query-match.ts'
import { scalarKinds } from '#store/entities/entity-index.ts'
import type { ScalarArms } from './scalar-sql.ts'
import { type Arm, type ArmRow, listArm } from './sql-text.ts'

/** What the value of an attribute is asked; a number outside the bounds does not fit. */
export interface ValueTest {
  readonly fits: (value: Json) => boolean
  readonly low: number
  readonly high: number
}

/** Entities whose newest value of an attribute is not in the index yet. */
export interface Unwritten {
  /** Those whose newest value fits. */
  readonly rids: readonly number[]
  /** True for any of them: what the index says of it may be of yesterday. */
  readonly has: (rid: number) => boolean
}

/** A comparison or a pattern as a test of whole values: one item that fits is enough. */
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

/** Arms of a condition; those of the index alone are exact as they stand. */
type ArmsAsOfNow = Omit<ScalarArms, 'exact' | 'probe'> & { readonly armsExact: boolean }

/** Only where an attribute has several values, what the index tells may be of another one than that which is newer. */
export function asOfNow(
  { arms, exact, ordered, look, isTight }: ScalarArms,
  fresh: Unwritten | undefined,
  hasSeveral: () => boolean,
): ArmsAsOfNow {
  if (fresh === undefined)
    return { arms, armsExact: exact, ordered, isTight, ...(look === undefined ? {} : { look }) }
  const tellsSeveral = hasSeveral()
  return {
    arms: [...(tellsSeveral ? arms.map(withSeveral) : arms), listArm(fresh.rids)],
    armsExact: false,
    ordered: false,
    isTight,
    look(row) {
      if (row.length === 1) return true
      if (fresh.has(row[0])) return tellsSeveral && row.at(-1) === 1 ? undefined : false
      if (look === undefined) return exact || undefined
      return look(tellsSeveral ? (row.slice(0, -1) as unknown as ArmRow) : row)
    },
  }
}

/** The rows of an arm, which say at their end whether their attribute has several values. */
const withSeveral = ({ part: _, ...arm }: Arm): Arm => ({
  ...arm,
  columns: `${arm.columns}, ${severalOfRow}`,
})

const severalOfRow = `(SELECT 1 FROM scalar k
  WHERE k.name = d.name AND k.kind = ${scalarKinds.several} AND k.value = 1 AND k.rid = d.rid)`
