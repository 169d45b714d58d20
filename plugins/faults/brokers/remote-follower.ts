/**
 * A remote broker as the watched one, over HTTP alone: subscriptions there, a full read, and notifications to
 * a callback whose path ends with a secret. After an interruption the observations since the newest judged
 * one are read from the history of the broker, if it has any.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import { type BrokerItems, nonEmpty } from '#client/requests/broker-messages.ts'
import { readAll } from '#client/requests/broker-reading.ts'
import type { RequestTrouble } from '#client/requests/broker-requests.ts'
import { type BrokerSettings, openRemoteBroker } from '#client/requests/chosen-broker.ts'
import { bodyItems, createItemReader } from '#client/requests/received-entities.ts'
import { timedResult } from '#client/streams/stream-entities.ts'
import { createBrokerFollower, type FollowedFacts } from '#client/subscriptions/broker-follower.ts'
import { checkSignature, signatureOf } from '#client/subscriptions/callback-signature.ts'
import { type Host, type Json, streamHistory } from '#contract'
import { iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { LogFollowerPorts } from './log-follower.ts'
import type { WatchedBroker } from './watched-broker.ts'
import type { SubscriptionFacts } from './watched-broker-statements.ts'
import { subscriptionIds, watched } from './watches.ts'

export interface RemoteFollowerPorts
  extends Pick<LogFollowerPorts, 'streams' | 'watching' | 'saving' | 'table' | 'restored' | 'missed'> {
  readonly host: Host<BrokerSettings, 'remote'>
  readonly facts: SubscriptionFacts
}

/** A longer time between two observations is looked up in the history of the broker, in intervals. */
const gapIntervals = 1.5

/** Entities that describe come before those that they describe; qualities and observations come last. */
const readOrder = [
  sosa.Platform,
  sosa.ObservableProperty,
  sosa.Sensor,
  iotStream.IotStream,
  qoi.Quality,
  iotStream.StreamObservation,
]
const orderOf = ({ type }: Entity): number =>
  Math.max(...listOf(type).map((one) => readOrder.indexOf(one as (typeof readOrder)[number])))

