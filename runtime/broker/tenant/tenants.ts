/**
 * The tenants of this gateway: one database file each, found at start or created by the first create request.
 * The default tenant has the empty name and always exists (GS CIM 009, 4.14). Tenants share only the writer
 * thread and the memory budget for cached documents. A tenant found damaged is closed; if a backup can repair
 * it, the process ends (code 70).
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { MetricName, Metrics } from '#base/register/metrics.ts'
import type { Repair } from '#broker/upkeep/repair.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { badRequestData, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Restored } from '#store/backup/restore.ts'
import { createRowBudget } from '#store/entities/recent-rows.ts'
import { openSnapshots } from './snapshot-files.ts'
import { openTenant, type Tenant, type TenantPorts, type TenantSettings } from './tenant.ts'
import type { Broker } from './tenant-broker.ts'
import type { Connections } from './tenant-connections.ts'

export interface TenantsPorts extends Omit<TenantPorts, 'name' | 'file' | 'onDamage' | 'rowBudget'> {
  readonly dataFolder: string
  readonly repair: Repair
  /** Called when a damaged database will be restored by the next start. */
  readonly onRepairable: (error: GatewayError) => void
}

const defaultFile = 'selvedge.db'
const folderName = 'tenants'
/** Characters allowed in NGSILD-Tenant, all valid in a file name. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

export async function openTenants(ports: TenantsPorts, settings: TenantSettings) {
  const tenants = new Map<string, Tenant>()
  const opening = new Map<string, Promise<Tenant>>()
  const folder = join(ports.dataFolder, folderName)
  /** Tenants that stay closed, with the error. */
  const refused = new Map<string, GatewayError>()
  const damaged = new Map<string, GatewayError>()
  const rowBudget = createRowBudget()
  let connections: Connections | undefined

  async function open(name: string): Promise<Tenant> {
    if (name !== '') mkdirSync(folder, { recursive: true, mode: 0o700 })
    const file = name === '' ? join(ports.dataFolder, defaultFile) : join(folder, `${name}.db`)
    ports.repair.mend(name, file)
    const tenant = await openTenant({ ...ports, rowBudget, name, file, onDamage }, settings)
    tenants.set(name, tenant)
    if (connections !== undefined) tenant.connect(connections)
    return tenant
  }

  /** A tenant that cannot be opened stays closed; the other tenants are served. */
  async function openOrRefuse(name: string): Promise<void> {
    try {
      await open(name)
    } catch (error) {
      const why = toGatewayError(error)
      refused.set(name, why)
      ports.log.error('store.refused', { tenant: name, code: why.code, error: why.message })
    }
  }

  function onDamage(name: string, file: string, error: GatewayError): void {
    if (damaged.has(name)) return
    damaged.set(name, error)
    ports.log.error('store.damaged', { tenant: name, file, error: error.message })
    if (ports.repair.suspect(name, file)) ports.onRepairable(error)
  }

  async function openOnce(name: string): Promise<Tenant> {
    const known = opening.get(name)
    if (known !== undefined) return known
    if (tenants.size + opening.size >= limits.tenantsMax.value) {
      throw tooManyResults(`the maximum of ${limits.tenantsMax.value} tenants is reached`)
    }
    const promise = open(name).finally(() => opening.delete(name))
    opening.set(name, promise)
    return promise
  }

  const main = await open('')
  const names = new Set([
    ...namesIn(folder),
    ...ports.repair.expected().filter((name) => namePattern.test(name)),
  ])
  for (const name of [...names].toSorted()) await openOrRefuse(name)

  // Tenants of snapshots stay disconnected.
  const snapshots = await openSnapshots({
    ...ports,
    open: (name, file) =>
      openTenant({ ...ports, rowBudget, room: undefined, name, file, onDamage: () => undefined }, settings),
  })

  /** @throws store.corrupt, store.failed, store.newer for a tenant that stays closed. */
  function find(name: string): Tenant | undefined {
    const why = refused.get(name)
    if (why !== undefined) throw new GatewayError(why.code, why.message, why.details)
    return tenants.get(name)
  }

  ports.metrics.gauge('selvedge_tenants_closed', () => refused.size)
  ports.room?.watch({
    extents: () => [...tenants.values()].map((tenant) => tenant.extent()),
    deleteSnapshot: snapshots.deleteWeakest,
  })
  gauges(ports.metrics, () => [...tenants.values()].map((tenant) => tenant.status()))
  const broker: Broker = Object.freeze({
    tenant: (name) => find(name)?.broker,
    tenantForCreate(name) {
      const known = find(name)
      if (known !== undefined) return known.broker
      if (!namePattern.test(name)) {
        throw badRequestData(
          'a tenant name has 1 to 64 letters, digits, - and _, and begins with a letter or digit',
          'NGSILD-Tenant',
        )
      }
      return openOnce(name).then((tenant) => tenant.broker)
    },
  } satisfies Broker)

  return Object.freeze({
    main,
    broker,
    snapshots,
    all: () => [...tenants.values()],
    /** Warnings for the operator. */
    complaints: (): readonly string[] => [
      ...[...refused].map(([name, { message }]) => `tenant ${name} is closed: ${message}`),
      ...[...damaged].map(([name, { message }]) => `${labelOf(name)} is damaged: ${message}`),
      ...[...tenants.values()].flatMap((tenant) => lossOf(tenant, ports.clock.now())),
    ],
    /**
     * Connects every tenant, also those opened later. Returns a function that disconnects them; it must be
     * called before the senders are closed.
     */
    connect(to: Connections): () => Promise<void> {
      connections = to
      for (const tenant of tenants.values()) tenant.connect(to)
      return async () => {
        connections = undefined
        await Promise.allSettled(opening.values())
        for (const tenant of tenants.values()) await tenant.disconnect()
      }
    },
    /** Frees the page caches of all tenants. */
    releaseMemory(): void {
      for (const { database } of tenants.values()) database.pragma('shrink_memory')
    },
    /** Call when memory becomes short, and when it no longer is. */
    saveMemory: rowBudget.saveMemory,
    async close(): Promise<void> {
      ports.room?.watch(undefined)
      await Promise.allSettled(opening.values())
      await snapshots.close()
      for (const tenant of tenants.values()) await tenant.close()
    },
  })
}

