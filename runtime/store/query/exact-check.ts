/**
 * Refines the rows of a condition: finds the rids that remain, and those that the index alone confirms. The
 * number of rows is bounded; beyond the bound there is no result. The generator yields between rows, because
 * a polygon may have thousands of positions.
 */

import type { RefinedCondition, SearchSteps } from './query-plan.ts'
import type { Arm, ArmRow, SqlCondition } from './sql-text.ts'

const noRids: ReadonlySet<number> = new Set()

/**
 * The rids that remain after refinement, ascending; exact when no doubtful row remained. Undefined beyond
 * `most` rows.
 */
export function* refineRows(
  {
    eachRow,
    ridsOfArm,
  }: {
    readonly eachRow: (
      alike: readonly Arm[],
      most: number,
      visit: (row: ArmRow) => void,
    ) => SearchSteps<number>
    readonly ridsOfArm: (arm: Arm, most: number) => readonly number[]
  },
  { arms = [], refine, armsExact: areExact }: SqlCondition,
  most: number,
): SearchSteps<Pick<RefinedCondition, 'rids' | 'sure' | 'armsExact'> | undefined> {
  if (refine === undefined) {
    const listed = arms.flatMap((arm) => ridsOfArm(arm, most + 1))
    return listed.length > most ? undefined : { rids: ascending(listed), sure: noRids, armsExact: areExact }
  }
  const sure = arms.flatMap((arm) => (arm.isSure === true ? ridsOfArm(arm, most + 1) : []))
  const doubtful: number[] = []
  let left = most - sure.length
  if (left < 0) return undefined
  const looked = arms.filter(({ isSure }) => isSure !== true)
  for (const alike of Map.groupBy(looked, ({ columns, rids }) => rids ?? columns).values()) {
    left -= yield* eachRow(alike, left + 1, (row) => {
      const verdict = refine(row)
      if (verdict === true) sure.push(row[0])
      else if (verdict === undefined) doubtful.push(row[0])
    })
    if (left < 0) return undefined
  }
  if (doubtful.length === 0) return { rids: ascending(sure), sure: noRids, armsExact: true }
  const known = new Set(sure)
  const rids = ascending([...sure, ...doubtful])
  return { rids, sure: known, armsExact: rids.length === known.size }
}

/** The rids in ascending order, without duplicates. */
function ascending(rids: readonly number[]): readonly number[] {
  const kept: number[] = []
  let last = -1
  for (const rid of new Float64Array(rids).sort()) {
    if (rid !== last) kept.push(rid)
    last = rid
  }
  return kept
}
