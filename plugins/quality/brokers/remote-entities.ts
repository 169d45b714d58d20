/**
 * Entities of a remote broker that describe streams, as they were last received. They are on disk, so that a
 * restart knows them at once and memory holds only those that are not saved yet.
 */
import type { PluginDatabase } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { SaveStep } from '#plugins/quality/streams/stream-statements.ts'
import { prepareEntityStatements } from './broker-statements.ts'

export interface RemoteEntities {
  get(id: string): Entity | undefined
  put(entity: Entity): void
  delete(id: string): void
  readonly ids: () => readonly string[]
  /** Steps that save what changed. */
  steps(): readonly SaveStep[]
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
    steps: () =>
      [...unsaved.keys()].map((id) => () => {
        const text = unsaved.get(id)
        if (text === undefined) sql.remove.run(id)
        else sql.put.run(id, text)
        return () => void unsaved.delete(id)
      }),
  } satisfies RemoteEntities)
}
