/**
 * Rules between the settings of plugins.
 */
import type { Keys } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

type Found = { readonly keys: Keys; readonly expected: string }

/** The backend of an enabled plugin must be enabled, and usual properties must be sound. */
export function pluginMistakes({ indexing, ranking, search, quality }: Settings): Found[] {
  const isOff = (name: string): boolean =>
    (name === 'indexing' && !indexing.enabled) || (name === 'ranking' && !ranking.enabled)
  const clients = [['ranking', ranking] as const, ['search', search] as const]
  return [
    ...usualMistakes(quality),
    ...clients.flatMap(([name, { enabled, backend }]) =>
      enabled && isOff(backend)
        ? [{ keys: [name, 'backend'], expected: `mdr or an address, because ${backend}.enabled is false` }]
        : [],
    ),
  ]
}

/** A usual property is a range of numbers, or a pattern of text. */
function usualMistakes({ usualProperties }: Settings['quality']): Found[] {
  return Object.entries(usualProperties).flatMap(([label, { min, max, regexp }]): Found[] => {
    const at = (name: string): Found['keys'] => ['quality', 'usualProperties', label, name]
    if (min !== undefined && max !== undefined && min > max)
      return [{ keys: at('max'), expected: `a number of at least min, ${min}` }]
    if (regexp !== undefined && (min ?? max) !== undefined)
      return [{ keys: at('regexp'), expected: 'either regexp, or min and max' }]
    return []
  })
}
