/**
 * Values by id in memory, as two see them: readers see what is on disk, a deciding work also what earlier works of
 * its group staged. What is staged becomes what is on disk when the group is published, and is gone when it is undone.
 */
import type { Stage } from './stage.ts'

export interface Staged<T> {
  /** What is on disk, in order of coming. */
  readonly stored: ReadonlyMap<string, T>
  /** Takes what was read at start. */
  load(id: string, value: T): void
  find(stage: Stage, id: string): T | undefined
  /** All values as a deciding work sees them. */
  all(stage: Stage): ReadonlyMap<string, T>
  /** Stages a value, or that there is none any more; `then` runs when that is on disk. */
  put(stage: Stage, id: string, value: T | undefined, then?: () => void): void
}

/** `kind` tells these values from others of the same group. */
export function createStaged<T>(kind: string): Staged<T> {
  const stored = new Map<string, T>()
  const key = `staged ${kind}`
  const changesOf = (stage: Stage): Map<string, T | undefined> | undefined =>
    stage.scratch.get(key) as Map<string, T | undefined> | undefined

  return Object.freeze({
    stored,
    load: (id, value) => void stored.set(id, value),
    find(stage, id) {
      const changes = changesOf(stage)
      return changes?.has(id) === true ? changes.get(id) : stored.get(id)
    },
    all(stage) {
      const changes = changesOf(stage)
      if (changes === undefined) return stored
      const all = new Map(stored)
      for (const [id, value] of changes) {
        if (value === undefined) all.delete(id)
        else all.set(id, value)
      }
      return all
    },
    put(stage, id, value, then) {
      const changes = changesOf(stage) ?? new Map<string, T | undefined>()
      stage.scratch.set(key, changes.set(id, value))
      stage.published(() => {
        if (value === undefined) stored.delete(id)
        else stored.set(id, value)
        then?.()
      })
    },
  } satisfies Staged<T>)
}
