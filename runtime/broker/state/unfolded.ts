/**
 * The change records of the log that are not yet folded into histories: log numbers per entity, in order of
 * first records. The contents stay in the log. Most entities have one record, which is stored without an
 * array.
 */
import type { Stage } from '#broker/commit/stage.ts'

export function createUnfolded() {
  const byEntity = new Map<number, number | readonly number[]>()
  let count = 0

  function remember(rid: number, number: number): void {
    const known = byEntity.get(rid)
    if (known === undefined) byEntity.set(rid, number)
    else if (typeof known === 'number') byEntity.set(rid, [known, number])
    else (known as number[]).push(number)
    count++
  }

  return Object.freeze({
    /** Logs a change record and returns its number. Once on disk, it is remembered until it is folded. */
    record(stage: Stage, rid: number, body: object): number {
      const number = stage.record(rid, { at: stage.at, instances: [], ...body })
      stage.published(() => remember(rid, number))
      return number
    },
    remember,
    unfolded: (rid: number): readonly number[] => numbersOf(byEntity.get(rid)),
    /** The entities that have such records. */
    unfoldedEntities: (): Iterable<number> => byEntity.keys(),
    /** The least log number of such a record; Infinity if there is none. */
    oldestUnfolded(): number {
      let oldest = Number.POSITIVE_INFINITY
      for (const numbers of byEntity.values())
        oldest = Math.min(oldest, typeof numbers === 'number' ? numbers : numbers[0]!)
      return oldest
    },
    unfoldedCount: () => count,
    /**
     * Removes the first records of an entity, which are folded. The entity moves to the end if its remaining
     * records are recent, later than `aged`.
     */
    forget(rid: number, folded: number, aged: number): void {
      const numbers = numbersOf(byEntity.get(rid))
      const left = numbers.slice(folded)
      count -= numbers.length - left.length
      const [first] = left
      if (first === undefined || first > aged) byEntity.delete(rid)
      if (first !== undefined) byEntity.set(rid, left.length > 1 ? left : first)
    },
  })
}

const none: readonly number[] = []

const numbersOf = (known: number | readonly number[] | undefined): readonly number[] =>
  known === undefined ? none : typeof known === 'number' ? [known] : known
