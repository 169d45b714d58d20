/**
 * Entities of a remote broker that describe streams, as they were last received. They are on disk, so that a
 * restart knows them at once and memory holds only those that are not saved yet.
 */
import type { PluginDatabase } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { prepareEntityStatements } from './broker-statements.ts'

export interface RemoteEntities {
  get(id: string): Entity | undefined
  put(entity: Entity): void
  delete(id: string): void
  readonly ids: () => readonly string[]
  /** Writes what changed; to be called in a transaction. */
  write(): void
  /** Called when that transaction has ended. */
  written(): void
}

export function createRemoteEntities(database: PluginDatabase): RemoteEntities {
  const sql = prepareEntityStatements(database)
  /** Texts that are not on disk yet; undefined if the entity was deleted. */
  const unsaved = new Map<string, string | undefined>()

  const textOf = (id: string): string | undefined =>
    unsaved.has(id) ? unsaved.get(id) : (sql.get.get(id) as string | undefined)

  return Object.freeze({
    get(id) {
      const text = textOf(id)
      return text === undefined ? undefined : (JSON.parse(text) as Entity)
    },
    put(entity) {
      const text = JSON.stringify(entity)
      if (textOf(entity.id) !== text) unsaved.set(entity.id, text)
    },
    delete: (id) => void unsaved.set(id, undefined),
    ids: () => sql.ids.all() as string[],
    write() {
      for (const [id, text] of unsaved)
        if (text === undefined) sql.remove.run(id)
        else sql.put.run(id, text)
    },
    written: () => unsaved.clear(),
  } satisfies RemoteEntities)
}
