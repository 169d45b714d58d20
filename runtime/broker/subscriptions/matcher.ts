/**
 * The matcher selects the subscriptions that a change concerns. It runs while a work is decided, on exact
 * values before and after. It stages one delivery per match in the same commit, so that a change and its
 * deliveries are atomic.
 *
 * Candidates come from the subscription index; each stream caches its own until the set of subscriptions
 * changes. Without subscriptions, an observation costs one comparison.
 */

import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { type DocumentDraft, type EntityChange, timesOf } from '#broker/state/document-drafts.ts'
import { typesOf } from '#broker/state/streams.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { matchesEntity } from '#ngsi-ld/query/entity-selector.ts'
import type { Follow, QueryPredicate } from '#ngsi-ld/query/query-match.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import { type EntityReport, reportableChanges } from '#ngsi-ld/subscription/notification-data.ts'
import {
  isActive,
  isFollower,
  isUplink,
  type NotificationTrigger,
  type Subscription,
  streamUri,
} from '#ngsi-ld/subscription/subscription.ts'
import { type ChangeBudget, createChangeBudget } from '#ngsi-ld/values/pattern.ts'
import { createDeliveryOutbox, nothingObserved, type OutboxPorts } from './delivery-outbox.ts'
import { createSubscriptionIndex, type MatchCandidates } from './subscription-index.ts'
import type { ReportedEntity } from './subscription-requests.ts'
import type { SubscriptionStatistics } from './subscription-statistics.ts'
import { createThrottleWindows, type Throttled, unthrottled } from './throttle-windows.ts'

/** A subscription in the matcher. */
export interface Registered extends Throttled {
  /** Number of the subscription, in deliveries. */
  readonly i: number
  readonly subscription: Subscription
  readonly endpoint: string
  /** q, geoQ and scopeQ as a test; absent without them, so that the entity need not be read. */
  readonly test: QueryPredicate | undefined
  /** Counters updated by the dispatcher and shown by GET. */
  readonly statistics: SubscriptionStatistics
}

/** The content of a periodic delivery, which names no entity itself. */
export interface PeriodReport {
  readonly ids: readonly string[]
}

/** A new value of a stream. */
export interface NewValue {
  readonly time: number
  readonly value: Json
  readonly previous: Json
}

export interface MatcherPorts extends OutboxPorts {
  readonly clock: Clock
  readonly metrics: Metrics
  /** The staged entity of a stream, for subscriptions with q or geoQ. */
  readonly find: (stage: Stage, id: string) => DocumentDraft | undefined
  /** Called when an entity matched within the throttling window: `release` is due at its end. */
  readonly onHeld: (registered: Registered) => void
}

