/**
 * Rules between the settings of uplinks, and a check of their NGSI-LD parts. This room does not import
 * NGSI-LD, so that check is a port; its findings become ordinary mistakes.
 */
import { type Keys, type Mistake, mistakeAt } from '#config/schema/mistakes.ts'
import type { Settings, UplinkSettings } from '#config/schema/settings-schema.ts'

/** Returns every mistake in the NGSI-LD parts of an uplink, by name of the setting. */
export type UplinkCheck = (
  one: UplinkSettings,
) => readonly { readonly name: string; readonly expected: string }[]

export function uplinkMistakes(
  settings: Settings,
  check: UplinkCheck,
  sourceOf: (keys: Keys) => string,
): Mistake[] {
  const ids = new Set<string>()
  return settings.uplinks.flatMap((one, i): Mistake[] => {
    const found: { name: string; expected: string }[] = [...check(one)]
    const note = (name: string, expected: string): void => void found.push({ name, expected })
    if (ids.has(one.id)) note('id', 'a unique name')
    ids.add(one.id)
    if (one.ids.length > 0 && one.idPattern !== undefined) note('idPattern', 'either ids or idPattern')
    if (one.passwordFile !== undefined && one.username === undefined)
      note('username', 'a user name, because passwordFile is set')
    if (one.username !== undefined && one.passwordFile === undefined)
      note('passwordFile', 'a file with the password, because username is set')
    if (one.tokenFile !== undefined && one.username !== undefined)
      note('tokenFile', 'either a tokenFile or a username')
    if (one.caFile !== undefined && one.url.startsWith('http:')) note('url', 'https, because caFile is set')
    return found.map(({ name, expected }) => {
      const keys = ['uplinks', i, name]
      return mistakeAt(settings, keys, { expected, source: sourceOf(keys) })
    })
  })
}

/** Warns of credentials that are sent unencrypted to another machine. */
export function uplinkWarnings({ uplinks }: Settings, isNear: (host: string) => boolean): string[] {
  return uplinks.flatMap(({ url, tokenFile, passwordFile }, i) => {
    const { protocol, hostname } = new URL(url)
    const isOpen = protocol === 'http:' && !isNear(hostname)
    return isOpen && (tokenFile ?? passwordFile) !== undefined
      ? [`uplinks[${i}] sends its credentials unencrypted; use https`]
      : []
  })
}
