/**
 * Rules between the settings of what goes downward: names that collide, claims that a mode does not allow, and addresses
 * that are missing.
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
    if (names.has(name)) note('name', 'a name that no other entry for this centre has')
    names.add(name)
    const attributeCount = one.properties.length + one.relationships.length
    if (one.mode === 'exclusive' && one.ids.length === 0) note('ids', 'ids, since the mode is exclusive')
    if (one.mode === 'exclusive' && attributeCount === 0)
      note('properties', 'properties or relationships, since the mode is exclusive')
    if (one.ids.length > 0 && one.idPattern !== undefined)
      note('idPattern', 'no idPattern, since there are ids')
    if (one.tunnel && one.endpoint !== undefined) note('endpoint', 'no address, since there is a tunnel')
    if (one.tunnel && !tunnels.some(({ url }) => url === one.url))
      note('tunnel', 'an entry of tunnels with the same url')
    if (!one.tunnel && one.endpoint === undefined && http.publicUrl === undefined)
      note('endpoint', 'an address, since there is no http.publicUrl')
    if (one.refreshSeconds !== undefined && one.refreshSeconds >= one.expirySeconds)
      note('refreshSeconds', `fewer than expirySeconds, ${one.expirySeconds}`)
    return found
  })
}

function tunnelMistakes({ tunnels }: Settings): Found[] {
  return tunnels.flatMap(({ url }, i): Found[] =>
    tunnels.findIndex((other) => other.url === url) === i
      ? []
      : [{ keys: ['tunnels', i, 'url'], expected: 'a centre that no other entry names' }],
  )
}

function copyMistakes({ copies }: Settings): Found[] {
  return copies.flatMap(({ name, ids, idPattern }, i): Found[] => [
    ...(copies.findIndex((other) => other.name === name) === i
      ? []
      : [{ keys: ['copies', i, 'name'], expected: 'a name that no other entry has' }]),
    ...(ids.length > 0 && idPattern !== undefined
      ? [{ keys: ['copies', i, 'idPattern'], expected: 'no idPattern, since there are ids' }]
      : []),
  ])
}

/** Tokens that travel in the open; what is this machine is no way to listen at. */
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
