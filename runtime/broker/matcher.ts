/**
 * The matcher: which subscriptions does this change concern? It runs while a work is decided, on exact values before
 * and after, and stages one delivery per match in the same commit, so that a match and what it owes are one fact.
 *
 * Subscriptions are indexed by type and id; each stream remembers its candidates until the set of subscriptions
 * changes. Where nobody subscribes, an observation costs one comparison.
 */
import type { Clock } from '#base/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import { compileGeoQuery } from '#ngsi-ld/geo.ts'
import { compileQuery, type QueryPredicate } from '#ngsi-ld/query-match.ts'
import { matchesEntity } from '#ngsi-ld/selection.ts'
import { isActive, type NotificationTrigger, type Subscription } from '#ngsi-ld/subscription.ts'
import type { Delivery } from '#store/deliveries.ts'
import { type Draft, type EntityChange, timesOf } from './documents.ts'
import type { LiveStream } from './live.ts'
import type { Stage } from './stage.ts'
import { typesOf } from './streams.ts'
import type { SubscriptionStatistics } from './subscription-statistics.ts'
import type { SystemTimes } from './types.ts'

/** A subscription as the matcher holds it. */
export interface Registered {
  /** Number of the subscription, in deliveries. */
  readonly i: number
  readonly subscription: Subscription
  readonly endpoint: string
  /** q and geoQ as a test; absent when there is neither, and then nobody needs to read the entity. */
  readonly test: QueryPredicate | undefined
  /** Counters kept by the dispatcher and shown by GET. */
  readonly statistics: SubscriptionStatistics
  /** Monotonic ms of the last match, for throttling. */
  lastMatchAt: number
}

/** What is owed for a change of an entity: enough to render it when it is sent, whatever happened since. */
export interface OwedEntity {
  /** The entity after the change; only id and type when it was deleted. */
  readonly entity: Entity
  readonly times: SystemTimes
  /** Attributes that the change took away whole. */
  readonly deleted?: readonly string[]
  readonly deletedAt?: number
}

type Shelves = Map<string, Set<Registered>>

export type CommittedDeliveries = (deliveries: readonly Delivery[]) => void

export interface MatcherPorts {
  readonly clock: Clock
  /** Highest delivery number used so far. */
  readonly lastDelivery: number
  /** The entity of a stream as staged, for subscriptions with q or geoQ. */
  readonly find: (stage: Stage, id: string) => Draft | undefined
  /** Called after the flush. */
  readonly onDeliveries: CommittedDeliveries
}

