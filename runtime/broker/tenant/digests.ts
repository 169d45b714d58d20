/**
 * Digests of a tenant's contents, for brokers that compare. They are computed for each request, a page of
 * entities or of a history at a time, and yield in between. Computations run one at a time.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { collectDiscardedBetweenMarkings, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { ChangeFeed, CommitSpan } from '#broker/changes/change-feed.ts'
import type { EntityHistory, TemporalQuery } from '#broker/history/temporal-requests.ts'
import type { Collision, Collisions } from '#broker/state/collisions.ts'
import { timesKey } from '#broker/state/entity-view.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import {
  bucketCount,
  bucketOf,
  createStateHash,
  type Digest,
  dayOf,
  observationHash,
  plus,
} from '#ngsi-ld/federation/digest.ts'
import { chainOf } from '#ngsi-ld/federation/via.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { Restored } from '#store/backup/restore.ts'
import type { Records } from '#store/tables/records.ts'

/** By attribute instance (`name` or `name datasetId`), by UTC day. */
export type HistoryDigests = Readonly<Record<string, Readonly<Record<string, Digest>>>>

export type Chosen = (view: Pick<EntityView, 'id' | 'times' | 'entity'>) => boolean

/** The form of an entity to be hashed, if the other broker stores it differently. */
export type StoredForm = (entity: Entity) => Entity

export interface Digests {
  /** Log number of the last change: it decreases when an older copy was restored. */
  position(): number
  /** When (ms) an older copy was last restored; undefined if never. */
  readonly restoredAt: number | undefined
  buckets(isChosen: Chosen, seen?: StoredForm): Promise<readonly Digest[]>
  /** Hashes of the entities in a bucket, by id. */
  bucket(bucket: number, isChosen: Chosen, seen?: StoredForm): Promise<ReadonlyMap<string, number>>
  /** Recent collisions of an origin with others. */
  collisions(origin: string): readonly Collision[]
  /**
   * Attribute instances of an entity (`name` or `name datasetId`) last written by others than broker
   * `through`. For an entity without attributes, `''` if others created it.
   */
  others(id: string, through: string): readonly string[]
  /**
   * Whether the history of an entity contains an observation of an attribute instance (`name` or `name
   * datasetId`).
   */
  holds(id: string, key: string, instance: AttributeInstance): boolean
  /** Digests of the observations of an entity within from <= ms < to. */
  history(id: string, span: CommitSpan): Promise<HistoryDigests>
  /** The observations of one attribute instance that were committed up to a time (ms), in parts. */
  observed(
    id: string,
    key: string,
    span: CommitSpan & { readonly upTo: number },
  ): AsyncIterable<readonly WrittenInstance[]>
}

/** An instance of a history, and when it was committed (ms). */
export interface WrittenInstance {
  readonly instance: AttributeInstance
  readonly writtenAt: number
}

export interface DigestsPorts {
  readonly following: ChangeFeed
  readonly history: (id: string, query: TemporalQuery) => EntityHistory | undefined
  readonly records: Pick<Records, 'meta'>
  readonly collisions: Pick<Collisions, 'of'>
}

/** Detects repeated observations, since one in two lives of an entity counts once. Times are ascending. */
function createRepeats(): (key: string, at: number, one: number) => boolean {
  const last = new Map<string, { at: number; readonly seen: Set<number> }>()
  return (key, at, one) => {
    const known = last.get(key) ?? { at, seen: new Set() }
    last.set(key, known)
    if (known.at !== at) known.seen.clear()
    known.at = at
    const isRepeat = known.seen.has(one)
    known.seen.add(one)
    return isRepeat
  }
}

/** Garbage of a hashed document per character: 2 if it is one long text, up to 18 if it is small. */
const garbagePerCharacter = 8

