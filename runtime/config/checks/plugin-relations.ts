/**
 * Rules between the settings of plugins, each legal alone.
 */
import type { Keys } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

type Found = { readonly keys: Keys; readonly expected: string }

/** A component that another one asks has to run. */
export function pluginMistakes({ indexing, ranking, search }: Settings): Found[] {
  const isOff = (name: string): boolean =>
    (name === 'indexing' && !indexing.enabled) || (name === 'ranking' && !ranking.enabled)
  const asking = [['ranking', ranking] as const, ['search', search] as const]
  return asking.flatMap(([name, { enabled, backend }]) =>
    enabled && isOff(backend)
      ? [{ keys: [name, 'backend'], expected: `mdr or an address, since ${backend}.enabled is false` }]
      : [],
  )
}
