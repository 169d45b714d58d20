/** Exchanges and queues that are to be deleted at the AMQP server, on disk until that is done. */
import type { PluginDatabase } from '#contract'
import type { AmqpName } from './topology.ts'

/** Part of the first migration step. */
export const leftoverTable = 'CREATE TABLE leftovers (name TEXT PRIMARY KEY) WITHOUT ROWID;'

export type LeftoverNames = ReturnType<typeof createLeftoverNames>

export function createLeftoverNames(database: PluginDatabase) {
  const put = database.prepare('INSERT OR IGNORE INTO leftovers VALUES (?)')
  const remove = database.prepare('DELETE FROM leftovers WHERE name = ?')
  const first = database.prepare('SELECT name FROM leftovers WHERE name > ? ORDER BY name LIMIT 1').pluck()
  return Object.freeze({
    add: (name: AmqpName) => put.run(JSON.stringify(name)),
    remove: (name: AmqpName) => remove.run(JSON.stringify(name)),
    /** The next name after another one. */
    after(name: AmqpName | undefined): AmqpName | undefined {
      const found = first.get(name === undefined ? '' : JSON.stringify(name)) as string | undefined
      return found === undefined ? undefined : (JSON.parse(found) as AmqpName)
    },
  })
}
