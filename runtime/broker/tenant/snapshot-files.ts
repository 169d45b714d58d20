/**
 * Snapshots (since 1.9): results of queries at one instant. Each is stored in separate database files that
 * are read like a tenant and never change: one with entities, and one with histories if requested. A snapshot
 * belongs to a tenant, expires, and survives a restart. When space runs out, snapshots of lower priority are
 * deleted.
 */

import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { isGatewayError } from '#base/register/errors.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Json } from '#contract/pipeline.ts'
import type { TemporalEntity } from '#ngsi-ld/history/temporal-entity.ts'
import type { NotificationEndpoint } from '#ngsi-ld/subscription/subscription.ts'
import {
  alreadyExists,
  conflict,
  notFound,
  type Problem,
  tooManyResults,
} from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { timesText } from '#store/entities/attribute-times.ts'
import type { Tenant } from './tenant.ts'
import type { TenantBroker } from './tenant-broker.ts'

/** The outcome of one query. */
export interface QueryOutcome {
  readonly resultStatus: 'success' | 'partial' | 'failure' | 'empty'
  readonly problemDetails?: readonly Problem[]
}

/** The description of a snapshot; times are ms. */
export interface SnapshotFacts {
  readonly id: string
  readonly tenant: string
  /** The queries as given by the client. */
  readonly queries?: Json | undefined
  readonly temporalQueries?: Json | undefined
  readonly priority: number
  readonly endpoint?: NotificationEndpoint | undefined
  readonly status: 'preparing' | QueryOutcome['resultStatus']
  readonly details?: readonly QueryOutcome[] | undefined
  readonly temporalDetails?: readonly QueryOutcome[] | undefined
  readonly createdAt: number
  readonly modifiedAt: number
  readonly expiresAt: number
}

export type SnapshotDraft = Omit<
  SnapshotFacts,
  'tenant' | 'status' | 'details' | 'temporalDetails' | 'modifiedAt'
>

/** The contents of a snapshot. */
export interface SnapshotContent extends Pick<SnapshotFacts, 'details' | 'temporalDetails'> {
  readonly status: QueryOutcome['resultStatus']
  readonly entities: readonly EntityView[]
  readonly histories: readonly TemporalEntity[]
}

export type SnapshotView = SnapshotFacts & { readonly lastUsedAt: number }

export interface Snapshots {
  /** Reserves the space and id. @throws ngsi-ld.already-exists, ngsi-ld.too-many-results */
  begin(tenant: string, draft: SnapshotDraft): Promise<void>
  /** Stores the results. Returns undefined if the snapshot was deleted meanwhile. */
  complete(tenant: string, id: string, content: SnapshotContent): Promise<SnapshotFacts | undefined>
  /** @throws ngsi-ld.not-found */
  facts(tenant: string, id: string): SnapshotView
  /** In order of creation. */
  list(tenant: string): Promise<readonly SnapshotView[]>
  /** The contents of a snapshot. @throws ngsi-ld.not-found, ngsi-ld.conflict while it is being prepared. */
  read(tenant: string, id: string): TenantBroker
  change(
    tenant: string,
    id: string,
    change: Partial<Pick<SnapshotFacts, 'priority' | 'expiresAt' | 'endpoint'>>,
  ): Promise<void>
  remove(tenant: string, id: string): Promise<void>
  /** Deletes the least needed snapshot. False if there is none. */
  deleteWeakest(): Promise<boolean>
  close(): Promise<void>
}

export interface SnapshotsPorts extends ClockAndLog {
  readonly dataFolder: string
  /** Opens a database file, and creates it if absent; it sends nothing to other systems. */
  readonly open: (name: string, file: string) => Promise<Tenant>
}

interface Open {
  facts: SnapshotFacts
  readonly kept: Tenant
  past: Tenant | undefined
  lastUsedAt: number | undefined
}

const metaKey = 'snapshot'
const sweepMs = 60_000
/** Folder of the default tenant, which has no name; `-` is not a valid tenant name. */
const folderOf = (tenant: string): string => (tenant === '' ? '-' : tenant)
const keyOf = (tenant: string, id: string): string => `${folderOf(tenant)}/${hash('sha256', id).slice(0, 32)}`
const pastEnding = '.past'

