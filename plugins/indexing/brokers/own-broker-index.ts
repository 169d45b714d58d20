/**
 * The gateway's own broker in the index: read once, resumed after a kill, then followed by its log. When an observation was made
 * stays in memory and is written, with the cursor, at most once per `limits.indexSeenMs`; a restart goes on from that cursor and
 * is told again what came after it. Values observed of indexed entities are taken in with their entities.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { BrokerPort, ChangeBatch, ChangesPort, EntityState, ObservedValue } from '#contract'
import { breathe } from '#plugins/indexing/entries/breathe.ts'
import { type Brokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes, kinds, simpleResult } from '#plugins/indexing/entries/entity-kinds.ts'
import type { SeenTimes } from '#plugins/indexing/entries/seen.ts'

export interface OwnBrokerPorts {
  readonly mdr: BrokerPort
  readonly changes: ChangesPort
  readonly catalogue: Catalogue
  readonly brokers: Brokers
  readonly seen: SeenTimes
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

/** Where a reading goes on: behind which entity, and from which log number following begins then. */
interface Place {
  readonly behind: number
  readonly from: number
}

export function createOwnBroker(ports: OwnBrokerPorts) {
  const { mdr, changes, catalogue, brokers, seen, clock, signal } = ports
  /** All before it is in the index; undefined while it is read. */
  let included: number | undefined
  /** What was in the log when following began: before that is included, much may be missing. */
  let aim = 0
  let following: { close(): void } | undefined
  let loading: Promise<void> | undefined
  let working: Promise<void> = Promise.resolve()
  let notedAt = clock.monotonic()
  let noted: number | undefined
  let noting: Promise<void> = Promise.resolve()
  const waiting = new Set<() => void>()
  /** Observations by id with their numbers; 0 for what is no observation of the index. */
  const observations = new Map<string, number>()

  const arrive = (position: number): void => {
    included = position
    for (const look of waiting) look()
  }

  /** Writes times and cursor; what comes after is told again after a kill. */
  function note(): Promise<void> {
    noting = noting.catch(() => undefined).then(noteNow)
    return noting
  }

  async function noteNow(): Promise<void> {
    const position = included
    if (position === undefined || (position === noted && seen.size() === 0)) return
    const times = [...seen.entries()]
    await catalogue.see(times)
    // It may have been emptied meanwhile, and what was seen meanwhile is not written.
    if (included === undefined) return
    for (const [n, at] of times) if (seen.of(n) === at) seen.forget(n)
    brokers.set(ownBroker, { position })
    noted = position
    notedAt = clock.monotonic()
  }

  function observationOf(id: string): number {
    const known = observations.get(id)
    if (known !== undefined) return known
    if (observations.size >= limits.indexObservationsKept.value) observations.clear()
    const entry = catalogue.entity(id)
    const n = entry !== undefined && (entry.kinds & kinds.observation) !== 0 ? entry.n : 0
    observations.set(id, n)
    return n
  }

  /** Entities whose values are in the index, each once, as they are now. */
  function touched(observed: readonly ObservedValue[], told: ReadonlySet<string>): EntityState[] {
    const others = new Set<string>()
    for (const { id, name, time } of observed) {
      const n = observationOf(id)
      if (n !== 0 && name === simpleResult) seen.note(n, time)
      else if (n === 0 && !told.has(id)) others.add(id)
    }
    const ids = [...others].filter((id) => catalogue.entity(id) !== undefined)
    return ids.flatMap((id) => changes.entity(id) ?? [])
  }

  /** A disk that is full or fails ends nothing: it is tried again until it is well. */
  async function patiently(work: () => Promise<void>): Promise<void> {
    for (let told = false; ; told = true) {
      try {
        return await work()
      } catch (error) {
        if (!isOfDisk(error) || signal.aborted) throw error
        if (!told) ports.log.warn('indexing.disk', { error })
        await sleep(limits.indexDiskRetryMs.value)
      }
    }
  }

  async function take(batch: ChangeBatch): Promise<void> {
    working = patiently(() => takeIn(batch))
    await working
  }

  async function takeIn({ changed, deleted, observed, through }: ChangeBatch): Promise<void> {
    const told = new Set([...changed.map(({ id }) => id), ...deleted])
    for (const id of told) observations.delete(id)
    const values = touched(observed, told)
    await catalogue.take(ownBroker, { changed: [...changed, ...values], deleted })
    // What was none before may be an observation of the index now.
    for (const id of told) observations.delete(id)
    const seenNow = new Set(observed.map(({ id }) => id))
    for (const { id } of changed) {
      const n = observationOf(id)
      // Its document has the time of what was observed before, and what comes after is told after it.
      if (n !== 0 && !seenNow.has(id)) seen.forget(n)
    }
    arrive(through)
    const isDue = clock.monotonic() - notedAt >= limits.indexSeenMs.value
    if (isDue || seen.size() >= limits.indexSeenKept.value) await note()
  }

  /** How many entities there are, as far as the broker says so. */
  async function countAll(): Promise<number | null> {
    const path = '/ngsi-ld/v1/entities?type=*&local=true&limit=0&count=true'
    const answer = await mdr.exchange({ method: 'GET', path })
    const count =
      'status' in answer ? Number(answer.headers['ngsild-results-count'] ?? Number.NaN) : Number.NaN
    return Number.isFinite(count) ? count : null
  }

  /** Reads all entities, or goes on where a reading ended. Returns the log number to follow from. */
  async function read(): Promise<number> {
    const known = brokers.get(ownBroker)?.load ?? null
    const place: Place =
      known === null ? { behind: 0, from: changes.position() } : (JSON.parse(known.at) as Place)
    const { from } = place
    let load = known ?? {
      at: JSON.stringify(place),
      read: 0,
      total: await countAll(),
      since: clock.now(),
    }
    if (known === null) catalogue.beginLoad(ownBroker)
    brokers.set(ownBroker, { state: 'loading', load })
    for (let { behind } = place; !signal.aborted; ) {
      const page = changes.entities(behind, limits.indexLoadPage.value)
      if (page.length === 0) break
      // A page without anything for the index is taken at once.
      await breathe()
      await catalogue.take(ownBroker, { changed: page.filter(isIndexed) })
      behind = page.at(-1)!.rid
      load = { ...load, at: JSON.stringify({ behind, from }), read: load.read + page.length }
      brokers.set(ownBroker, { load })
    }
    if (signal.aborted) return from
    const removed = await catalogue.endLoad(ownBroker)
    brokers.set(ownBroker, { state: 'following', load: null, position: from })
    ports.log.info('indexing.read', { broker: mdr.address, entities: load.read, removed })
    return from
  }

  /** Follows, after a reading where that is needed. */
  async function begin(): Promise<void> {
    const row = brokers.get(ownBroker) ?? brokers.add(mdr.address, 'own')
    if (row.host !== mdr.address) brokers.set(ownBroker, { host: mdr.address })
    await catalogue.derive()
    const from = row.position === null || row.load !== null ? await read() : row.position
    if (signal.aborted) return
    aim = changes.position()
    arrive(from)
    noted = from
    following = changes.follow(from, {
      types: indexedTypes,
      observes: true,
      take,
      async readAnew() {
        included = undefined
        let anew = from
        working = patiently(async () => {
          anew = await read()
        })
        await working
        aim = changes.position()
        arrive(anew)
        return anew
      },
    })
  }

  return Object.freeze({
    /** Resolves when all that there was is in the index. */
    start(): Promise<void> {
      loading ??= patiently(begin)
      return loading
    },
    /** Leaves off, so that the index can be emptied. */
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
    /** Log number up to which all is in the index; undefined while it is read. */
    position: () => included,
    /** How many changes it lacks; 0 while that is no more than what follows at once. */
    behind(): number {
      if (included === undefined) return 0
      const lacking = Math.max(0, changes.position() - included)
      return included < aim || lacking > limits.indexBehindMax.value ? lacking : 0
    },
    /** True when all up to a log number is in the index; false when that takes longer than `limits.indexWaitMs`. */
    reaches(n: number): Promise<boolean> {
      if (included !== undefined && included >= n) return Promise.resolve(true)
      return new Promise((resolve) => {
        const end = (arrived: boolean): void => {
          clearTimeout(timer)
          waiting.delete(look)
          resolve(arrived)
        }
        const look = (): void => {
          if (included !== undefined && included >= n) end(true)
        }
        const timer = setTimeout(() => end(false), limits.indexWaitMs.value)
        if (waiting.size >= limits.indexWaitingMax.value) end(false)
        else waiting.add(look)
      })
    },
    /** Writes what is only in memory, so that a restart goes on from here. */
    note,
    async close(): Promise<void> {
      following?.close()
      await working.catch(() => undefined)
      await note()
    },
  })
}

/** What better-sqlite3 says of a disk. */
const isOfDisk = (error: unknown): boolean => {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' && /^(SQLITE_(FULL|IOERR)|store\.(full|unwritable)$)/.test(code)
}

const isIndexed = ({ types }: EntityState): boolean => types.some((type) => indexedTypes.has(type))
