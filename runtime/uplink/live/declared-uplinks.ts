/**
 * Turns the uplinks of the settings into subscriptions. Each becomes the body a client would send and is
 * parsed by the same code, so that names and queries mean the same. Credentials are read from their files at
 * start, and clients cannot see these subscriptions.
 */

import { limits } from '#base/limits/limits.ts'
import { isGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { requireSecretFile, trustedWith } from '#config/load/secret-files.ts'
import type { Settings, UplinkSettings } from '#config/schema/settings-schema.ts'
import { createPeer, type Peer } from '#federation/peer.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { parseSubscription } from '#ngsi-ld/subscription/subscription-parse.ts'
import type { UplinkSubscription } from './uplink.ts'

type Naming = Pick<Context, 'expand' | 'reference'>

/** The selecting settings of an uplink, each as a part of a subscription body. */
const selecting: {
  readonly [name in keyof UplinkSettings]?: (one: UplinkSettings) => { readonly [member: string]: unknown }
} = {
  types: (one) => entitiesOf({ ...one, ids: [], idPattern: undefined }),
  ids: ({ ids }) => (ids.length === 0 ? {} : { entities: ids.map((id) => ({ id, type: '*' })) }),
  idPattern: ({ idPattern }) => (idPattern === undefined ? {} : { entities: [{ idPattern, type: '*' }] }),
  q: ({ q }) => (q === undefined ? {} : { q }),
  geoQ: ({ geoQ }) => (geoQ === undefined ? {} : { geoQ }),
  scopeQ: ({ scopeQ }) => (scopeQ === undefined ? {} : { scopeQ }),
  watchedAttributes: ({ watchedAttributes: names }) =>
    names.length === 0 ? {} : { watchedAttributes: names },
  attributes: ({ attributes }) => (attributes.length === 0 ? {} : { attributes }),
}

function entitiesOf({ types, ids, idPattern }: Pick<UplinkSettings, 'types' | 'ids' | 'idPattern'>) {
  if (types.length === 0 && ids.length === 0 && idPattern === undefined) return {}
  const which = ids.length > 0 ? { id: ids } : idPattern === undefined ? {} : { idPattern }
  return { entities: (types.length === 0 ? ['*'] : types).map((type) => ({ type, ...which })) }
}

/** Every mistake in the settings of an uplink. Names are not expanded. */
export function uplinkCheck(one: UplinkSettings): { name: string; expected: string }[] {
  const naming = { expand: (name: string) => name, reference: [] }
  return Object.entries(selecting).flatMap(([name, partOf]) => {
    try {
      parse(one, partOf(one), { naming, headers: {} })
      return []
    } catch (error) {
      if (!isGatewayError(error)) throw error
      return [{ name, expected: `a valid subscription member: ${error.message}` }]
    }
  })
}

/**
 * The subscription of an uplink.
 * @throws config.invalid when a credentials file cannot be used.
 */
export function declare(one: UplinkSettings, naming: Naming): Subscription {
  const parts = Object.entries(selecting).map(([, partOf]) => partOf(one))
  const whole = Object.assign({}, ...parts, entitiesOf(one)) as { readonly [member: string]: unknown }
  return parse(one, whole, { naming, headers: headersOf(one) })
}

function parse(
  one: UplinkSettings,
  { attributes, ...members }: { readonly [member: string]: unknown },
  { naming, headers }: { naming: Naming; headers: Readonly<Record<string, string>> },
): Subscription {
  const body = {
    type: 'Subscription',
    // Sends only local data; a local subscription may omit both entities and attributes.
    localOnly: true,
    ...members,
    ...(one.throttling === undefined ? {} : { throttling: one.throttling }),
    notification: {
      ...(attributes === undefined ? {} : { attributes }),
      endpoint: {
        uri: one.url,
        receiverInfo: Object.entries(headers).map(([key, value]) => ({ key, value })),
        notifierInfo: optionsOf(one).map(([key, value]) => ({ key: `selvedge:${key}`, value })),
      },
    },
  }
  return parseSubscription(body, { context: naming, nowMs: 0, newId: () => one.id })
}

function optionsOf(one: UplinkSettings): [key: string, value: string][] {
  const { rate, bytesPerSecond, bytesPerDay, windows, budget, isPaused, scope } = one
  const numbers = {
    rate,
    'bytes-per-second': bytesPerSecond,
    'bytes-per-day': bytesPerDay,
    'budget-bytes': budget.bytes,
    'budget-observations': budget.observations,
    'budget-hours': budget.hours,
    'thin-seconds': budget.thinSeconds,
  }
  return [
    ['mode', 'uplink'],
    ...Object.entries(numbers).flatMap(([key, value]): [string, string][] =>
      value === undefined ? [] : [[key, decimal(value)]],
    ),
    ...windows.map(({ cron, minutes }): [string, string] => ['window', `${cron} for ${minutes}`]),
    ...(scope === undefined ? [] : [['scope', scope] as [string, string]]),
    ...(isPaused ? [['paused', 'true'] as [string, string]] : []),
  ]
}

/** Decimal notation without an exponent. */
const decimal = (value: number): string =>
  value.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 })

