/**
 * Opens the exchange with other brokers: the HTTP client and the tunnels that gateways open to this one, the
 * requests to context sources, and the subscriptions at them.
 */
import type { Instruments } from '#base/process/instruments.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import { trustedWith } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createPeer } from './peer.ts'
import { createSources } from './sources.ts'
import { createForwarding } from './subscription-forwarding.ts'
import { createTunnelNames, tunnelNamesFile } from './tunnel-names.ts'
import { createTunnels } from './tunnels.ts'

export interface FederationParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'data' | 'outbound'>
  readonly tenant: Broker['tenant']
  readonly contexts: Contexts
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
}

/** Default of splitEntities for requests without it. */
const splitDefaults = { completed: undefined, expected: true, never: false } as const

export function openFederation(parts: FederationParts) {
  const { opened, tenant, contexts, alias, clock, log, metrics } = parts
  const { data, outbound } = parts.settings
  const names = createTunnelNames(tunnelNamesFile(data), clock)
  const tunnels = createTunnels({ clock, log, metrics, names })
  const ca = trustedWith(outbound.caFile)
  const peer = createPeer({ allowsLoopback: outbound.allowLoopback, ca, tunnels })
  opened.defer(() => peer.close())
  const sources = createSources({ peer, clock, resolve: contexts.resolve })
  const splits = splitDefaults[outbound.splitEntities]
  const forwarding = createForwarding({ sources, contexts, tenant, alias, splits, clock, log })
  opened.defer(() => forwarding.close())
  return Object.freeze({ peer, tunnels, sources, forwarding, splits })
}

export type Federation = ReturnType<typeof openFederation>
