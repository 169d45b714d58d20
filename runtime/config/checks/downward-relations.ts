/**
 * Rules between the settings of registrations, tunnels and copies: unique names, members that a mode
 * requires, and required addresses.
 */
import type { Keys } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

interface Found {
  readonly keys: Keys
  readonly expected: string
}

export function downwardMistakes(settings: Settings): Found[] {
  return [...registerMistakes(settings), ...tunnelMistakes(settings), ...copyMistakes(settings)]
}

function registerMistakes({ register, tunnels, http }: Settings): Found[] {
  const names = new Set<string>()
  return register.flatMap((one, i): Found[] => {
    const found: Found[] = []
    const note = (member: string, expected: string): void => {
      found.push({ keys: ['register', i, member], expected })
    }
    const name = `${one.url} ${one.tenant ?? ''} ${one.name}`
    if (names.has(name)) note('name', 'a name that is unique for this centre')
    names.add(name)
    const attributeCount = one.properties.length + one.relationships.length
    if (one.mode === 'exclusive' && one.ids.length === 0) note('ids', 'ids, because the mode is exclusive')
    if (one.mode === 'exclusive' && attributeCount === 0)
      note('properties', 'properties or relationships, because the mode is exclusive')
    if (one.ids.length > 0 && one.idPattern !== undefined) note('idPattern', 'either ids or idPattern')
    if (one.tunnel && one.endpoint !== undefined) note('endpoint', 'either endpoint or tunnel')
    if (one.tunnel && !tunnels.some(({ url }) => url === one.url))
      note('tunnel', 'an entry of tunnels with the same url')
    if (!one.tunnel && one.endpoint === undefined && http.publicUrl === undefined)
      note('endpoint', 'an address, unless http.publicUrl is set')
    if (one.refreshSeconds !== undefined && one.refreshSeconds >= one.expirySeconds)
      note('refreshSeconds', `fewer than expirySeconds, ${one.expirySeconds}`)
    return found
  })
}

function tunnelMistakes({ tunnels }: Settings): Found[] {
  return tunnels.flatMap(({ url }, i): Found[] =>
    tunnels.findIndex((other) => other.url === url) === i
      ? []
      : [{ keys: ['tunnels', i, 'url'], expected: 'a centre without another entry' }],
  )
}

function copyMistakes({ copies }: Settings): Found[] {
  return copies.flatMap(({ name, ids, idPattern }, i): Found[] => [
    ...(copies.findIndex((other) => other.name === name) === i
      ? []
      : [{ keys: ['copies', i, 'name'], expected: 'a unique name' }]),
    ...(ids.length > 0 && idPattern !== undefined
      ? [{ keys: ['copies', i, 'idPattern'], expected: 'either ids or idPattern' }]
      : []),
  ])
}

/** Warns of tokens that are sent unencrypted to another machine. */
export function downwardWarnings(
  { register, tunnels, copies }: Settings,
  isLoopback: (host: string) => boolean,
): string[] {
  const entries = Object.entries({ register, tunnels, copies })
  return entries.flatMap(([list, all]) =>
    all.flatMap(({ url, tokenFile }, i) => {
      const { protocol, hostname } = new URL(url)
      if (tokenFile === undefined || protocol === 'https:' || isLoopback(hostname)) return []
      return [`${list}[${i}] sends its token unencrypted; use https`]
    }),
  )
}