export function createMatcher(ports: MatcherPorts) {
  const all = new Map<number, Registered>()
  /** How many of all belong to components of this gateway. */
  let followers = 0
  const deliver = createDeliveryOutbox(ports)
  const budget = createChangeBudget()
  const index = createSubscriptionIndex<Registered>(budget)
  const uncompared = ports.metrics.counter('selvedge_subscriptions_uncompared_total')
  /** The stage of the current decision: q reads linked entities as staged there. */
  let deciding: Stage | undefined
  /** When the current decision began, ms UTC. */
  let now = 0
  const follow: Follow = (id) => {
    const draft = deciding === undefined ? undefined : ports.find(deciding, id)
    return draft && { entity: () => draft.entity, times: () => timesOf(draft) }
  }

  /**
   * @param test replaces q, geoQ and scopeQ. @throws ngsi-ld.not-supported and others if these are invalid.
   */
  function register(
    i: number,
    subscription: Subscription,
    statistics: SubscriptionStatistics,
    test: QueryPredicate | undefined = testOf(subscription, follow, budget),
  ): Registered {
    const registered: Registered = {
      i,
      subscription,
      endpoint: endpointOf(subscription, i),
      test,
      statistics,
      ...unthrottled(),
    }
    restore(registered)
    return registered
  }

  /** Registers again what was unregistered or replaced. */
  function restore(registered: Registered): void {
    unregister(registered.i)
    all.set(registered.i, registered)
    if (isFollower(registered.subscription)) followers++
    // Periodic ones are triggered by time only; uplinks and components follow the log.
    const { subscription } = registered
    const { timeInterval } = subscription
    if (timeInterval === undefined && !isUplink(subscription) && !isFollower(subscription))
      index.add(registered)
  }

  /** Replaces a subscription by its changed version. @throws as `register`, and then nothing has changed. */
  function replace(before: Registered, subscription: Subscription): Registered {
    const after = register(before.i, subscription, before.statistics)
    const { lastMatchAt, lastBatchAt, held } = before
    return Object.assign(after, { lastMatchAt, lastBatchAt, held })
  }

  function unregister(i: number): void {
    const registered = all.get(i)
    if (registered === undefined) return
    all.delete(i)
    if (isFollower(registered.subscription)) followers--
    index.remove(registered)
  }

  /** Candidates for a change, without those whose idPattern exceeds the budget. Tests get a new budget. */
  function found(
    id: string,
    types: readonly string[],
    names: readonly string[],
  ): MatchCandidates<Registered> {
    budget.renew()
    const refused = budget.refused()
    const all = index.find(id, types, names)
    uncompared.value += budget.refused() - refused
    budget.renew()
    return all
  }

  /** Candidates for values of a stream, found again only when subscriptions have changed. */
  function foundFor(stream: LiveStream, names: readonly string[]): MatchCandidates<Registered> {
    if (stream.candidatesVersion !== index.version()) {
      const { plain, valued } = found(stream.entity.id, stream.entity.types, names)
      stream.candidates = { plain: plain.filter(isTriggeredByValues), valued }
      stream.candidatesVersion = index.version()
    }
    return stream.candidates as MatchCandidates<Registered>
  }

  /** Call before the tests of one change. */
  function begin(stage: Stage): void {
    budget.renew()
    deciding = stage
    now = ports.clock.now()
  }

  const withMore = (
    { plain }: MatchCandidates<Registered>,
    more: readonly Registered[],
  ): readonly Registered[] => (more.length === 0 ? plain : [...plain, ...more])

  /** Matches a new value of a stream; `previous` is the value it replaced. */
  function observation(stage: Stage, stream: LiveStream, { time, value, previous }: NewValue): void {
    if (all.size === 0) return
    begin(stage)
    const names = stream.mirror === undefined ? [stream.name] : [stream.name, stream.mirror]
    const few = foundFor(stream, names)
    let draft = few.valued.length === 0 ? undefined : ports.find(stage, stream.entity.id)
    const more = draft === undefined ? [] : index.valued(few, draft.entity, names).filter(isTriggeredByValues)
    for (const candidate of withMore(few, more)) {
      if (candidate.test !== undefined) draft ??= ports.find(stage, stream.entity.id)
      if (!matches(candidate, draft?.entity, draft && timesOf(draft))) continue
      if (windows.holds(stage, candidate, { id: stream.entity.id, report: undefined })) continue
      deliver(stage, candidate, {
        entity: stream.entity.id,
        stream: stream.s,
        t: time,
        value: JSON.stringify(value),
        body: candidate.subscription.notification.showChanges === true ? JSON.stringify(previous) : null,
      })
    }
  }

  function change(stage: Stage, happened: EntityChange, times: SystemTimes): void {
    if (all.size === 0) return
    begin(stage)
    const entity = happened.after ?? happened.before!
    const names = happened.changes.map(({ name }) => name)
    const few = found(happened.id, typesOf(entity), names)
    const more = few.valued.length === 0 ? [] : index.valued(few, entity, names)
    const candidates = withMore(few, more)
    if (candidates.length === 0) return
    // One change may match thousands of subscriptions: what they have in common is computed once.
    const triggers = triggersOf(happened, undefined)
    let held: { readonly id: string; readonly report: EntityReport } | undefined
    const bodies = new Map<boolean, string>()
    for (const candidate of candidates) {
      const { watchedAttributes } = candidate.subscription
      const watched = watchedAttributes === undefined ? triggers : triggersOf(happened, watchedAttributes)
      if (!isTriggeredBy(candidate, watched) || !matches(candidate, entity, times)) continue
      held ??= { id: happened.id, report: reportOf(happened, times, stage.at, false) }
      if (windows.holds(stage, candidate, held)) continue
      const showsChanges = candidate.subscription.notification.showChanges === true
      const body =
        bodies.get(showsChanges) ?? JSON.stringify(reportOf(happened, times, stage.at, showsChanges))
      bodies.set(showsChanges, body)
      deliver(stage, candidate, { ...nothingObserved, entity: happened.id, body })
    }
  }

  /** Stages the deliveries of a period: one notification for each page of entity ids. */
  function period(stage: Stage, registered: Registered, pages: readonly (readonly string[])[]): void {
    const { statistics } = registered
    const before = statistics.lastPeriodAt
    statistics.lastPeriodAt = stage.at
    stage.undone(() => {
      statistics.lastPeriodAt = before
    })
    for (const ids of pages) {
      const body = JSON.stringify({ ids } satisfies PeriodReport)
      deliver(stage, registered, { ...nothingObserved, entity: '', body })
    }
    stage.write('subscription.stats', JSON.stringify(statistics), registered.i)
  }

  /** Matches an entity reported by a context source, and stages its delivery. */
  function report(stage: Stage, registered: Registered, { report, combined }: ReportedEntity): void {
    begin(stage)
    const { entity } = report
    const { entities = [] } = registered.subscription
    const types = typesOf(entity)
    if (entities.length > 0 && !entities.some((each) => matchesEntity(each, entity.id, types))) return
    // For a deleted entity, only the source could evaluate the conditions.
    const candidate = combined === undefined ? { ...registered, test: undefined } : registered
    if (!matches(candidate, combined?.entity, combined?.times)) return
    if (windows.holds(stage, registered, { id: entity.id, report })) return
    const body = JSON.stringify(report)
    deliver(stage, registered, { ...nothingObserved, entity: entity.id, body })
  }

  /** Whether the subscription is active and its filters accept the entity. */
  function matches(
    { subscription, test }: Registered,
    entity: Entity | undefined,
    times: SystemTimes | undefined,
  ): boolean {
    if (!isActive(subscription, now)) return false
    return test === undefined || (entity !== undefined && holds(test, entity, times))
  }

  /** A test that exceeds the budget does not hold, also if it is negated. */
  function holds(test: QueryPredicate, entity: Entity, times: SystemTimes | undefined): boolean {
    const refused = budget.refused()
    const isMet = test(entity, times)
    if (budget.refused() === refused) return isMet
    uncompared.value++
    return false
  }

  const windows = createThrottleWindows<Registered>({
    ...ports,
    matches: (stage, registered, entity, times) => {
      begin(stage)
      return matches(registered, entity, times)
    },
    notify: (stage, registered, report) =>
      deliver(stage, registered, {
        ...nothingObserved,
        entity: report.entity.id,
        body: JSON.stringify(report),
      }),
  })

  return Object.freeze({
    register,
    replace,
    restore,
    unregister,
    get: (i: number) => all.get(i),
    all: () => all.values(),
    /** Number of subscriptions of its kind: those of components are counted separately. */
    count: (like: Subscription) => (isFollower(like) ? followers : all.size - followers),
    /** Number of subscriptions evaluated one by one so far, without those that the index excluded. */
    evaluated: index.evaluated,
    observation,
    change,
    deliver,
    period,
    /** Ends the throttling window of a subscription: notifies the entities that matched within it. */
    release: windows.release,
    report,
  })
}

