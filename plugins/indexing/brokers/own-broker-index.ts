/**
 * Keeps the gateway's own broker in the index: a full read, resumed after a kill, then the change log.
 * Observation times are kept in memory. They are written with the cursor at most once per
 * `limits.indexSeenMs`; a restart replays the log from that cursor. Observed values of indexed entities are
 * stored with their entities.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { BrokerPort, ChangeBatch, ChangesPort, EntityState, Observation } from '#contract'
import { type Brokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes, kinds, simpleResult } from '#plugins/indexing/entries/entity-kinds.ts'
import type { SeenTimes } from '#plugins/indexing/entries/seen.ts'

export interface OwnBrokerPorts extends ClockAndLog {
  readonly broker: BrokerPort
  readonly changes: Omit<ChangesPort, 'history'>
  readonly catalogue: Catalogue
  readonly brokers: Brokers
  readonly seen: SeenTimes
  readonly signal: AbortSignal
}

/**
 * The position where a full read resumes: after which entity, and the log number from which following then
 * starts.
 */
interface ReadCursor {
  readonly behind: number
  readonly from: number
}

export function createOwnBrokerIndex(ports: OwnBrokerPorts) {
  const { broker, changes, catalogue, brokers, seen, clock, signal } = ports
  /** All changes up to this log number are in the index; undefined during a full read. */
  let included: number | undefined
  /** End of the log when following began. Until it is included, many changes may be missing. */
  let target = 0
  let following: { close(): void } | undefined
  let loading: Promise<void> | undefined
  let working: Promise<void> = Promise.resolve()
  let notedAt = clock.monotonic()
  let noted: number | undefined
  let noting: Promise<void> = Promise.resolve()
  const waiting = new Set<() => void>()
  /** Results of `observationOf`, by id. */
  const observations = new Map<string, number | undefined>()

  const include = (position: number): void => {
    included = position
    for (const check of waiting) check()
  }

  /** Writes observation times and the cursor. Later changes are replayed after a kill. */
  function note(): Promise<void> {
    noting = noting.catch(() => undefined).then(noteNow)
    return noting
  }

  async function noteNow(): Promise<void> {
    const position = included
    if (position === undefined || (position === noted && seen.size() === 0)) return
    const times = [...seen.entries()]
    await catalogue.see(times)
    // The index may have been emptied meanwhile. Times seen meanwhile are not written.
    if (included === undefined) return
    for (const [n, at] of times) if (seen.of(n) === at) seen.forget(n)
    brokers.set(ownBroker, { position })
    noted = position
    notedAt = clock.monotonic()
  }

  /** The number of an indexed observation, 0 for other indexed entities; undefined if it is not indexed. */
  function observationOf(id: string): number | undefined {
    if (observations.has(id)) return observations.get(id)
    if (observations.size >= limits.indexObservationsKept.value) observations.clear()
    const entry = catalogue.entity(id)
    const n = entry && ((entry.kinds & kinds.observation) === 0 ? 0 : entry.n)
    observations.set(id, n)
    return n
  }

  /** Current states of indexed entities with observed values, each entity once. */
  function observedEntities(
    observed: readonly Observation[],
    changedIds: ReadonlySet<string>,
  ): EntityState[] {
    const others = new Set<string>()
    for (const { id, name, time } of observed) {
      const n = observationOf(id)
      if (n === undefined) continue
      if (n !== 0 && name === simpleResult) seen.note(n, time)
      else if (n === 0 && !changedIds.has(id)) others.add(id)
    }
    return [...others].flatMap((id) => changes.entity(id) ?? [])
  }

  /** Retries after a full disk or a disk error until the work succeeds. */
  async function retryOnDiskError(work: () => Promise<void>): Promise<void> {
    for (let isLogged = false; ; isLogged = true) {
      try {
        return await work()
      } catch (error) {
        if (!isOfDisk(error) || signal.aborted) throw error
        if (!isLogged) ports.log.warn('indexing.disk', { error })
        await sleep(limits.indexDiskRetryMs.value)
      }
    }
  }

  async function take(batch: ChangeBatch): Promise<void> {
    working = retryOnDiskError(() => takeIn(batch))
    await working
  }

  async function takeIn({ changed, deleted, observed, through }: ChangeBatch): Promise<void> {
    const changedIds = new Set([...changed.map(({ id }) => id), ...deleted])
    for (const id of changedIds) observations.delete(id)
    const values = observedEntities(observed, changedIds)
    await catalogue.take(ownBroker, { changed: [...changed, ...values], deleted })
    // An id that was not an observation may be one now.
    for (const id of changedIds) observations.delete(id)
    const seenNow = new Set(observed.map(({ id }) => id))
    for (const { id } of changed) {
      const n = observationOf(id)
      // The new document includes earlier observation times; later observations follow in the log.
      if (n !== undefined && n !== 0 && !seenNow.has(id)) seen.forget(n)
    }
    include(through)
    const isDue = clock.monotonic() - notedAt >= limits.indexSeenMs.value
    if (isDue || seen.size() >= limits.indexSeenKept.value) await note()
  }

  /** Total number of entities, if the broker reports it. */
  async function countAll(): Promise<number | null> {
    const path = '/ngsi-ld/v1/entities?type=*&local=true&limit=0&count=true'
    const answer = await broker.exchange({ method: 'GET', path })
    const count =
      'status' in answer ? Number(answer.headers['ngsild-results-count'] ?? Number.NaN) : Number.NaN
    return Number.isFinite(count) ? count : null
  }

  /** Reads all entities, or resumes an interrupted read. Returns the log number from which to follow. */
  async function read(): Promise<number> {
    const known = brokers.get(ownBroker)?.load ?? null
    const cursor: ReadCursor =
      known === null ? { behind: 0, from: changes.position() } : (JSON.parse(known.at) as ReadCursor)
    const { from } = cursor
    let load = known ?? {
      at: JSON.stringify(cursor),
      read: 0,
      total: await countAll(),
      since: clock.now(),
    }
    if (known === null) catalogue.beginLoad(ownBroker)
    brokers.set(ownBroker, { state: 'loading', load })
    for (let { behind } = cursor; !signal.aborted; ) {
      const page = changes.entities(behind, limits.indexLoadPage.value)
      if (page.length === 0) break
      // A page without indexed entities takes no time, so yield here.
      await nextTurn()
      await catalogue.take(ownBroker, { changed: page.filter(isIndexed) })
      behind = page.at(-1)!.rid
      load = { ...load, at: JSON.stringify({ behind, from }), read: load.read + page.length }
      brokers.set(ownBroker, { load })
    }
    if (signal.aborted) return from
    const removed = await catalogue.endLoad(ownBroker)
    observations.clear()
    brokers.set(ownBroker, { state: 'following', load: null, position: from })
    ports.log.info('indexing.read', { broker: broker.address, entities: load.read, removed })
    return from
  }

  /** Follows the log, after a full read if necessary. */
  async function begin(): Promise<void> {
    const row = brokers.get(ownBroker) ?? brokers.add(broker.address, 'own')
    if (row.host !== broker.address) brokers.set(ownBroker, { host: broker.address })
    await catalogue.derive()
    const from = row.position === null || row.load !== null ? await read() : row.position
    if (signal.aborted) return
    target = changes.position()
    include(from)
    noted = from
    following = changes.follow(from, {
      types: indexedTypes,
      observes: 'newest',
      take,
      async readAnew() {
        included = undefined
        let resumeFrom = from
        working = retryOnDiskError(async () => {
          resumeFrom = await read()
        })
        await working
        target = changes.position()
        include(resumeFrom)
        return resumeFrom
      },
    })
  }

  return Object.freeze({
    /** Resolves when all existing entities are in the index. */
    start(): Promise<void> {
      loading ??= retryOnDiskError(begin)
      return loading
    },
    /** Stops, so that the index can be emptied. */
    async stop(): Promise<void> {
      included = undefined
      following?.close()
      await working.catch(() => undefined)
      await noting.catch(() => undefined)
      following = undefined
      loading = undefined
      included = undefined
      observations.clear()
      seen.clear()
    },
    /** Log number up to which all changes are in the index; undefined during a full read. */
    position: () => included,
    /** Number of changes that the index lacks; 0 while the delay is normal. */
    behind(): number {
      if (included === undefined) return 0
      const lacking = Math.max(0, changes.position() - included)
      return included < target || lacking > limits.indexBehindMax.value ? lacking : 0
    },
    /** Whether the index includes a log number. Waits up to `limits.indexWaitMs`. */
    reaches(n: number): Promise<boolean> {
      if (included !== undefined && included >= n) return Promise.resolve(true)
      return new Promise((resolve) => {
        const end = (arrived: boolean): void => {
          clearTimeout(timer)
          waiting.delete(check)
          resolve(arrived)
        }
        const check = (): void => {
          if (included !== undefined && included >= n) end(true)
        }
        const timer = setTimeout(() => end(false), limits.indexWaitMs.value)
        if (waiting.size >= limits.indexWaitingMax.value) end(false)
        else waiting.add(check)
      })
    },
    /** Writes what is only in memory, so that a restart resumes here. */
    note,
    async close(): Promise<void> {
      following?.close()
      await working.catch(() => undefined)
      await note()
    },
  })
}

/** Error codes that better-sqlite3 and the store use for disk problems. */
const isOfDisk = (error: unknown): boolean => {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' && /^(SQLITE_(FULL|IOERR)|store\.(full|unwritable)$)/.test(code)
}

const isIndexed = ({ types }: EntityState): boolean => types.some((type) => indexedTypes.has(type))
