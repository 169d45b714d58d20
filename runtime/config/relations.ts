/**
 * Rules between settings, each legal alone: ports that collide, ranges the wrong way round, credentials that lack
 * their half. A mistake is certain; a warning is for what hardly anybody wants.
 */
import { isLoopbackHost } from './access.ts'
import { type Keys, type Mistake, pathText, shown } from './mistakes.ts'
import type { Settings } from './schema.ts'

type Found = { readonly keys: Keys; readonly value: unknown; readonly expected: string }

export function relationMistakes(settings: Settings, sourceOf: (keys: Keys) => string): Mistake[] {
  return [...portMistakes(settings), ...deviceMistakes(settings), ...bridgeMistakes(settings)].map(
    ({ keys, value, expected }) => ({
      path: pathText(keys),
      value: shown(value, keys),
      expected,
      source: sourceOf(keys),
    }),
  )
}

export function relationWarnings({ http, mqtt, bridgeIn, provisioning }: Settings): string[] {
  const warnings: string[] = []
  if (http.port === 'off' && mqtt.port === 'off' && bridgeIn.length === 0) {
    warnings.push('http.port and mqtt.port are off and bridgeIn is empty: nothing can come in')
  }
  if (provisioning.mode === 'allow-list' && provisioning.allow.length === 0) {
    warnings.push('provisioning.mode is allow-list and provisioning.allow is empty: no device will be taken')
  }
  bridgeIn.forEach(({ url, passwordFile }, i) => {
    const { protocol, hostname } = new URL(url)
    if (protocol === 'mqtt:' && passwordFile !== undefined && !isLoopbackHost(hostname)) {
      warnings.push(`bridgeIn[${i}] sends its password unencrypted; use mqtts`)
    }
  })
  return warnings
}

function portMistakes({ http, mqtt }: Settings): Found[] {
  if (http.port !== mqtt.port || http.port === 0 || http.port === 'off') return []
  return [{ keys: ['mqtt', 'port'], value: mqtt.port, expected: 'a port that http.port does not use' }]
}

function deviceMistakes({ provisioning }: Settings): Found[] {
  const ignored = new Set(provisioning.ignore)
  const both = provisioning.allow.flatMap((id, i): Found[] =>
    ignored.has(id)
      ? [
          {
            keys: ['provisioning', 'allow', i],
            value: id,
            expected: 'a device that is not in provisioning.ignore',
          },
        ]
      : [],
  )
  const ranges = Object.entries(provisioning.devices).flatMap(([id, { fields }]) =>
    Object.entries(fields).flatMap(([name, { min, max }]): Found[] => {
      if (min === undefined || max === undefined || min <= max) return []
      const keys = ['provisioning', 'devices', id, 'fields', name, 'max']
      return [{ keys, value: max, expected: `a number not below min, ${min}` }]
    }),
  )
  return [...both, ...ranges]
}

function bridgeMistakes({ bridgeIn }: Settings): Found[] {
  const sessions = new Set<string>()
  return bridgeIn.flatMap((one, i): Found[] => {
    const at = (name: string, value: unknown, expected: string): Found => ({
      keys: ['bridgeIn', i, name],
      value,
      expected,
    })
    const found: Found[] = []
    if (one.passwordFile !== undefined && one.username === undefined) {
      found.push(at('username', undefined, 'a user name, since there is a passwordFile'))
    }
    if (one.caFile !== undefined && one.url.startsWith('mqtt:')) {
      found.push(at('url', one.url, 'mqtts, since there is a caFile'))
    }
    const session = `${new URL(one.url).host} ${one.clientId ?? i}`
    if (sessions.has(session))
      found.push(at('clientId', one.clientId, 'a client identifier that no other entry uses'))
    sessions.add(session)
    return found
  })
}
