/** Settings and usual properties that an operator changed on the page; a table of the plugin's own file. */
import type { Json, PluginDatabase } from '#contract'
import { parsedJson } from '#ngsi-ld/values/json.ts'

/** Migration step of its table. */
export const editsTable = `CREATE TABLE edits (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;`

/** Edits of one kind. */
export interface Edits {
  all(): ReadonlyMap<string, Json>
  put(name: string, value: Json): void
  delete(name: string): void
}

export function createEdits(database: PluginDatabase, kind: 'property' | 'setting'): Edits {
  const all = database.prepare('SELECT name, value FROM edits WHERE kind = ? ORDER BY name').raw()
  const put = database.prepare('INSERT OR REPLACE INTO edits (kind, name, value) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM edits WHERE kind = ? AND name = ?')
  return Object.freeze({
    all: () =>
      new Map(
        (all.all(kind) as (readonly [string, string])[]).flatMap(([name, text]) => {
          const value = parsedJson(text)
          return value === undefined ? [] : [[name, value] as const]
        }),
      ),
    put: (name, value) => void put.run(kind, name, JSON.stringify(value)),
    delete: (name) => void remove.run(kind, name),
  } satisfies Edits)
}
