/**
 * Opens the uplinks of every tenant: those that clients created as subscriptions, and those of the settings.
 */
import type { Instruments } from '#base/process/instruments.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { TenantParts } from '#broker/tenant/tenant-connections.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Peer } from '#federation/peer.ts'
import type { UplinkOperations } from '#http/operator/uplink-routes.ts'
import { isUplink } from '#ngsi-ld/subscription/subscription.ts'
import { openDeclared } from './live/declared-uplinks.ts'
import { createUplinks, type Uplinks } from './live/uplinks.ts'

export interface UplinksParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'uplinks' | 'outbound'>
  readonly contexts: Contexts
  readonly peer: Peer
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
}

export function openUplinks(parts: UplinksParts) {
  const { opened, settings, contexts, peer, alias, clock, log, metrics } = parts
  const declaredIn = openDeclared({ opened, settings, contexts, log })
  const byTenant = new Map<string, Uplinks>()
  return Object.freeze({
    /** Starts the uplinks of a tenant. */
    open(tenant: TenantParts): Uplinks {
      const declared = declaredIn(tenant.name)
      const ofClients = () => [...tenant.matcher.all()].filter(({ subscription }) => isUplink(subscription))
      const uplinks = createUplinks({
        tenant,
        subscriptions: () => [...declared.ready(), ...ofClients()],
        declared: declared.ids,
        peer,
        alias,
        clock,
        log,
        metrics,
      })
      byTenant.set(tenant.name, uplinks)
      return uplinks
    },
    operations: (tenant: string): UplinkOperations | undefined => byTenant.get(tenant)?.operations,
    complaints: () => [...byTenant.values()].flatMap(({ operations }) => [...operations.complaints()]),
  })
}