export function createDigests({ following, history, records, collisions }: DigestsPorts): Digests {
  const alone = createSemaphore()
  const stateHash = createStateHash()
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)

  /** Visits a page in one turn, so that none of its documents is still referenced afterwards. */
  function visitPage(after: number, isChosen: Chosen, visit: (entity: Entity) => void): number | undefined {
    const page = following.entities(after, limits.digestEntitiesPerTurn.value)
    for (const [, view] of page) {
      let parsed: Entity | undefined
      const entity = (): Entity => (parsed ??= view.entity())
      if (isChosen({ id: view.id, times: view.times, entity })) visit(entity())
      noteDiscarded(garbagePerCharacter * view.text().length)
    }
    return page.at(-1)?.[0]
  }

  async function visitAll(isChosen: Chosen, visit: (entity: Entity) => void): Promise<void> {
    for (let rid: number | undefined = 0; rid !== undefined; rid = visitPage(rid, isChosen, visit)) {
      await collectDiscardedBetweenMarkings()
      await yieldIfDue()
    }
  }

  /** Pages of a history in order. An instance is in two pages if many instances have the same time. */
  async function* parts(
    id: string,
    span: CommitSpan,
    attrs?: ReadonlySet<string>,
  ): AsyncGenerator<EntityHistory> {
    const limit = limits.digestInstancesPerTurn.value
    const window = { timeproperty: 'observedAt', timerel: 'between', limit } as const
    const found = history(id, { ...window, timeAtMs: span.from, endTimeAtMs: span.to, attrs })
    if (found === undefined) return
    yield found
    await nextTurn()
    for (const name of found.cut) {
      const last = found.attributes.get(name)?.at(-1)?.observedAt
      if (last === undefined) continue
      // The instances of the last time may be incomplete.
      const from = Math.max(last, span.from + 1)
      yield* parts(id, { from, to: span.to }, new Set([name]))
    }
  }

  async function historyOf(id: string, span: CommitSpan): Promise<HistoryDigests> {
    const days = new Map<string, Record<string, Digest>>()
    const isKnown = createRepeats()
    const add = (name: string, observedAt: number, instance: AttributeInstance): void => {
      const key = timesKey(name, instance.datasetId ?? '')
      const one = observationHash(observedAt, instance)
      if (isKnown(key, observedAt, one)) return
      const ofKey = days.get(key) ?? {}
      days.set(key, ofKey)
      const day = dayOf(observedAt)
      ofKey[day] = plus(ofKey[day] ?? [0, 0], one)
    }
    for await (const { attributes, cut } of parts(id, span)) {
      for (const [name, list] of attributes) {
        // Scopes are not sent to other brokers.
        if (name === 'scope') continue
        const end = cut.has(name) ? list.at(-1)?.observedAt : undefined
        for (const { instance, observedAt, deletedAt } of list) {
          if (observedAt === undefined || deletedAt !== undefined || observedAt === end) continue
          add(name, observedAt, instance)
        }
      }
    }
    return Object.fromEntries(days)
  }

  const restored = records.meta('restored')
  return Object.freeze({
    restoredAt: typeof restored === 'string' ? (JSON.parse(restored) as Restored).at : undefined,
    position: () => following.position().n,
    buckets: (isChosen, seen = (one) => one) =>
      alone(async () => {
        const sums: Digest[] = Array.from({ length: bucketCount }, () => [0, 0])
        await visitAll(isChosen, (entity) => {
          const bucket = bucketOf(entity.id)
          sums[bucket] = plus(sums[bucket]!, stateHash(seen(entity)))
        })
        return sums
      }),
    bucket: (bucket, isChosen, seen = (one) => one) =>
      alone(async () => {
        const hashes = new Map<string, number>()
        await visitAll(
          (one) => bucketOf(one.id) === bucket && isChosen(one),
          (entity) => hashes.set(entity.id, stateHash(seen(entity))),
        )
        return hashes
      }),
    collisions: collisions.of,
    others(id, through) {
      const view = following.entity(id)
      if (view === undefined) return []
      const { attributes } = view.times()
      const entity = view.entity()
      const keys = attributeNames(entity).flatMap((name) =>
        instancesOf(entity, name).map(({ datasetId = '' }) => timesKey(name, datasetId)),
      )
      return (keys.length === 0 ? [''] : keys).filter(
        (key) => !chainOf(attributes[key]?.[2]).includes(through),
      )
    },
    holds(id, key, instance) {
      const at = dateTimeToMs(instance.observedAt ?? '')
      if (at === undefined) return false
      const [name = '', dataset = '@none'] = key.split(' ')
      const of = { attrs: new Set([name]), datasets: new Set([dataset]) }
      const window = {
        timeproperty: 'observedAt',
        timerel: 'between',
        timeAtMs: at,
        endTimeAtMs: at + 1,
      } as const
      const found = history(id, { ...of, ...window, limit: limits.digestInstancesPerTurn.value })
      const hash = observationHash(at, instance)
      return (found?.attributes.get(name) ?? []).some((one) => observationHash(at, one.instance) === hash)
    },
    history: (id, span) => alone(() => historyOf(id, span)),
    async *observed(id, key, span) {
      const [name = '', dataset = ''] = key.split(' ')
      for await (const { attributes } of parts(id, span, new Set([name])))
        yield (attributes.get(name) ?? []).flatMap(({ instance, createdAt, deletedAt }) =>
          deletedAt === undefined && createdAt <= span.upTo && (instance.datasetId ?? '') === dataset
            ? [{ instance, writtenAt: createdAt }]
            : [],
        )
    },
  } satisfies Digests)
}
