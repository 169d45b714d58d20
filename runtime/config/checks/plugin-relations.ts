/**
 * Rules between the settings of plugins.
 */
import type { Keys } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

type Found = { readonly keys: Keys; readonly expected: string }

/** The backend of an enabled plugin must be enabled; usual properties and sources must be sound. */
export function pluginMistakes({ indexing, quality, ranking, search }: Settings): Found[] {
  const isOff = (name: string): boolean =>
    (name === 'indexing' && !indexing.enabled) || (name === 'ranking' && !ranking.enabled)
  const clients = [['ranking', ranking] as const, ['search', search] as const]
  const backends = clients.flatMap(([name, { enabled, backend }]) =>
    enabled && isOff(backend)
      ? [{ keys: [name, 'backend'], expected: `mdr or an address, because ${backend}.enabled is false` }]
      : [],
  )
  return [...backends, ...usualMistakes(quality), ...sourceMistakes(quality)]
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

function sourceMistakes({ sources }: Settings['quality']): Found[] {
  const seen = new Set<string>()
  return sources.hosts.flatMap(({ url, username, passwordFile, tokenFile, caFile }, i): Found[] => {
    const found: Found[] = []
    const note = (name: string, expected: string): void => {
      found.push({ keys: ['quality', 'sources', 'hosts', i, name], expected })
    }
    const isHttp = url.startsWith('http')
    if (isHttp && username !== undefined) note('username', 'none, because an NGSI-LD broker gets a token')
    if (!isHttp && tokenFile !== undefined) note('tokenFile', 'none, because the broker gets a password')
    if (passwordFile !== undefined && username === undefined)
      note('username', 'a user name, because passwordFile is set')
    if (caFile !== undefined && !/^(?:mqtt|amqp|http)s:/.test(url))
      note('url', 'mqtts, amqps or https, because caFile is set')
    if (seen.has(url)) note('url', 'an address that no other entry has')
    seen.add(url)
    return found
  })
}
