/**
 * Rules between the settings of plugins.
 */
import type { Keys } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

type Found = { readonly keys: Keys; readonly expected: string }

/** The backend of an enabled plugin must be enabled. */
export function pluginMistakes({ indexing, ranking, search }: Settings): Found[] {
  const isOff = (name: string): boolean =>
    (name === 'indexing' && !indexing.enabled) || (name === 'ranking' && !ranking.enabled)
  const clients = [['ranking', ranking] as const, ['search', search] as const]
  return clients.flatMap(([name, { enabled, backend }]) =>
    enabled && isOff(backend)
      ? [{ keys: [name, 'backend'], expected: `mdr or an address, because ${backend}.enabled is false` }]
      : [],
  )
}
