/**
 * Which change records of the log are not in the histories of their entities yet: log numbers per entity, in the
 * order of first records. What they say stays in the log.
 */
import type { Stage } from './stage.ts'

export function createUnfolded() {
  const byEntity = new Map<number, number[]>()
  let count = 0

  function remember(rid: number, number: number): void {
    const numbers = byEntity.get(rid)
    if (numbers === undefined) byEntity.set(rid, [number])
    else numbers.push(number)
    count++
  }

  return Object.freeze({
    /** A change record is logged: remembered, once on disk, until it is folded. */
    recorded(stage: Stage, rid: number, number: number): void {
      stage.published(() => remember(rid, number))
    },
    remember,
    unfolded: (rid: number): readonly number[] => byEntity.get(rid) ?? [],
    unfoldedEntities: () => byEntity as ReadonlyMap<number, readonly number[]>,
    unfoldedCount: () => count,
    /** The first `folded` records of an entity are folded. It goes to the end, because what is left of it is young. */
    forget(rid: number, folded: number): void {
      const numbers = byEntity.get(rid)
      if (numbers === undefined) return
      count -= numbers.splice(0, folded).length
      byEntity.delete(rid)
      if (numbers.length > 0) byEntity.set(rid, numbers)
    },
  })
}