export async function openSnapshots({ dataFolder, open, clock, log }: SnapshotsPorts): Promise<Snapshots> {
  const folder = join(dataFolder, 'snapshots')
  const all = new Map<string, Open>()
  const fileOf = (key: string): string => join(folder, `${key}.db`)
  const openKey = (key: string): Promise<Tenant> => open(`snapshot ${key}`, fileOf(key))

  const erase = (key: string): void => {
    for (const ending of ['', '-wal', '-shm']) rmSync(fileOf(key) + ending, { force: true })
  }
  const drop = async (key: string): Promise<void> => {
    const found = all.get(key)
    all.delete(key)
    await found?.kept.close()
    await found?.past?.close()
    // The entity file names the snapshot: while it exists, the other file is found after a crash.
    erase(key + pastEnding)
    erase(key)
  }
  const dropExpired = async (): Promise<void> => {
    for (const [key, { facts }] of all) if (facts.expiresAt <= clock.now()) await drop(key)
  }
  const find = (tenant: string, id: string): Open => {
    const found = all.get(keyOf(tenant, id))
    if (found === undefined || found.facts.expiresAt <= clock.now())
      throw notFound(`the snapshot ${id} does not exist`)
    return found
  }
  const write = async (found: Open, facts: SnapshotFacts): Promise<void> => {
    await found.kept.door.commit((stage) => stage.write('meta.put', metaKey, JSON.stringify(facts)))
    found.facts = facts
  }
  /** Discards an unreadable snapshot, since it is only a copy. */
  const unreadable = async (key: string, error: unknown): Promise<undefined> => {
    if (!isGatewayError(error, 'store.corrupt')) throw error
    log.error('store.refused', { tenant: `snapshot ${key}`, code: error.code, error: error.message })
    await drop(key)
  }
  const bytesOf = (key: string): number =>
    [key, key + pastEnding]
      .flatMap((each) => [fileOf(each), `${fileOf(each)}-wal`])
      .reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
  const usedAt = ({ facts, lastUsedAt = facts.createdAt }: Open): number => lastUsedAt
  /** Snapshots below a priority, lowest priority and least recently used first. */
  const weakest = (priority: number): string[] =>
    [...all]
      .filter(([, { facts }]) => facts.priority < priority && facts.status !== 'preparing')
      .toSorted(([, a], [, b]) => a.facts.priority - b.facts.priority || usedAt(a) - usedAt(b))
      .map(([key]) => key)
  /** Deletes snapshots of lower priority until there is space. */
  const makeRoom = async (priority: number): Promise<void> => {
    const isFull = (): boolean =>
      all.size >= limits.snapshotsMax.value ||
      [...all.keys()].reduce((sum, key) => sum + bytesOf(key), 0) >= limits.snapshotsBytesMax.value
    for (const key of weakest(priority)) if (isFull()) await drop(key)
    if (isFull())
      throw tooManyResults(
        `${all.size} snapshots use all the space for snapshots; delete one or raise the priority`,
      )
  }

  const place = async (tenant: string, draft: SnapshotDraft): Promise<void> => {
    await dropExpired()
    const key = keyOf(tenant, draft.id)
    if (all.has(key) || existsSync(fileOf(key)))
      throw alreadyExists(`the snapshot ${draft.id} already exists`)
    await makeRoom(draft.priority)
    mkdirSync(join(folder, folderOf(tenant)), { recursive: true, mode: 0o700 })
    const facts: SnapshotFacts = { ...draft, tenant, status: 'preparing', modifiedAt: draft.createdAt }
    const made = { facts, kept: await openKey(key), past: undefined, lastUsedAt: undefined }
    all.set(key, made)
    await write(made, facts)
  }
  /** Serializes creations, since parallel ones could use the same space or id. */
  const turn = createSemaphore()

  for (const key of keysIn(folder)) {
    const kept = await openKey(key).catch((error: unknown) => unreadable(key, error))
    if (kept === undefined) continue
    const text = kept.records.meta(metaKey)
    const facts = text === undefined ? undefined : (JSON.parse(String(text)) as SnapshotFacts)
    const hasPast = existsSync(fileOf(key + pastEnding))
    if (facts === undefined || facts.status === 'preparing') {
      // The process ended while it was being prepared.
      await kept.close()
      await drop(key)
    } else {
      const past = hasPast ? await openKey(key + pastEnding) : undefined
      all.set(key, { facts, kept, past, lastUsedAt: undefined })
    }
  }
  await dropExpired()
  const sweep = setInterval(() => void dropExpired(), sweepMs)
  sweep.unref()

  return Object.freeze({
    begin: (tenant, draft) => turn(() => place(tenant, draft)),
    async complete(tenant, id, { entities, histories, ...outcome }) {
      const key = keyOf(tenant, id)
      const found = all.get(key)
      if (found === undefined) return undefined
      await keepEntities(found.kept, entities)
      if (histories.length > 0) {
        const past = await openKey(key + pastEnding)
        if (all.get(key) !== found) {
          await past.close()
          if (!all.has(key)) erase(key + pastEnding)
          return undefined
        }
        found.past = past
        for (const history of histories) await past.broker.temporal.put(history, 'import')
      }
      if (all.get(key) !== found) return undefined
      await write(found, { ...found.facts, ...outcome, modifiedAt: clock.now() })
      return found.facts
    },
    facts(tenant, id) {
      const found = find(tenant, id)
      return { ...found.facts, lastUsedAt: usedAt(found) }
    },
    async list(tenant) {
      await dropExpired()
      return [...all.values()]
        .filter(({ facts }) => facts.tenant === tenant)
        .toSorted((a, b) => a.facts.createdAt - b.facts.createdAt)
        .map((one) => ({ ...one.facts, lastUsedAt: usedAt(one) }))
    },
    read(tenant, id) {
      const found = find(tenant, id)
      if (found.facts.status === 'preparing') throw conflict(`the snapshot ${id} is being prepared`)
      found.lastUsedAt = clock.now()
      return readable(found)
    },
    async change(tenant, id, change) {
      const found = find(tenant, id)
      await write(found, { ...found.facts, ...change, modifiedAt: clock.now() })
    },
    async remove(tenant, id) {
      find(tenant, id)
      await drop(keyOf(tenant, id))
    },
    async deleteWeakest() {
      const [key] = weakest(Number.POSITIVE_INFINITY)
      if (key !== undefined) await drop(key)
      return key !== undefined
    },
    async close() {
      clearInterval(sweep)
      for (const { kept, past } of all.values()) {
        await kept.close()
        await past?.close()
      }
    },
  } satisfies Snapshots)
}

