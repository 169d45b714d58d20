/**
 * Settings of uplinks that are legal each and wrong together; and what they ask for in the language of NGSI-LD, which this
 * room does not know: the check of that comes as a port, and its findings become mistakes like all others.
 */
import { type Keys, type Mistake, mistakeAt } from '#config/schema/mistakes.ts'
import type { Settings, UplinkSettings } from '#config/schema/settings-schema.ts'

/** Tells every mistake in what an uplink asks for, by the name of the setting. */
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
    if (ids.has(one.id)) note('id', 'a name that no other uplink has')
    ids.add(one.id)
    if (one.ids.length > 0 && one.idPattern !== undefined)
      note('idPattern', 'no idPattern, since there are ids')
    if (one.passwordFile !== undefined && one.username === undefined)
      note('username', 'a user name, since there is a passwordFile')
    if (one.username !== undefined && one.passwordFile === undefined)
      note('passwordFile', 'a file with the password, since there is a username')
    if (one.tokenFile !== undefined && one.username !== undefined)
      note('tokenFile', 'either a tokenFile or a username')
    if (one.caFile !== undefined && one.url.startsWith('http:')) note('url', 'https, since there is a caFile')
    return found.map(({ name, expected }) => {
      const keys = ['uplinks', i, name]
      return mistakeAt(settings, keys, { expected, source: sourceOf(keys) })
    })
  })
}

/** What would send secrets where others can read them. */
export function uplinkWarnings({ uplinks }: Settings, isNear: (host: string) => boolean): string[] {
  return uplinks.flatMap(({ url, tokenFile, passwordFile }, i) => {
    const { protocol, hostname } = new URL(url)
    const isOpen = protocol === 'http:' && !isNear(hostname)
    return isOpen && (tokenFile ?? passwordFile) !== undefined
      ? [`uplinks[${i}] sends its credentials unencrypted; use https`]
      : []
  })
}
