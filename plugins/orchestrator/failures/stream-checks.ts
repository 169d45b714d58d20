/**
 * Checks subscribed streams: reads their present state at the broker, compares it with what their clients
 * were notified of, and stores a notice for each difference. The notice and the record of it are stored in
 * one transaction, so a kill neither repeats nor loses one. `check-queue.ts` decides when a check runs.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, own } from '#ngsi-ld/values/json.ts'
import type { NotificationOutbox } from '#plugins/orchestrator/notifications/notification-outbox.ts'
import { selectedIds } from '#plugins/orchestrator/subscriptions/subscription-form.ts'
import { type Alternatives, isVirtualSensor, replacedSensor } from './alternatives.ts'
import { createCheckQueue } from './check-queue.ts'
import {
  type Alternative,
  failureNotice,
  healthOf,
  noticeId,
  type OpenFailure,
  recoveryNotice,
  type StreamFailure,
  type Switch,
} from './failure-notices.ts'
import type { FailureStatements, WatchedStream } from './failure-statements.ts'
import type { DescribedStream, StreamReading } from './stream-reading.ts'

export interface StreamChecksPorts {
  readonly table: FailureStatements
  readonly outbox: Pick<NotificationOutbox, 'append'>
  readonly reading: StreamReading
  readonly alternatives: Alternatives
  /** The body of a subscription, and the context of its names. Undefined if it ended or is not watched. */
  readonly subscription: (
    id: string,
  ) => { readonly body: JsonObject; readonly context: JsonObject; readonly isSwitching: boolean } | undefined
  /** A subscription selects observations of a stream that does not exist. */
  readonly missing: (stream: string, subscription: string) => void
  /** A notice was stored. */
  readonly noted: () => void
  /** The alternatives changed that the observations of a subscription come from. */
  readonly switched: (subscription: string) => void
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

type Search = Alternatives['of']

/** A stream at the moment of a check. */
interface PresentStream {
  /** Undefined if it was deleted. */
  readonly found: DescribedStream | undefined
  readonly search: Search
  /** Reads why it fails. @param at when its state became fault. */
  readonly explain: (row: WatchedStream, at: string | undefined) => Promise<StreamFailure>
}

/** Rows of the same stream, of many subscriptions, share what is read for the first one. */
function once<Given extends unknown[], Found>(read: (...given: Given) => Promise<Found>): typeof read {
  let found: Promise<Found> | undefined
  return (...given) => (found ??= read(...given))
}

/** No broker, no alternatives. */
const noSearch = { alternatives: [], isReplaced: true, isComplete: true }

