/**
 * Snapshots (since 1.9): what some queries found at one instant, kept as a database file of its own that is read like a
 * tenant and never written again. They are of a tenant, live for a while, and are there after a restart.
 */
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { alreadyExists, notFound } from '#ngsi-ld/problem.ts'
import type { Tenant } from './tenant.ts'
import type { EntityView, TenantBroker } from './types.ts'

/** What is known of a snapshot; times are ms. */
export interface SnapshotFacts {
  readonly id: string
  readonly tenant: string
  /** The queries as they were given. */
  readonly queries: Json
  readonly priority: number
  readonly isEmpty: boolean
  readonly createdAt: number
  readonly modifiedAt: number
  readonly expiresAt: number
}

export type SnapshotDraft = Pick<SnapshotFacts, 'id' | 'queries' | 'priority' | 'createdAt' | 'expiresAt'>

export interface Snapshots {
  /** @throws ngsi-ld.already-exists, ngsi-ld.too-many-results */
  create(tenant: string, draft: SnapshotDraft, found: readonly EntityView[]): Promise<void>
  /** @throws ngsi-ld.not-found */
  facts(tenant: string, id: string): SnapshotFacts & { readonly lastUsedAt: number | undefined }
  /** Reads what the snapshot holds. @throws ngsi-ld.not-found */
  read(tenant: string, id: string): TenantBroker
  change(
    tenant: string,
    id: string,
    change: Partial<Pick<SnapshotFacts, 'priority' | 'expiresAt'>>,
  ): Promise<void>
  remove(tenant: string, id: string): Promise<void>
  removeAll(tenant: string): Promise<void>
  close(): Promise<void>
}

export interface SnapshotsPorts {
  readonly dataFolder: string
  /** Opens a database file, making it when it is absent; nothing of it leaves the gateway. */
  readonly open: (name: string, file: string) => Promise<Tenant>
  readonly clock: Clock
}

interface Open {
  facts: SnapshotFacts
  readonly kept: Tenant
  lastUsedAt: number | undefined
}

const metaKey = 'snapshot'
/** The default tenant has no name, and no tenant is called so. */
const folderOf = (tenant: string): string => (tenant === '' ? '-' : tenant)
const keyOf = (tenant: string, id: string): string => `${folderOf(tenant)}/${hash('sha256', id).slice(0, 32)}`

export async function openSnapshots({ dataFolder, open, clock }: SnapshotsPorts): Promise<Snapshots> {
  const folder = join(dataFolder, 'snapshots')
  const all = new Map<string, Open>()
  const fileOf = (key: string): string => join(folder, `${key}.db`)
  const nameOf = (key: string): string => `snapshot ${key}`

  const drop = async (key: string): Promise<void> => {
    const found = all.get(key)
    all.delete(key)
    await found?.kept.close()
    for (const ending of ['', '-wal', '-shm']) rmSync(fileOf(key) + ending, { force: true })
  }
  const dropExpired = async (): Promise<void> => {
    for (const [key, { facts }] of all) if (facts.expiresAt <= clock.now()) await drop(key)
  }
  const find = (tenant: string, id: string): Open => {
    const found = all.get(keyOf(tenant, id))
    if (found === undefined || found.facts.expiresAt <= clock.now()) throw notFound(`no snapshot ${id}`)
    return found
  }
  const write = async ({ door }: Tenant, facts: SnapshotFacts): Promise<void> => {
    await door.commit((stage) => stage.write('meta.put', metaKey, JSON.stringify(facts)))
  }

  for (const sub of existsSync(folder) ? readdirSync(folder) : []) {
    for (const file of readdirSync(join(folder, sub)).filter((name) => name.endsWith('.db'))) {
      const key = `${sub}/${file.slice(0, -'.db'.length)}`
      const kept = await open(nameOf(key), fileOf(key))
      const text = kept.records.meta(metaKey)
      // Without facts it was being made when the process ended.
      if (text === undefined) {
        await kept.close()
        await drop(key)
      } else all.set(key, { facts: JSON.parse(String(text)) as SnapshotFacts, kept, lastUsedAt: undefined })
    }
  }
  await dropExpired()

  return Object.freeze({
    async create(tenant, draft, found) {
      await dropExpired()
      const key = keyOf(tenant, draft.id)
      if (existsSync(fileOf(key))) throw alreadyExists(`the snapshot ${draft.id} exists already`)
      if (all.size >= limits.snapshotsMax.value) {
        throw new GatewayError('ngsi-ld.too-many-results', `there are ${all.size} snapshots already`)
      }
      const copies = found.map((view) => ({ entity: view.entity(), times: view.times() }))
      mkdirSync(join(folder, folderOf(tenant)), { recursive: true, mode: 0o700 })
      const kept = await open(nameOf(key), fileOf(key))
      const facts = { ...draft, tenant, isEmpty: copies.length === 0, modifiedAt: draft.createdAt }
      try {
        await kept.broker.batchCreate(
          copies.map(({ entity }) => entity),
          'import',
        )
        await kept.door.commit((stage) => {
          for (const { entity, times } of copies) {
            const sys = JSON.stringify(times.attributes)
            stage.write('entity.times', times.created, times.modified, sys, entity.id)
          }
        })
        await write(kept, facts)
        all.set(key, { facts, kept, lastUsedAt: undefined })
      } catch (error) {
        await kept.close()
        await drop(key)
        throw error
      }
    },
    facts(tenant, id) {
      const { facts, lastUsedAt } = find(tenant, id)
      return { ...facts, lastUsedAt }
    },
    read(tenant, id) {
      const found = find(tenant, id)
      found.lastUsedAt = clock.now()
      return found.kept.broker
    },
    async change(tenant, id, change) {
      const found = find(tenant, id)
      const facts = { ...found.facts, ...change, modifiedAt: clock.now() }
      await write(found.kept, facts)
      found.facts = facts
    },
    async remove(tenant, id) {
      find(tenant, id)
      await drop(keyOf(tenant, id))
    },
    async removeAll(tenant) {
      for (const [key, { facts }] of all) if (facts.tenant === tenant) await drop(key)
    },
    async close() {
      for (const { kept } of all.values()) await kept.close()
    },
  } satisfies Snapshots)
}
