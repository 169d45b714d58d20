/**
 * Opens the broker: the data folder, the writer thread, all tenants and the @contexts. Nothing is sent before
 * `connect`. The parts close in reverse order, after those that use them.
 */

import { limits } from '#base/limits/limits.ts'
import { collectGarbage } from '#base/process/garbage-collection.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { createContexts } from '#broker/contexts/context-resolver.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { openTenants } from '#broker/tenant/tenants.ts'
import { openDataFolder } from '#broker/upkeep/data-folder-upkeep.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { profiles } from '#ngsi-ld/values/profile.ts'
import { createWriter } from '#store/writer/writer.ts'
import type { FetchDocument } from './contexts/context-library.ts'

export interface BrokerParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Settings
  /** Absent if fetching @contexts is disabled. */
  readonly fetchDocument: FetchDocument | undefined
  /** Called when the writer thread failed, or when the next start can restore a database. */
  readonly onFault: (error: unknown) => void
}

/** @throws store.locked, store.newer, store.corrupt, store.failed */
export async function openBroker(parts: BrokerParts) {
  const { opened, settings, clock, log, metrics, onFault } = parts
  const { backups, room, repair } = openDataFolder({ opened, settings, clock, log, metrics })
  const writer = createWriter(onFault)
  opened.defer(() => writer.end())
  const tenants = await openTenants(
    { dataFolder: settings.data, repair, onRepairable: onFault, room, writer, clock, log, metrics },
    {
      lingerMs: settings.commit.lingerMs,
      synchronous: settings.commit.synchronous,
      writebackMs: limits.writebackMs.value,
      history: settings.history,
    },
  )
  opened.defer(() => tenants.close())
  opened.defer(collectGarbage(tenants))
  const contexts = createContexts(
    {
      records: tenants.main.records,
      door: tenants.main.door,
      hosted: (tenant, id) => tenants.broker.tenant(tenant)?.hosted.document(id),
      fetchDocument: parts.fetchDocument,
      clock,
      log,
    },
    profiles[settings.conformance.profile],
  )
  return Object.freeze({
    /** The default tenant, which receives all frames. */
    main: tenants.main,
    tenant: tenants.broker.tenant,
    tenantForCreate: tenants.broker.tenantForCreate,
    /** Undefined if a tenant is unknown, or if other brokers may have entities of it. */
    validity(name: string): ReturnType<TenantBroker['validity']> | undefined {
      const tenant = tenants.broker.tenant(name)
      return tenant?.registrations.isEmpty() === true ? tenant.validity() : undefined
    },
    names: () => tenants.all().map(({ name }) => name),
    connect: tenants.connect,
    snapshots: tenants.snapshots,
    contexts,
    backups,
    copyBack: writer.copyBack,
    /** Reasons why the default tenant cannot store frames now. */
    unreadiness(): readonly string[] {
      const { full, fails } = tenants.main.door.status()
      return [...(full ? ['the disk is full'] : []), ...(fails ? ['the disk fails'] : [])]
    },
    complaints: () => [tenants, backups, room].flatMap((part) => [...part.complaints()]),
  })
}

export type OpenBroker = Awaited<ReturnType<typeof openBroker>>