/** Names of tenants that have or had a file. */
function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((file) => {
    const [, name = ''] = /^(.+)\.db(\.mended|\.damaged-[^-]+)?$/.exec(file) ?? []
    return namePattern.test(name) ? [name] : []
  })
}

const labelOf = (name: string): string => (name === '' ? 'the default tenant' : `tenant ${name}`)

/** The span that a tenant lost when it was restored, for as long as this is reported. */
function lossOf({ name, records }: Tenant, now: number): string[] {
  const text = records.meta('restored')
  if (text === undefined) return []
  const { at, from, to } = JSON.parse(String(text)) as Restored
  if (now - at > limits.restoredReportMs.value) return []
  return [
    `${labelOf(name)} was restored from a backup; data from ${msToDateTime(from)} to ${msToDateTime(to)} is lost`,
  ]
}

type Status = ReturnType<Tenant['status']>

/** Gauges that are the sum of one member of all statuses. */
const summed = [
  ['selvedge_entities', 'entities'],
  ['selvedge_queue_works', 'waiting'],
  ['selvedge_log_number', 'number'],
  ['selvedge_log_bytes', 'logBytes'],
  ['selvedge_clock_unsettled_rows', 'unsettled'],
  ['selvedge_tail_observations', 'tail'],
  ['selvedge_streams_live', 'liveStreams'],
] as const satisfies readonly (readonly [MetricName, keyof Status])[]

function gauges(metrics: Metrics, statuses: () => readonly Status[]): void {
  for (const [name, member] of summed)
    metrics.gauge(name, () => statuses().reduce((total, status) => total + status[member], 0))
}

export type Tenants = Awaited<ReturnType<typeof openTenants>>