function headersOf(one: UplinkSettings): Readonly<Record<string, string>> {
  const { tenant, tokenFile, username, passwordFile, headerFiles } = one
  const headers: Record<string, string> = {}
  if (tenant !== undefined) headers['NGSILD-Tenant'] = tenant
  if (tokenFile !== undefined) headers['Authorization'] = `Bearer ${requireSecretFile(tokenFile)}`
  if (username !== undefined && passwordFile !== undefined) {
    const pair = Buffer.from(`${username}:${requireSecretFile(passwordFile)}`).toString('base64')
    headers['Authorization'] = `Basic ${pair}`
  }
  for (const [name, file] of Object.entries(headerFiles)) headers[name] = requireSecretFile(file)
  return headers
}

/** Uplinks of the settings for one tenant. */
export interface Declared {
  readonly ids: ReadonlySet<string>
  /** Uplinks whose context is resolved; starts resolving the others. */
  ready(): readonly UplinkSubscription[]
}

/**
 * The uplinks of the settings by tenant, and the peers for brokers with their own certificate authorities.
 */
export function openDeclared(parts: {
  readonly contexts: Pick<Contexts, 'resolve'>
  readonly log: Log
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'uplinks' | 'outbound'>
}): (tenant: string) => Declared {
  const { opened, settings, contexts, log } = parts
  const { uplinks, outbound } = settings
  const peers = new Map<string, Peer>()
  const peerTrusting = (caFile: string): Peer => {
    const ca = trustedWith(caFile)
    const peer = peers.get(caFile) ?? createPeer({ allowsLoopback: outbound.allowLoopback, ca })
    peers.set(caFile, peer)
    return peer
  }
  opened.defer(() => {
    for (const peer of peers.values()) peer.close()
  })
  const declaredFor = (tenant: string): Declared => {
    const mine = uplinks.filter(({ sourceTenant = '' }) => sourceTenant === tenant)
    const found = new Map<string, UplinkSubscription>()
    const requested = new Set<string>()

    async function resolveContext(one: UplinkSettings): Promise<void> {
      try {
        const context = await contexts.resolve(one.context ?? [], tenant)
        const peer = one.caFile === undefined ? {} : { peer: peerTrusting(one.caFile) }
        found.set(one.id, { i: undefined, subscription: declare(one, context), ...peer })
      } catch (error) {
        log.warn('uplink.undeclared', { uplink: one.id, reason: (error as Error).message })
        // Only a missing context is retried; other errors persist until the settings change.
        if (isGatewayError(error, 'ngsi-ld.context-not-available'))
          setTimeout(() => requested.delete(one.id), limits.uplinkFaultMs.value).unref()
      }
    }

    return Object.freeze({
      ids: new Set(mine.map(({ id }) => id)),
      ready() {
        for (const one of mine) {
          if (requested.has(one.id)) continue
          requested.add(one.id)
          void resolveContext(one)
        }
        return [...found.values()]
      },
    } satisfies Declared)
  }
  return declaredFor
}
