/**
 * A database of a plugin in memory, with its tables, as the host would open it.
 */
import Database from 'better-sqlite3'
import type { PluginDatabase } from '#contract'

export interface TestPluginDatabase extends PluginDatabase {
  close(): void
}

/** @param path of a file; in memory when left out. */
export function createPluginDatabase(tables: readonly string[], path = ':memory:'): TestPluginDatabase {
  const open = new Database(path)
  open.pragma('journal_mode = WAL')
  open.pragma('synchronous = NORMAL')
  const begin = (): void => {
    const version = open.pragma('user_version', { simple: true }) as number
    for (const step of tables.slice(version)) open.exec(step)
    open.pragma(`user_version = ${tables.length}`)
  }
  begin()
  return {
    prepare: (sql) => open.prepare(sql) as unknown as ReturnType<PluginDatabase['prepare']>,
    transaction: (work) => open.transaction(work as never) as never,
    holdCommits: () => undefined,
    commit: () => undefined,
    rest: () => new Promise((resolve) => setImmediate(resolve)),
    flushed: async () => undefined,
    bytes: () => (open.pragma('page_count', { simple: true }) as number) * 4096,
    async reset(): Promise<void> {
      const names = open
        .prepare("SELECT type, name FROM sqlite_schema WHERE type IN ('table') AND sql LIKE 'CREATE%'")
        .all() as { name: string }[]
      for (const { name } of names)
        if (!name.startsWith('sqlite_')) open.exec(`DROP TABLE IF EXISTS "${name}"`)
      open.pragma('user_version = 0')
      begin()
    },
    close: () => open.close(),
  }
}
