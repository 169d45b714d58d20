/**
 * Assigns numbers to names and ids. A name keeps its number. An id keeps it while an entity or a relationship
 * has that id.
 */
import { limits } from '#base/limits/limits.ts'
import type { Statements } from './statements.ts'

export type Naming = ReturnType<typeof createNaming>

export function createNaming(sql: Statements) {
  const names = new Map<string, number>()

  const knownName = (text: string): number | undefined => {
    const kept = names.get(text)
    if (kept !== undefined) return kept
    const found = sql.name.get(text) as number | undefined
    if (found === undefined) return undefined
    if (names.size >= limits.indexNamesKept.value) names.clear()
    names.set(text, found)
    return found
  }
  const known = (id: string): number | undefined => sql.node.get(id) as number | undefined

  return Object.freeze({
    knownName,
    name: (text: string): number => knownName(text) ?? Number(sql.addName.run(text).lastInsertRowid),
    known,
    node: (id: string): number => known(id) ?? Number(sql.addNode.run(id).lastInsertRowid),
    /** Frees the number of an id that is no longer used. */
    release: (n: number): void => void sql.dropNode.run(n),
    /** Clears the cache: after a rollback its numbers may not be on disk. */
    forget: (): void => names.clear(),
  })
}
