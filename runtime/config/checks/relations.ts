/**
 * Rules between settings: unique ports, valid ranges, complete credentials. A mistake is certainly wrong; a
 * warning is for valid settings that are probably not intended.
 */
import { isLoopback } from '#base/load/loopback.ts'
import { type Keys, type Mistake, mistakeAt } from '#config/schema/mistakes.ts'
import { pluginNames } from '#config/schema/plugin-schema.ts'
import type { ListenPort, Settings } from '#config/schema/settings-schema.ts'
import { downwardMistakes, downwardWarnings } from './downward-relations.ts'
import { pluginMistakes } from './plugin-relations.ts'
import { uplinkWarnings } from './uplink-mistakes.ts'

type Found = { readonly keys: Keys; readonly expected: string }

interface Loading {
  readonly sourceOf: (keys: Keys) => string
  /** Sections with invalid values, in which defaults replaced those values. */
  readonly wrongSections: ReadonlySet<string>
}

export function relationMistakes(settings: Settings, { sourceOf, wrongSections }: Loading): Mistake[] {
  const arePortsSound = !['http', 'mqtt', ...pluginNames].some((name) => wrongSections.has(name))
  const ports = arePortsSound ? portMistakes(settings) : []
  const found = [
    ...ports,
    ...deviceMistakes(settings),
    ...brokerMistakes(settings),
    ...historyMistakes(settings),
    ...downwardMistakes(settings),
    ...pluginMistakes(settings),
    ...assignmentMistakes(settings),
  ]
  return found.map(({ keys, expected }) => mistakeAt(settings, keys, { expected, source: sourceOf(keys) }))
}

function assignmentMistakes({ models }: Settings): Found[] {
  return models.assign.flatMap(({ property, stream, q }, i) =>
    [property, stream, q].filter((one) => one !== undefined).length > 1
      ? [{ keys: ['models', 'assign', i], expected: 'at most one of property, stream and q' }]
      : [],
  )
}

export function relationWarnings(settings: Settings): string[] {
  const { http, mqtt, bridgeIn, provisioning, quality } = settings
  const warnings: string[] = []
  if (http.port === 'off' && mqtt.port === 'off' && bridgeIn.length === 0) {
    warnings.push('http.port and mqtt.port are off and bridgeIn is empty: no data can arrive')
  }
  const { mode, allow, devices } = provisioning
  if (mode === 'allow-list' && allow.length === 0 && Object.keys(devices).length === 0) {
    warnings.push(
      'provisioning.mode is allow-list and no device is allowed or declared: no device will be accepted',
    )
  }
  const brokers = [
    ...bridgeIn.map((broker, i) => ({ ...broker, name: `bridgeIn[${i}]` })),
    ...quality.sources.hosts.map((broker, i) => ({ ...broker, name: `quality.sources.hosts[${i}]` })),
  ]
  for (const { url, passwordFile, name } of brokers) {
    const { protocol, hostname } = new URL(url)
    const isPlain = protocol === 'mqtt:' || protocol === 'amqp:'
    if (isPlain && passwordFile !== undefined && !isLoopback(hostname))
      warnings.push(`${name} sends its password unencrypted; use ${protocol.slice(0, 4)}s`)
  }
  return [...warnings, ...downwardWarnings(settings, isLoopback), ...uplinkWarnings(settings, isLoopback)]
}

/**
 * Listeners must have different ports; of two equal ones, the mistake is reported for the later in this
 * order.
 */
function portMistakes(settings: Settings): Found[] {
  const owners = new Map<ListenPort, string>()
  const listeners = ['http', 'mqtt', ...pluginNames.filter((name) => settings[name].enabled)] as const
  return listeners.flatMap((name): Found[] => {
    const { port } = settings[name]
    if (port === 0 || port === 'off') return []
    const owner = owners.get(port)
    if (owner !== undefined)
      return [{ keys: [name, 'port'], expected: `a port that ${owner}.port does not use` }]
    owners.set(port, name)
    return []
  })
}

function deviceMistakes({ provisioning }: Settings): Found[] {
  const ignored = new Set(provisioning.ignore)
  const both = provisioning.allow.flatMap((id, i): Found[] => {
    if (!ignored.has(id)) return []
    return [{ keys: ['provisioning', 'allow', i], expected: 'a device that is not in provisioning.ignore' }]
  })
  const ranges = Object.entries(provisioning.devices).flatMap(([id, { fields }]) =>
    Object.entries(fields).flatMap(([name, { min, max }]): Found[] => {
      if (min === undefined || max === undefined || min <= max) return []
      const keys = ['provisioning', 'devices', id, 'fields', name, 'max']
      return [{ keys, expected: `a number of at least min, ${min}` }]
    }),
  )
  return [...both, ...ranges]
}

function historyMistakes({ history: { maxAgeDays, rollUpDays } }: Settings): Found[] {
  if (rollUpDays === undefined || (maxAgeDays !== undefined && maxAgeDays < rollUpDays)) return []
  return [
    { keys: ['history', 'rollUpDays'], expected: 'more days than history.maxAgeDays, which must be set' },
  ]
}

function brokerMistakes({ bridgeIn }: Settings): Found[] {
  const sessions = new Set<string>()
  return bridgeIn.flatMap(({ url, clientId, username, passwordFile, caFile }, i): Found[] => {
    const found: Found[] = []
    const note = (name: string, expected: string): void => {
      found.push({ keys: ['bridgeIn', i, name], expected })
    }
    if (passwordFile !== undefined && username === undefined)
      note('username', 'a user name, because passwordFile is set')
    if (caFile !== undefined && url.startsWith('mqtt:')) note('url', 'mqtts, because caFile is set')
    const session = `${new URL(url).host} ${clientId ?? i}`
    if (sessions.has(session)) note('clientId', 'a client identifier that no other entry uses')
    sessions.add(session)
    return found
  })
}