export function createRemoteFollower(ports: RemoteFollowerPorts): WatchedBroker {
  const { host, streams, watching, saving, table, restored, missed, facts: row } = ports
  const { clock, log, signal } = host
  const { port, client } = openRemoteBroker(host)
  const parse = createItemReader()
  let hasHistory = true
  let taking: Promise<void> = Promise.resolve()
  let waiting = 0
  /** Entities that describe streams, as last reported. */
  const entities = new Map<string, Entity>()
  let facts: FollowedFacts = { subscriptions: row.ids() }
  let state: 'following' | RequestTrouble['kind'] | undefined
  let notifications = 0
  let isReading = true
  /** Since when notifications may be missing; undefined while the broker is followed. */
  let unheardSince = table.cursor()?.committed

  /** Takes entities, those that describe others first. */
  async function take(given: readonly Entity[]): Promise<void> {
    noteUnheard()
    for (const entity of given.toSorted((a, b) => orderOf(a) - orderOf(b))) {
      if (orderOf(entity) < 0) continue
      if (!listOf(entity.type).includes(qoi.Quality)) entities.set(entity.id, entity)
      streams.take(entity)
      if (hasGap(entity)) await catchUp(entity)
      observe(entity)
    }
  }

  /** Whether earlier observations may be unknown: a notification has only the newest of several. */
  function hasGap(entity: Entity): boolean {
    const { record, metadata } = streams.observedBy(entity.id) ?? {}
    const result = timedResult(entity)
    if (!hasHistory || record?.last === undefined || result === undefined) return false
    return result.time - record.last.time > gapIntervals * (metadata?.intervalMs ?? 0)
  }

  /** Judges the current value of an observation entity. An older one is a notification that was delayed. */
  function observe(entity: Entity): void {
    const stream = streams.observedBy(entity.id)
    const result = timedResult(entity)
    if (stream === undefined || result === undefined) return
    if (stream.record.last !== undefined && result.time <= stream.record.last.time) return
    watching.observe(stream, entity.id, { ...result, committedAt: clock.now() })
    saving.count(1)
  }

  /** Judges the observations that were missed, oldest first. A stream that is new learns them instead. */
  async function catchUp(entity: Entity): Promise<void> {
    const last = streams.observedBy(entity.id)?.record.last
    const result = timedResult(entity)
    if (last === undefined || result === undefined || result.time <= last.time) return
    const slices: (readonly { readonly time: number; readonly value: Json }[])[] = []
    const key = { id: entity.id, name: sosa.hasSimpleResult, dataset: '' }
    const range = { from: last.time + 1, last: limits.faultsHistoryMax.value, signal }
    try {
      await client.pace()
      for await (const slice of streamHistory(port, key, range)) slices.push(slice)
    } catch (error) {
      hasHistory = false
      log.debug('plugin.failed', { plugin: 'faults', during: `the history of ${entity.id}`, error })
    }
    const stream = streams.observedBy(entity.id)
    if (stream === undefined) return
    // The broker has recorded all along: a gap in its history is one of the stream.
    if (slices.length > 0) stream.record.downMs = 0
    for (const value of slices.toReversed().flat())
      watching.observe(stream, entity.id, { ...value, committedAt: clock.now() })
  }

  async function read(): Promise<RequestTrouble | undefined> {
    isReading = true
    hasHistory = true
    const seen = new Set<string>()
    const trouble = await readAll(readOrder, { client, monotonic: clock.monotonic }, async ({ items }) => {
      for (let at = 0; at < items.length; at += limits.clientReadPage.value) {
        const page = parse(items.slice(at, at + limits.clientReadPage.value), clock.now()).entities
        for (const { id } of page) seen.add(id)
        await inTurn(() => take(page))
        await nextTurn()
      }
    })
    isReading = false
    if (trouble !== undefined) return trouble
    for (const id of [...entities.keys()]) if (!seen.has(id)) remove(id)
    for (const { id } of [...streams.all()]) if (!seen.has(id)) remove(id)
    saving.soon()
    log.info('faults.read', { streams: streams.size() })
    return undefined
  }

  async function restore(): Promise<void> {
    const yieldIfDue = createYield(clock.monotonic, limits.faultsSaveSliceMs.value)
    for (const { detector, ...stored } of table.all()) {
      const stream = streams.restore(stored)
      watching.begin(stream, detector)
      restored(stream)
      await yieldIfDue()
      if (signal.aborted) return
    }
  }

  /** Excuses the time since the broker was followed, before anything that arrives is judged. */
  function noteUnheard(): void {
    if (unheardSince === undefined) return
    const to = clock.now()
    missed({ from: unheardSince, to })
    unheardSince = to
  }

  /** Runs one work after the other, so that observations of a stream stay in order. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    waiting++
    const done = taking.then(work).finally(() => waiting--)
    taking = done.catch(() => undefined)
    return done
  }

  function remove(id: string): void {
    entities.delete(id)
    streams.delete(id)
  }

  const followed = createBrokerFollower({
    plugin: 'faults',
    watches: watched,
    idPrefix: subscriptionIds,
    client,
    row: {
      state: () => state,
      facts: () => facts,
      set(change) {
        if (change.state === 'following') {
          noteUnheard()
          unheardSince = undefined
        } else if (change.state !== undefined && state === 'following')
          unheardSince = Date.parse(facts.heardAt ?? '') || clock.now()
        state = change.state ?? state
        if (change.facts === undefined) return
        const before = JSON.stringify(facts.subscriptions)
        facts = change.facts
        if (JSON.stringify(facts.subscriptions) !== before) row.saveIds(facts.subscriptions ?? {})
      },
    },
    read,
    isNotified: () => notifications > 0,
    base: () => host.settings.callbackUrl ?? host.addresses()[0],
    callback: (base, purpose) =>
      `${base}/monitoring/callback/${purpose}/${signatureOf(row.secret(), purpose)}`,
    clock,
    log,
    signal,
  })

  function received(body: Json): BrokerItems {
    const { items, context } = bodyItems(body)
    return nonEmpty(parse(items, clock.now(), context))
  }

  return Object.freeze({
    port,
    entityOf: (id) => entities.get(id),
    cursor: () => (isReading ? undefined : { position: 0, committed: clock.now() }),
    isBehind: () => isReading || state !== 'following',
    async start() {
      // Notifications wait meanwhile.
      await inTurn(restore)
      if (!signal.aborted) followed.start()
    },
    async receive(body, secret) {
      if (secret !== undefined) {
        checkSignature(secret.signature, signatureOf(row.secret(), secret.purpose))
        notifications++
      }
      const { entities: given, deleted } = received(body)
      if (waiting >= limits.faultsNotificationsMax.value)
        throw new GatewayError('http.busy', 'too many notifications are queued', { retryAfterSeconds: 1 })
      await inTurn(async () => {
        await take(given)
        for (const id of deleted) remove(id)
      })
      if (secret !== undefined) followed.reportHeard()
    },
    status: () => ({ broker: port.address, state: state ?? 'new', ...facts, isReading, notifications }),
    complaints: followed.complaints,
    async close() {
      await followed.close()
      port.close()
    },
  } satisfies WatchedBroker)
}