export function createStreamChecks(ports: StreamChecksPorts) {
  const { table, outbox, reading, alternatives, subscription, missing, noted, switched, clock, log, signal } =
    ports
  const queue = createCheckQueue({ checkStream, checkSubscription: resolve, clock, signal })
  /** Why no stream is available; undefined while the broker answers. */
  let outage: StreamFailure | undefined
  /** Streams that are not watched because of the ceiling, by subscription. */
  const unwatched = new Map<string, number>()

  /** Checks a stream for all its subscriptions. */
  async function checkStream(stream: string): Promise<void> {
    const rows = table.ofStream(stream)
    if (rows.length === 0) return
    if (outage === undefined) await settleAll(rows)
    else for (const row of rows) if (row.failure === undefined) await failed(row, outage, alternatives.of)
  }

  /** Finds the streams of a subscription, and checks them. */
  async function resolve(id: string): Promise<void> {
    const given = subscription(id)
    if (given === undefined || outage !== undefined) return
    const selected = await reading.selected(given.body, given.context)
    const described = await reading.describe(selected.keys())
    unwatched.delete(id)
    for (const [stream, observation] of selected) {
      const one = described.get(stream)
      if (one === undefined) missing(stream, id)
      if (one === undefined || subscription(id) === undefined) continue
      const isKnown = table.get(id, stream) !== undefined
      if (!isKnown && table.count() >= limits.orchestratorWatchedMax.value) {
        unwatched.set(id, (unwatched.get(id) ?? 0) + 1)
        continue
      }
      table.put({ subscription: id, stream, observation, sensor: one.sensor, facts: one.facts })
    }
    const rows = table.ofSubscription(id)
    const existing = await settleAll(rows, described)
    // A stream that exists and is not selected any more is not watched.
    for (const { stream, observation } of rows)
      if (existing.has(stream) && !selected.has(stream) && (observation === '' || existing.has(observation)))
        table.removeStream(id, stream)
  }

  /** Compares rows with the present state. Returns the ids of the entities that exist. */
  async function settleAll(
    rows: readonly WatchedStream[],
    known: ReadonlyMap<string, DescribedStream> = new Map(),
  ): Promise<ReadonlySet<string>> {
    const described = new Map([
      ...known,
      ...(await reading.describe(rows.map(({ stream }) => stream).filter((id) => !known.has(id)))),
    ])
    const observations = new Set(await reading.observations(rows.map(({ observation }) => observation)))
    for (const [stream, same] of Map.groupBy(rows, (row) => row.stream)) {
      const [search, explain] = [once(alternatives.of), once(failureOf)]
      const work = same.map((row) => {
        const isObserved = row.observation === '' || observations.has(row.observation)
        return settle(row, { found: isObserved ? described.get(stream) : undefined, search, explain })
      })
      await Promise.all(work)
    }
    return new Set([...described.keys(), ...observations])
  }

  async function settle(known: WatchedStream, { found, search, explain }: PresentStream): Promise<void> {
    const row = found === undefined ? known : described(known, found)
    const health = found && healthOf(found.entity, clock.now())
    if (health?.kind === 'unsure') return
    if (health?.kind === 'works') {
      if (row.failure !== undefined) await recovered(row, row.failure, health.detail)
      return
    }
    const { failure } = row
    if (health === undefined && failure === undefined && isWithdrawn(row))
      table.removeStream(row.subscription, row.stream)
    else if (failure === undefined) await failed(row, await explain(row, health?.at), search)
    else await update(row, failure, search)
  }

  /** The row with the present sensor and facts, such as a place that was not known before. */
  function described(row: WatchedStream, { sensor, facts }: DescribedStream): WatchedStream {
    const now = { ...row, sensor, facts }
    if (sensor !== row.sensor || JSON.stringify(facts) !== JSON.stringify(row.facts)) table.put(now)
    return now
  }

  /**
   * Whether a deleted stream is that of a virtual sensor which is not needed any more. Its subscription then
   * selects the stream of the sensor that it replaced, and does not name the virtual one.
   */
  function isWithdrawn({ subscription: id, stream, observation, sensor }: WatchedStream): boolean {
    if (!isVirtualSensor(sensor)) return false
    const named = selectedIds(own(subscription(id)?.body ?? {}, 'entities'))
    if (named.has(stream) || named.has(observation)) return false
    return table.ofSensor(replacedSensor(sensor)).some((one) => one.subscription === id)
  }

  /** @param at when the state became fault; undefined for a stream that was deleted. */
  async function failureOf({ stream }: WatchedStream, at: string | undefined): Promise<StreamFailure> {
    if (at === undefined)
      return { reason: 'deleted', detail: 'the stream was deleted', at: msToDateTime(clock.now()) }
    const fault = await reading.faultOf(stream)
    return {
      reason: fault?.class === 'dropout' ? 'silence' : 'fault',
      detail: fault?.detail ?? 'the state of the stream is fault',
      at,
    }
  }

  async function failed(row: WatchedStream, failure: StreamFailure, search: Search): Promise<void> {
    const isOutage = failure.reason === 'source-unreachable'
    const { alternatives: found, isReplaced, isComplete } = isOutage ? noSearch : await search(row)
    const switchedTo = await switchOf(row, found)
    const isSearching = isComplete ? undefined : true
    const id = noticeId('StreamFailure')
    const open: OpenFailure = { ...failure, id, isReplaced, isSearching, switchedTo }
    await append(row, failureNotice(row, failure, { id: open.id, alternatives: found, switchedTo }), open)
    if (isSearching === true) queue.retryStream(row.stream)
    const { reason, detail } = failure
    log.info('orchestrator.stream-failed', {
      subscription: row.subscription,
      stream: row.stream,
      reason,
      detail,
      alternatives: found.length,
      ...(found[0] === undefined ? {} : { best: found[0].stream }),
      ...(switchedTo === undefined ? {} : { switchedTo: switchedTo.stream }),
    })
  }

  /** The first alternative that has observations, if the subscription asks for a switch. */
  async function switchOf(
    { subscription: id, observation }: WatchedStream,
    found: readonly Alternative[],
  ): Promise<Switch | undefined> {
    if (subscription(id)?.isSwitching !== true) return undefined
    for (const { stream } of found) {
      const entity = observation === '' ? stream : await reading.observationOf(stream)
      if (entity !== undefined) return { stream, entity }
    }
    return undefined
  }

  /**
   * Sends the alternatives once more: when the virtual sensor of the failed one has its first value, or when
   * the first search was incomplete. An alternative that was switched to and failed is another reason.
   */
  async function update(row: WatchedStream, failure: OpenFailure, search: Search): Promise<void> {
    const current = failure.switchedTo
    const isLost = current !== undefined && !(await isAvailable(current.stream))
    const isSearching = failure.isSearching === true
    if (failure.isReplaced && !isLost && !isSearching) return
    if (isSearching && alternatives.isFailing()) return queue.retryStream(row.stream)
    const { alternatives: found, isReplaced, isComplete } = await search(row)
    if (!isComplete && (isSearching || isLost)) return queue.retryStream(row.stream)
    const isNew = (isReplaced && !failure.isReplaced) || (isSearching && found.length > 0)
    const switchedTo = isLost || current === undefined ? await switchOf(row, found) : current
    if (!isNew && switchedTo?.stream === current?.stream) return
    const rest = { id: noticeId('StreamFailure'), alternatives: found, switchedTo, updates: failure.id }
    await append(row, failureNotice(row, failure, rest), {
      ...failure,
      isReplaced,
      isSearching: undefined,
      switchedTo,
    })
  }

  async function isAvailable(stream: string): Promise<boolean> {
    const found = (await reading.describe([stream])).get(stream)
    return found !== undefined && healthOf(found.entity, clock.now()).kind !== 'fails'
  }

  async function recovered(row: WatchedStream, { id }: OpenFailure, detail: string): Promise<void> {
    await append(row, recoveryNotice(row, { failure: id, at: msToDateTime(clock.now()), detail }), undefined)
    log.info('orchestrator.stream-recovered', { subscription: row.subscription, stream: row.stream, detail })
  }

  /** Stores a notice and what it says in one transaction. */
  async function append(row: WatchedStream, notice: Buffer, failure: OpenFailure | undefined): Promise<void> {
    if (subscription(row.subscription) === undefined) return
    await outbox.append(row.subscription, notice, () => table.setFailure(row, failure))
    noted()
    if (failure?.switchedTo?.stream !== row.failure?.switchedTo?.stream) switched(row.subscription)
  }

  return Object.freeze({
    /** Checks a stream soon. */
    checkStream: queue.addStream,
    /** Finds the streams of a subscription soon, and checks them. */
    resolve: queue.addSubscription,
    /** The broker does not answer, or answers again: then nothing is given. */
    setOutage(reason: string | undefined): void {
      outage =
        reason === undefined
          ? undefined
          : { reason: 'source-unreachable', detail: reason, at: msToDateTime(clock.now()) }
      for (const id of table.streams()) queue.addStream(id)
      queue.retry()
    },
    /** Streams that are not watched because of the ceiling. */
    unwatched: () => [...unwatched.values()].reduce((sum, count) => sum + count, 0),
    /** A subscription ended. */
    forget: (id: string): void => void unwatched.delete(id),
    trouble: queue.trouble,
    close: queue.close,
  })
}
