/**
 * Rules between the settings of plugins and those of others, each legal alone. A port that is taken is a warning: the plugin is
 * reached under the main port, too, and its default must not stand in the way of a gateway.
 */
import type { Keys } from './mistakes.ts'
import { pluginNames } from './plugin-schema.ts'
import type { ListenPort, Settings } from './schema.ts'

type Found = { readonly keys: Keys; readonly expected: string }

export function pluginWarnings(settings: Settings): string[] {
  const { http, mqtt } = settings
  const taken = new Map<ListenPort, string>([
    [http.port, 'http'],
    [mqtt.port, 'mqtt'],
  ])
  return pluginNames.flatMap((name) => {
    const { enabled, port } = settings[name]
    if (!enabled || port === 0 || port === 'off') return []
    const other = taken.get(port)
    if (other === undefined) taken.set(port, name)
    return other === undefined ? [] : [`${name}.port is also ${other}.port: ${name} has no port of its own`]
  })
}

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
