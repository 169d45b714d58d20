/**
 * Values by id in memory, in two views: readers see what is on disk, and a work being decided also sees what
 * earlier works of its group staged. Publishing the group makes staged values visible to readers; undoing it
 * discards them.
 */
import type { Stage } from './stage.ts'

export interface Staged<T> {
  /** The values on disk, in order of insertion. */
  readonly stored: ReadonlyMap<string, T>
  /** Adds a value that was read at start. */
  load(id: string, value: T): void
  find(stage: Stage, id: string): T | undefined
  /** All values as a work being decided sees them. */
  all(stage: Stage): ReadonlyMap<string, T>
  /** Stages a value, or its removal (undefined); `then` runs when that is on disk. */
  put(stage: Stage, id: string, value: T | undefined, then?: () => void): void
}

/** @param kind distinguishes these values from others of the same group. */
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
