/**
 * The change records of the log that are not yet folded into histories: log numbers per entity, in order of
 * first records, and their approximate size. The contents stay in the log.
 */
import type { Recorded, Stage } from '#broker/commit/stage.ts'

/** Records of one entity, oldest first. */
export interface Unfolded {
  readonly numbers: readonly number[]
  readonly bytes: number
}

export function createUnfolded() {
  const byEntity = new Map<number, { numbers: number[]; bytes: number }>()
  let count = 0

  function remember(rid: number, { number, bytes }: Recorded): void {
    const known = byEntity.get(rid)
    if (known === undefined) byEntity.set(rid, { numbers: [number], bytes })
    else {
      known.numbers.push(number)
      known.bytes += bytes
    }
    count++
  }

  return Object.freeze({
    /** Logs a change record and returns its number. Once on disk, it is remembered until it is folded. */
    record(stage: Stage, rid: number, body: object): number {
      const logged = stage.record(rid, { at: stage.at, instances: [], ...body })
      stage.published(() => remember(rid, logged))
      return logged.number
    },
    remember,
    unfolded: (rid: number): readonly number[] => byEntity.get(rid)?.numbers ?? [],
    unfoldedEntities: () => byEntity as ReadonlyMap<number, Unfolded>,
    unfoldedCount: () => count,
    /**
     * Removes the first records of an entity, which are folded. The entity moves to the end, since its
     * remaining records are recent.
     */
    forget(rid: number, folded: number): void {
      const known = byEntity.get(rid)
      if (known === undefined) return
      const { numbers, bytes } = known
      const share = folded / numbers.length
      count -= numbers.splice(0, folded).length
      byEntity.delete(rid)
      if (numbers.length > 0) byEntity.set(rid, { numbers, bytes: bytes * (1 - share) })
    },
  })
}