/** Keys of the snapshots in a folder, derived from their entity files. */
function keysIn(folder: string): readonly string[] {
  const subs = existsSync(folder) ? readdirSync(folder) : []
  return subs.flatMap((sub) =>
    readdirSync(join(folder, sub))
      .filter((name) => name.endsWith('.db') && !name.endsWith(`${pastEnding}.db`))
      .map((file) => `${sub}/${file.slice(0, -'.db'.length)}`),
  )
}

async function keepEntities(kept: Tenant, views: readonly EntityView[]): Promise<void> {
  const copies = views.map((view) => ({ entity: view.entity(), times: view.times() }))
  await kept.broker.batchCreate(
    copies.map(({ entity }) => entity),
    'import',
  )
  await kept.door.commit((stage) => {
    for (const { entity, times } of copies) {
      const { created, modified } = times
      stage.write('entity.times', created, modified, timesText(created, times.attributes), entity.id)
    }
  })
}

/** Reads entities from one file and histories from the other; histories that were not requested are empty. */
function readable({ kept, past }: Pick<Open, 'kept' | 'past'>): TenantBroker {
  const { broker } = kept
  const nothing = { found: [], more: false, count: 0 }
  return {
    ...broker,
    history: (id, query) => past?.broker.history(id, query),
    temporal: {
      ...broker.temporal,
      aggregate: async (id, query) => past?.broker.temporal.aggregate(id, query),
      search: async (search, query) => past?.broker.temporal.search(search, query) ?? nothing,
      searchAggregates: async (search, query) =>
        past?.broker.temporal.searchAggregates(search, query) ?? nothing,
    },
  }
}
