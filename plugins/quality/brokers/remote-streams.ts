/**
 * The streams of a remote broker: a full read with progress, then notifications. The content of a
 * notification is on disk before it is acknowledged. An observation that is reported again does not count.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { BrokerItems } from '#client/requests/broker-messages.ts'
import { readAll, readByIds } from '#client/requests/broker-reading.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import { linksOf, timedResult } from '#client/streams/stream-entities.ts'
import { type BrokerPort, type Json, type PastValue, streamHistory } from '#contract'
import { iotLite, iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { dayMs } from '#plugins/quality/measures/day-table.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { Stream } from '#plugins/quality/streams/stream.ts'
import { watched } from './analyser-watches.ts'
import type { RemoteStore } from './remote-store.ts'

export interface RemoteStreamsPorts {
  readonly port: BrokerPort
  readonly client: BrokerClient
  readonly streams: KnownStreams
  readonly store: RemoteStore
  /** Parses entities; `context` is that of the whole body. */
  readonly parse: (items: readonly Json[], now: number, context?: Json) => BrokerItems
  readonly upSince: number
  /** Whether reports may have been missed since the last full read. */
  readonly isBehind: () => boolean
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Entities that describe come before those that they describe, and observations last. */
const readOrder = [
  iotLite.Service,
  sosa.Platform,
  sosa.ObservableProperty,
  sosa.Sensor,
  iotStream.IotStream,
  iotStream.StreamObservation,
]
const types = new Set<string>(watched.map(({ type }) => type))

