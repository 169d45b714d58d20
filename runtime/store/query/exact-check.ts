/**
 * A closer look at the rows of a condition: which rids it leaves, and of which of them the index alone is sure. Rows are
 * looked at up to a bound; beyond it nothing is said. Others may pass meanwhile: a polygon may have thousands of positions.
 */

import type { SeenCondition, Steps } from './query-plan.ts'
import type { Arm, ArmRow, Condition } from './sql-text.ts'

const noRids: ReadonlySet<number> = new Set()

/** The rids that a closer look leaves, ascending; exact when it left no doubt. Undefined beyond `most` rows. */
export function* lookAt(
  {
    eachRow,
    ridsOfArm,
  }: {
    readonly eachRow: (alike: readonly Arm[], most: number, take: (row: ArmRow) => void) => Steps<number>
    readonly ridsOfArm: (arm: Arm, most: number) => readonly number[]
  },
  { arms = [], look, armsExact: areExact }: Condition,
  most: number,
): Steps<Pick<SeenCondition, 'rids' | 'sure' | 'armsExact'> | undefined> {
  if (look === undefined) {
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
      const verdict = look(row)
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

/** The rids in order, each once. */
function ascending(rids: readonly number[]): readonly number[] {
  const kept: number[] = []
  let last = -1
  for (const rid of new Float64Array(rids).sort()) {
    if (rid !== last) kept.push(rid)
    last = rid
  }
  return kept
}
