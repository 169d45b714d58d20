/**
 * The tenants of this gateway: one database file each, found at start, made by the first create. The default tenant
 * has the empty name and is always there (GS CIM 009, 4.14). Nothing is shared between them but the writer thread.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Metrics } from '#base/metrics.ts'
import { badRequestData } from '#ngsi-ld/problem.ts'
import { openSnapshots } from './snapshots.ts'
import { openTenant, type Tenant, type TenantPorts, type TenantSettings } from './tenant.ts'
import type { Broker } from './types.ts'

export interface TenantsPorts extends Omit<TenantPorts, 'name' | 'file'> {
  readonly dataFolder: string
}

const defaultFile = 'selvedge.db'
const folderName = 'tenants'
/** What may stand in NGSILD-Tenant and in a file name alike. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

export async function openTenants(ports: TenantsPorts, settings: TenantSettings) {
  const tenants = new Map<string, Tenant>()
  const opening = new Map<string, Promise<Tenant>>()
  const folder = join(ports.dataFolder, folderName)
  let isStarted = false

  async function open(name: string): Promise<Tenant> {
    if (name !== '') mkdirSync(folder, { recursive: true, mode: 0o700 })
    const file = name === '' ? join(ports.dataFolder, defaultFile) : join(folder, `${name}.db`)
    const tenant = await openTenant({ ...ports, name, file }, settings)
    tenants.set(name, tenant)
    if (isStarted) tenant.outside.start()
    return tenant
  }

  async function openOnce(name: string): Promise<Tenant> {
    const known = opening.get(name)
    if (known !== undefined) return known
    if (tenants.size + opening.size >= limits.tenantsMax.value) {
      throw new GatewayError(
        'ngsi-ld.too-many-results',
        `there are ${limits.tenantsMax.value} tenants already`,
      )
    }
    const promise = open(name).finally(() => opening.delete(name))
    opening.set(name, promise)
    return promise
  }

  const main = await open('')
  if (existsSync(folder)) {
    for (const file of readdirSync(folder).toSorted()) {
      const name = file.slice(0, -'.db'.length)
      if (file.endsWith('.db') && namePattern.test(name)) await open(name)
    }
  }

  // Nothing that happens to a snapshot is told to anybody.
  const attach = () => ({
    start() {},
    committed() {},
    reread() {},
    listen: () => ({ ready() {}, end() {} }),
    confirm: async () => undefined,
    close: async () => undefined,
  })
  const snapshots = await openSnapshots({
    ...ports,
    open: (name, file) => openTenant({ ...ports, name, file, attach }, settings),
  })

  gauges(ports.metrics, () => [...tenants.values()].map((tenant) => tenant.status()))
  const broker: Broker = Object.freeze({
    tenant: (name) => tenants.get(name)?.broker,
    tenantForCreate(name) {
      const known = tenants.get(name)
      if (known !== undefined) return known.broker
      if (!namePattern.test(name)) {
        throw badRequestData('NGSILD-Tenant takes 1 to 64 letters, digits, - and _', 'NGSILD-Tenant')
      }
      return openOnce(name).then((tenant) => tenant.broker)
    },
  } satisfies Broker)

  return Object.freeze({
    main,
    broker,
    snapshots,
    all: () => [...tenants.values()],
    /** Begins to send what is owed; tenants opened later begin at once. */
    start(): void {
      isStarted = true
      for (const tenant of tenants.values()) tenant.outside.start()
    },
    async close(): Promise<void> {
      await Promise.allSettled(opening.values())
      await snapshots.close()
      for (const tenant of tenants.values()) await tenant.close()
    },
  })
}

type Status = ReturnType<Tenant['status']>

function gauges(metrics: Metrics, statuses: () => readonly Status[]): void {
  const sum = (pick: (status: Status) => number): (() => number) => {
    return () => statuses().reduce((total, status) => total + pick(status), 0)
  }
  metrics.gauge(
    'selvedge_entities',
    sum((status) => status.entities),
  )
  metrics.gauge(
    'selvedge_queue_works',
    sum((status) => status.waiting),
  )
  metrics.gauge(
    'selvedge_log_number',
    sum((status) => status.number),
  )
  metrics.gauge(
    'selvedge_log_bytes',
    sum((status) => status.logBytes),
  )
  metrics.gauge(
    'selvedge_clock_unsettled_rows',
    sum((status) => status.unsettled),
  )
  metrics.gauge(
    'selvedge_tail_observations',
    sum((status) => status.tail),
  )
  metrics.gauge(
    'selvedge_streams_live',
    sum((status) => status.liveStreams),
  )
}

export type Tenants = Awaited<ReturnType<typeof openTenants>>