export function createMatcher(ports: MatcherPorts) {
  const all = new Map<number, Registered>()
  const byType: Shelves = new Map()
  const byId: Shelves = new Map()
  /** Subscriptions that no single type or id can find. */
  const broad = new Set<Registered>()
  let version = 0
  let lastDelivery = ports.lastDelivery

  /** `test` stands in for q and geoQ. @throws ngsi-ld.not-supported and the like when those cannot be compiled. */
  function register(
    i: number,
    subscription: Subscription,
    statistics: SubscriptionStatistics,
    test: QueryPredicate | undefined = testOf(subscription),
  ): Registered {
    const registered: Registered = {
      i,
      subscription,
      endpoint: subscription.notification.endpoint.uri,
      test,
      statistics,
      lastMatchAt: Number.NEGATIVE_INFINITY,
    }
    restore(registered)
    return registered
  }

  /** Puts back what was unregistered or replaced. */
  function restore(registered: Registered): void {
    unregister(registered.i)
    all.set(registered.i, registered)
    const shelves = shelvesOf(registered)
    if (shelves.length === 0) broad.add(registered)
    for (const [index, key] of shelves) {
      const shelf = index.get(key)
      if (shelf === undefined) index.set(key, new Set([registered]))
      else shelf.add(registered)
    }
    version++
  }

  /** A changed subscription in the place of another. @throws as `register`, and then nothing has changed. */
  function replace(before: Registered, subscription: Subscription): Registered {
    const after = register(before.i, subscription, before.statistics)
    after.lastMatchAt = before.lastMatchAt
    return after
  }

  function unregister(i: number): void {
    const registered = all.get(i)
    if (registered === undefined) return
    all.delete(i)
    broad.delete(registered)
    for (const [index, key] of shelvesOf(registered)) {
      const shelf = index.get(key)
      shelf?.delete(registered)
      if (shelf?.size === 0) index.delete(key)
    }
    version++
  }

  /** Where a subscription stands: for each selector by its ids, else by its plain type. Empty where one has neither. */
  function shelvesOf({ subscription }: Registered): (readonly [index: Shelves, key: string])[] {
    const found: (readonly [index: Shelves, key: string])[] = []
    for (const { ids, types } of subscription.entities ?? []) {
      if (ids !== undefined) for (const id of ids) found.push([byId, id])
      else if (types?.kind === 'type') found.push([byType, types.name])
      else return []
    }
    return found
  }

  /** Subscriptions whose selectors take this entity and that watch one of these attributes. */
  function candidates(id: string, types: readonly string[], names: readonly string[]): Registered[] {
    const found = new Set<Registered>(broad)
    for (const registered of byId.get(id) ?? []) found.add(registered)
    for (const type of types) for (const registered of byType.get(type) ?? []) found.add(registered)
    return [...found].filter(
      ({ subscription }) => selects(subscription, id, types) && watches(subscription, names),
    )
  }

  function observation(stage: Stage, stream: LiveStream, time: number, value: Json): void {
    if (all.size === 0) return
    if (stream.candidatesVersion !== version) {
      const names = stream.mirror === undefined ? [stream.name] : [stream.name, stream.mirror]
      const { id, types } = stream.entity
      stream.candidates = candidates(id, types, names).filter(({ subscription }) =>
        triggeredBy(subscription, 'attributeUpdated', 'entityUpdated'),
      )
      stream.candidatesVersion = version
    }
    let draft: Draft | undefined
    for (const candidate of stream.candidates as readonly Registered[]) {
      if (candidate.test !== undefined) draft ??= ports.find(stage, stream.entity.id)
      if (!wants(stage, candidate, draft?.entity, draft && timesOf(draft))) continue
      owe(stage, candidate, {
        entity: stream.entity.id,
        stream: stream.s,
        t: time,
        value: JSON.stringify(value),
        body: null,
      })
    }
  }

  function change(stage: Stage, happened: EntityChange, times: SystemTimes): void {
    if (all.size === 0) return
    const entity = happened.after ?? happened.before!
    const names = happened.changes.map(({ name }) => name)
    const triggers = triggersOf(happened)
    let body: string | undefined
    for (const candidate of candidates(happened.id, typesOf(entity), names)) {
      if (
        !triggeredBy(candidate.subscription, ...triggersWatched(candidate.subscription, happened, triggers))
      )
        continue
      if (!wants(stage, candidate, entity, times)) continue
      body ??= JSON.stringify(owedOf(happened, entity, times, stage.at))
      owe(stage, candidate, { entity: happened.id, stream: null, t: null, value: null, body })
    }
  }

  /** True when the subscription is live, not throttled, and its filters take the entity. */
  function wants(
    stage: Stage,
    candidate: Registered,
    entity: Entity | undefined,
    times: SystemTimes | undefined,
  ): boolean {
    const { subscription, statistics } = candidate
    if (!isActive(subscription, ports.clock.now())) return false
    if (candidate.test !== undefined && (entity === undefined || !candidate.test(entity, times))) return false
    if (subscription.throttling === undefined) return true
    const before = candidate.lastMatchAt
    const now = ports.clock.monotonic()
    if (now - before < subscription.throttling * 1000) {
      statistics.timesThrottled++
      stage.undone(() => void statistics.timesThrottled--)
      return false
    }
    candidate.lastMatchAt = now
    stage.undone(() => {
      candidate.lastMatchAt = before
    })
    return true
  }

  /** Stages a delivery: of a match, or what somebody else owes through the same outbox. */
  function owe(
    stage: Stage,
    candidate: Pick<Registered, 'i' | 'endpoint'>,
    what: Omit<Delivery, 'd' | 'sub' | 'endpoint' | 'at'>,
  ): void {
    const delivery: Delivery = {
      d: ++lastDelivery,
      sub: candidate.i,
      endpoint: candidate.endpoint,
      at: stage.at,
      ...what,
    }
    const { d, sub, endpoint, entity, at, stream, t, value, body } = delivery
    stage.write('delivery.insert', d, sub, endpoint, entity, at, stream, t, value, body)
    let owed = stage.scratch.get('deliveries') as Delivery[] | undefined
    if (owed === undefined) {
      const list: Delivery[] = []
      owed = list
      stage.scratch.set('deliveries', list)
      stage.published(() => ports.onDeliveries(list))
    }
    owed.push(delivery)
  }

  return Object.freeze({
    register,
    replace,
    restore,
    unregister,
    get: (i: number) => all.get(i),
    all: () => all.values(),
    count: () => all.size,
    observation,
    change,
    owe,
  })
}

export type Matcher = ReturnType<typeof createMatcher>

function selects(subscription: Subscription, id: string, types: readonly string[]): boolean {
  const selectors = subscription.entities
  return (
    selectors === undefined ||
    selectors.length === 0 ||
    selectors.some((selector) => matchesEntity(selector, id, types))
  )
}

function watches(subscription: Subscription, names: readonly string[]): boolean {
  const watched = subscription.watchedAttributes
  return watched === undefined || names.some((name) => watched.includes(name))
}

function testOf({ q, geoQ }: Subscription): QueryPredicate | undefined {
  if (q === undefined && geoQ === undefined) return undefined
  const query = q === undefined ? undefined : compileQuery(q)
  const geo = geoQ === undefined ? undefined : compileGeoQuery(geoQ)
  return (entity, times) => query?.(entity, times) !== false && geo?.(entity) !== false
}

function triggeredBy(subscription: Subscription, ...triggers: readonly NotificationTrigger[]): boolean {
  return triggers.some((trigger) => subscription.notificationTrigger.includes(trigger))
}

/** What a change is, in the words of notificationTrigger (GS CIM 009, 5.2.12). */
function triggersOf(happened: EntityChange): NotificationTrigger[] {
  if (happened.kind === 'created') return ['entityCreated']
  if (happened.kind === 'deleted') return ['entityDeleted']
  return ['entityUpdated']
}

function triggersWatched(
  subscription: Subscription,
  happened: EntityChange,
  triggers: readonly NotificationTrigger[],
): NotificationTrigger[] {
  if (happened.kind === 'deleted') return [...triggers]
  const watched = happened.changes.filter(
    ({ name }) =>
      subscription.watchedAttributes === undefined || subscription.watchedAttributes.includes(name),
  )
  const of = watched.map(({ before, after }): NotificationTrigger => {
    if (before === undefined) return 'attributeCreated'
    return after === undefined ? 'attributeDeleted' : 'attributeUpdated'
  })
  return [...triggers, ...of]
}

function owedOf(happened: EntityChange, entity: Entity, times: SystemTimes, at: number): OwedEntity {
  if (happened.kind !== 'deleted') {
    const gone = happened.changes.filter(
      ({ name, after }) => after === undefined && entity[name] === undefined,
    )
    return gone.length === 0
      ? { entity, times }
      : { entity, times, deleted: [...new Set(gone.map(({ name }) => name))] }
  }
  return { entity: { id: entity.id, type: entity.type }, times, deletedAt: at }
}