export function createRemoteStreams(ports: RemoteStreamsPorts) {
  const { port, client, streams, store, clock, signal } = ports
  const { entities, counted } = store
  /** Ids that the broker does not have, until it reports them. */
  const missing = new Set<string>()
  /** When entities were reported during a full read, monotonic ms. */
  const reported = new Map<string, number>()
  /** Latest times that were known when reports may have been missed, by number of the stream. */
  const knownUntil = new Map<number, number | undefined>()
  let hasRead = false
  let hasHistory = true
  let progress = { isReading: false, entities: 0, total: 0, observations: 0 }

  /** Takes entities, and what they name but is not known yet. */
  async function takeAll(
    given: readonly Entity[],
    heardAt: number | undefined,
  ): Promise<RequestTrouble | undefined> {
    const known = given.filter(({ type }) => listOf(type).some((one) => types.has(one)))
    for (const entity of known) if (!isObservation(entity)) entities.put(entity)
    const trouble = await readNamed(known)
    if (trouble !== undefined) return trouble
    const sorted = known.toSorted((a, b) => orderOf(a) - orderOf(b))
    for (const [i, entity] of sorted.entries()) {
      streams.take(entity)
      if (isObservation(entity)) count(entity, heardAt)
      if (i % limits.clientReadPage.value === limits.clientReadPage.value - 1) await nextTurn()
    }
    return undefined
  }

  /** Reads the unknown entities that others name: the stream of an observation, its sensor, and so on. */
  async function readNamed(given: readonly Entity[]): Promise<RequestTrouble | undefined> {
    for (let named = unknownOf(given); named.length > 0; ) {
      const found = await readByIds(named, [...types], client)
      if ('trouble' in found) return found.trouble
      const read = ports.parse(found.value, clock.now()).entities
      for (const id of named) if (!read.some((one) => one.id === id)) missing.add(id)
      if (missing.size > limits.qualityIdsKept.value) missing.clear()
      for (const entity of read) entities.put(entity)
      for (const entity of read.toSorted((a, b) => orderOf(a) - orderOf(b))) streams.take(entity)
      named = unknownOf(read)
    }
    return undefined
  }

  const unknownOf = (given: readonly Entity[]): string[] => [
    ...new Set(
      given
        .flatMap(namedBy)
        .filter((id) => !missing.has(id) && streams.get(id) === undefined && entities.get(id) === undefined),
    ),
  ]

  /** Counts the current value of an observation entity, unless it was counted. */
  function count(entity: Entity, heardAt: number | undefined): void {
    const value = resultOf(entity)
    if (value !== undefined) countValue(entity.id, value, heardAt)
  }

  function countValue(id: string, { time, value }: PastValue, heardAt: number | undefined): void {
    const stream = streams.observedBy(id)
    if (stream === undefined || isCounted(stream, time)) return
    const mayMiss = !hasRead || progress.isReading || ports.isBehind()
    if (mayMiss && !knownUntil.has(stream.n)) knownUntil.set(stream.n, stream.record.lastAt)
    counted.add(stream.n, time)
    streams.noteUnsaved(stream)
    // A value observed before this process began may have waited for it.
    const committedAt = time < ports.upSince ? undefined : heardAt
    streams.observe(id, { time, value, committedAt })
  }

  const isCounted = ({ n, record: { lastAt } }: Stream, time: number): boolean =>
    lastAt !== undefined && time <= lastAt && counted.has(n, time)

  /** Reads the observations that were missed, oldest first, up to the current one. */
  async function catchUp(entity: Entity): Promise<void> {
    const stream = streams.observedBy(entity.id)
    const current = resultOf(entity)
    if (stream === undefined || current === undefined || !hasHistory) return
    // A report that came before this read may be newer than what was missed.
    const lastAt = knownUntil.has(stream.n) ? knownUntil.get(stream.n) : stream.record.lastAt
    if (lastAt !== undefined && current.time <= lastAt) return
    const from = lastAt === undefined ? clock.now() - dayMs : lastAt + 1
    const slices: (readonly PastValue[])[] = []
    const key = { id: entity.id, name: sosa.hasSimpleResult, dataset: '' }
    try {
      await client.pace()
      for await (const slice of streamHistory(port, key, {
        from,
        last: limits.qualityHistoryMax.value,
        signal,
      }))
        slices.push(slice)
    } catch {
      // Without history at the broker, only the current value counts.
      hasHistory = false
      return
    }
    for (const slice of slices.toReversed()) {
      for (const past of slice) countValue(entity.id, past, undefined)
      progress = { ...progress, observations: progress.observations + slice.length }
      await nextTurn()
    }
  }

  async function takePage(items: readonly Json[], requestedAt: number): Promise<RequestTrouble | undefined> {
    for (let at = 0; at < items.length; at += limits.clientReadPage.value) {
      const some = ports.parse(items.slice(at, at + limits.clientReadPage.value), clock.now()).entities
      const current = some.filter(({ id }) => (reported.get(id) ?? Number.NEGATIVE_INFINITY) < requestedAt)
      const observations = current.filter(isObservation)
      const trouble =
        (await takeAll(
          current.filter((one) => !isObservation(one)),
          undefined,
        )) ?? (await readNamed(observations))
      if (trouble !== undefined) return trouble
      for (const entity of observations) {
        streams.take(entity)
        await catchUp(entity)
        count(entity, undefined)
      }
      progress = { ...progress, entities: progress.entities + some.length }
      await store.save()
      await nextTurn()
    }
    return undefined
  }

  /** Deletes what the broker no longer has. Pages shift, so entities that none contained are requested. */
  async function deleteMissing(seen: ReadonlySet<string>): Promise<RequestTrouble | undefined> {
    const unseen = [...entities.ids(), ...[...streams.all()].map(({ id }) => id)].filter(
      (id) => !seen.has(id),
    )
    const found = await readByIds([...new Set(unseen)], [...types], client)
    if ('trouble' in found) return found.trouble
    const left = new Set(ports.parse(found.value, clock.now()).entities.map(({ id }) => id))
    for (const id of unseen) if (!left.has(id) && !reported.has(id)) remove(id)
    await store.save()
    return undefined
  }

  function remove(id: string): void {
    entities.delete(id)
    streams.delete(id)
  }

  return Object.freeze({
    progress: () => progress,

    /** Reads all that exists. */
    async read(): Promise<RequestTrouble | undefined> {
      progress = { isReading: true, entities: 0, total: 0, observations: 0 }
      hasHistory = true
      reported.clear()
      missing.clear()
      const seen = new Set<string>()
      let problem: RequestTrouble | undefined
      const trouble = await readAll(readOrder, { client, monotonic: clock.monotonic }, async (page) => {
        for (const item of page.items) seen.add(String((item as { id?: unknown }).id))
        progress = { ...progress, total: progress.total + (page.total ?? 0) }
        problem ??= await takePage(page.items, page.requestedAt)
      })
      const failed = trouble ?? problem ?? (await deleteMissing(seen))
      progress = { ...progress, isReading: false }
      if (failed === undefined) {
        hasRead = true
        knownUntil.clear()
      }
      return failed
    },

    /**
     * Takes what was reported, and settles when it is on disk.
     * @param heardAt when the broker reported it, ms.
     */
    async receive(
      { entities: given, deleted }: BrokerItems,
      heardAt: number,
    ): Promise<RequestTrouble | undefined> {
      for (const { id } of given) missing.delete(id)
      if (progress.isReading) {
        if (reported.size > limits.qualityIdsKept.value) reported.clear()
        for (const { id } of given) reported.set(id, clock.monotonic())
      }
      const trouble = await takeAll(given, heardAt)
      if (trouble !== undefined) return trouble
      for (const id of deleted) remove(id)
      await store.save()
      return undefined
    },
  })
}

const isObservation = ({ type }: Entity): boolean => listOf(type).includes(iotStream.StreamObservation)

const orderOf = ({ type }: Entity): number =>
  Math.max(...listOf(type).map((one) => readOrder.indexOf(one as (typeof readOrder)[number])))

/** Ids of the entities without which an entity cannot be rated. */
const namedBy = (entity: Entity): string[] => {
  const stream = linksOf(entity, iotStream.belongsTo)
  return stream.length > 0
    ? stream
    : linksOf(
        entity,
        iotStream.generatedBy,
        iotStream.providedBy,
        sosa.madeBySensor,
        sosa.observes,
        iotStream.observes,
        sosa.isHostedBy,
      )
}

/** The value of an observation entity; undefined if it has no time. */
function resultOf(entity: Entity): PastValue | undefined {
  const result = timedResult(entity)
  return result && { time: result.time, value: result.value, committed: undefined }
}