export type Matcher = ReturnType<typeof createMatcher>

/** The endpoint of its deliveries; a subscription of a streaming consumer has its own list. */
function endpointOf({ notification }: Subscription, i: number): string {
  const { uri } = notification.endpoint
  return uri === streamUri ? `${streamUri}:${i}` : uri
}

function testOf(
  { q, geoQ, scopeQ }: Subscription,
  follow: Follow,
  budget: ChangeBudget,
): QueryPredicate | undefined {
  if (q === undefined && geoQ === undefined && scopeQ === undefined) return undefined
  return compileSearch({ q, geo: geoQ, scope: scopeQ }, follow, budget)
}

const isTriggeredBy = ({ subscription }: Registered, triggers: readonly NotificationTrigger[]): boolean =>
  triggers.some((trigger) => subscription.notificationTrigger.includes(trigger))

const isTriggeredByValues = (registered: Registered): boolean =>
  isTriggeredBy(registered, ['attributeUpdated', 'entityUpdated'])

const entityTriggers = {
  created: 'entityCreated',
  updated: 'entityUpdated',
  deleted: 'entityDeleted',
} as const

/**
 * The notificationTriggers of a change (GS CIM 009, 5.2.12): that of the entity, and those of its changed
 * attributes, or only of the `watched` ones.
 */
function triggersOf(
  { kind, changes }: EntityChange,
  watched: readonly string[] | undefined,
): readonly NotificationTrigger[] {
  const triggers = new Set<NotificationTrigger>([entityTriggers[kind]])
  for (const { name, before, after } of changes) {
    if (watched?.includes(name) === false) continue
    if (before === undefined) triggers.add('attributeCreated')
    else triggers.add(after === undefined ? 'attributeDeleted' : 'attributeUpdated')
  }
  return [...triggers]
}

/** The content of a delivery that reports a change; with previous values if a subscription requests them. */
function reportOf(
  happened: EntityChange,
  times: SystemTimes,
  at: number,
  showsChanges: boolean,
): EntityReport {
  const { kind, before, after, changes } = happened
  const isDeleted = kind === 'deleted'
  const reportable = reportableChanges(changes, showsChanges)
  const entity = after ?? { id: happened.id, type: before!.type }
  return {
    entity,
    times,
    at,
    ...(reportable.length > 0 ? { changes: reportable } : {}),
    ...(isDeleted ? { isDeleted } : {}),
  }
}
