/**
 * Operator functions for the uplinks of a tenant: status, pause, link test, reconciliation, and refused
 * changes. Status is also exposed as metrics.
 */

import { GatewayError } from '#base/register/errors.ts'
import type { MetricName, Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { shownUri } from '#delivery/probe.ts'
import type { UplinkOperations } from '#http/operator/uplink-routes.ts'
import { parseUplinkOptions, type UplinkOptions } from '#ngsi-ld/subscription/uplink-options.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { conflict } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { UplinkStates } from '#store/tables/uplink-states.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import type { ReconcileTask } from '#uplink/progress/reconcile-task.ts'
import type { Refusals } from '#uplink/progress/refusals.ts'
import { parseStep } from '#uplink/steps/retry-plan.ts'
import { type Trial, tryUplink } from './link-test.ts'
import type { Uplink, UplinkSubscription } from './uplink.ts'
import type { UplinkStatus } from './uplink-status.ts'

/** An uplink that runs. */
export interface Operated {
  readonly one: UplinkSubscription
  readonly uplink: Uplink
  /** The client of the centre for a link test, which ignores the rate limit. */
  readonly centre: () => Pick<CentralBroker, 'request'>
}

export interface OperationsPorts {
  readonly tenant: string
  readonly running: ReadonlyMap<string, Operated>
  /** All uplinks, including those that do not run. */
  readonly subscriptions: () => Iterable<UplinkSubscription>
  readonly states: UplinkStates
  readonly refusals: Pick<Refusals, 'remove' | 'dropped'>
  readonly alias: string
  readonly clock: Clock
  readonly metrics: Metrics
}

export function createOperations(ports: OperationsPorts): UplinkOperations {
  const { running, states, refusals, clock } = ports
  registerMetrics(ports)

  const find = (id: string): UplinkSubscription | undefined =>
    [...ports.subscriptions()].find(({ subscription }) => subscription.id === id)
  function runningOne(id: string): Operated {
    const operated = running.get(id)
    if (operated !== undefined) return operated
    throw conflict('the uplink is not running: its subscription is inactive, or it is still starting')
  }
  const view = (one: UplinkSubscription): object =>
    viewOf(one, running.get(one.subscription.id)?.uplink.status(), clock.now())

  return Object.freeze({
    list: () => [...ports.subscriptions()].map(view),
    get(id) {
      const one = find(id)
      return one && view(one)
    },
    complaints: () => [...running.values()].flatMap(({ one, uplink }) => warningsOf(one, uplink.status())),
    async pause(id, isPaused) {
      const one = find(id)
      if (one === undefined) return false
      const { uplink } = runningOne(id)
      if (!isPaused && wishesOf(one).isPaused)
        throw conflict('the uplink is paused by its declaration (isPaused or selvedge:paused)')
      await uplink.pause(isPaused)
      return true
    },
    async test(id): Promise<Trial | undefined> {
      const operated = running.get(id)
      return operated && tryUplink(operated.centre(), { alias: ports.alias, clock })
    },
    async reconcile(id, isDry) {
      if (find(id) === undefined) return false
      if (!(await runningOne(id).uplink.reconcile(isDry)))
        throw conflict('a reconciliation is already in progress')
      return true
    },
    async cancelReconcile(id) {
      if (find(id) === undefined) return false
      if ((await running.get(id)?.uplink.cancelReconcile()) !== true)
        throw conflict('no reconciliation is in progress')
      return true
    },
    refusalCount: states.refusalCount,
    refusals: ({ limit, offset }) => states.refusals(limit, offset),
    refusal: states.refusal,
    async retry(q) {
      const row = states.refusal(q)
      if (row === undefined) return false
      const uplink = running.get(row.uplink)?.uplink
      if (uplink === undefined)
        throw conflict('the uplink was removed or is inactive; the entry can only be dropped')
      const outcome = await uplink.retry(parseStep(row.step))
      if (outcome.kind === 'later')
        throw new GatewayError('peer.unavailable', `the uplink cannot send now: ${outcome.reason}`)
      const [refusal] = outcome.refused
      if (refusal !== undefined) throw new GatewayError('peer.refused', `refused again: ${refusal.reason}`)
      await refusals.remove(q)
      return true
    },
    async drop(q) {
      if (states.refusal(q) === undefined) return false
      await refusals.remove(q)
      return true
    },
  } satisfies UplinkOperations)
}

const wishesOf = ({ subscription }: UplinkSubscription): UplinkOptions =>
  parseUplinkOptions(subscription.notification.endpoint.notifierInfo)

const time = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : msToDateTime(ms))

/** The status of an uplink; `status` is undefined where its subscription is not active. */
function viewOf(one: UplinkSubscription, status: UplinkStatus | undefined, now: number): object {
  const { id, notification } = one.subscription
  const head = {
    id,
    from: one.i === undefined ? 'settings' : 'subscription',
    centre: shownUri(notification.endpoint.uri),
    state: status?.state ?? 'inactive',
  }
  if (status === undefined) return head
  const { trouble, historyTrouble, closedBy, historyClosedBy, oldest, counts, last, day, backlog } = status
  return {
    ...head,
    ...(closedBy === undefined ? {} : { waitsFor: closedBy }),
    ...(historyClosedBy === undefined ? {} : { historyWaitsFor: historyClosedBy }),
    ...(trouble === undefined ? {} : { troubleSince: time(trouble.since), trouble: trouble.reason }),
    ...(historyTrouble === undefined
      ? {}
      : { historyTroubleSince: time(historyTrouble.since), historyTrouble: historyTrouble.reason }),
    behindSeconds: behindSeconds(status, now),
    ...(oldest === undefined || oldest === 0 ? {} : { oldest: time(oldest) }),
    sent: counts.sent,
    histories: counts.past,
    refused: counts.refused,
    notKept: counts.skipped,
    evicted: counts.evicted,
    waitingObservations: backlog.observations,
    waitingBytes: backlog.bytes,
    toBeLetGo: backlog.dropped,
    roomSeconds: backlog.roomSeconds,
    bytesToday: day.date === new Date(now).toISOString().slice(0, 10) ? day.bytes : 0,
    lastSuccess: time(last.success),
    lastFailure: time(last.failure),
    lastFailureReason: last.reason,
    ...(status.collisions === undefined ? {} : { collisions: status.collisions }),
    ...(status.reconcile === undefined ? {} : { reconcile: reconcileOf(status.reconcile) }),
    wishes: wishesOf(one),
  }
}

/** Room for less than this causes a warning, s. */
const littleRoomSeconds = 86_400

function warningsOf({ subscription: { id } }: UplinkSubscription, status: UplinkStatus): readonly string[] {
  const { trouble, historyTrouble: past, backlog, oldest } = status
  const away = trouble && `uplink ${id} has sent nothing since ${time(trouble.since)}: ${trouble.reason}`
  const failing = past && `uplink ${id} has sent no history since ${time(past.since)}: ${past.reason}`
  const isFilling = oldest !== undefined && (backlog.roomSeconds ?? littleRoomSeconds) < littleRoomSeconds
  const hours = Math.floor((backlog.roomSeconds ?? 0) / 3600)
  const full = isFilling && `uplink ${id} has room for ${hours} more hours; then unsent history is dropped`
  const met = (status.collisions ?? []).map(
    ({ origin, entities, entity }) =>
      `${origin} also writes entities of uplink ${id} at the centre: ${entities} entities, such as ${entity}`,
  )
  return [away, failing, full, ...met].filter((one) => typeof one === 'string')
}

/** The progress or result of a reconciliation. */
function reconcileOf({ after: _, startedAt, endedAt, ...task }: ReconcileTask): object {
  return { ...task, startedAt: time(startedAt), endedAt: time(endedAt) }
}

/** An uplink that sends everything from the start has no meaningful delay. */
function behindSeconds({ oldest }: UplinkStatus, now: number): number {
  return oldest === undefined || oldest === 0 ? 0 : Math.max(0, (now - oldest) / 1000)
}

/** Metrics that are one number of a status. */
const figures: readonly (readonly [name: MetricName, read: (status: UplinkStatus, now: number) => number])[] =
  [
    ['selvedge_uplink_up', ({ trouble }) => (trouble === undefined ? 1 : 0)],
    ['selvedge_uplink_behind_seconds', behindSeconds],
    ['selvedge_uplink_sent_total', ({ counts }) => counts.sent],
    ['selvedge_uplink_past_total', ({ counts }) => counts.past],
    ['selvedge_uplink_refused_total', ({ counts }) => counts.refused],
    ['selvedge_uplink_not_kept_total', ({ counts }) => counts.skipped],
    ['selvedge_uplink_sent_bytes_total', ({ sentBytes }) => sentBytes],
    ['selvedge_uplink_waiting_observations', ({ backlog }) => backlog.observations],
    ['selvedge_uplink_evicted_total', ({ counts }) => counts.evicted],
    [
      'selvedge_uplink_collisions',
      ({ collisions = [] }) => collisions.reduce((sum, { entities }) => sum + entities, 0),
    ],
  ]

function registerMetrics({ tenant, running, states, refusals, clock, metrics }: OperationsPorts): void {
  const labelled = (id: string): string =>
    `{uplink=${JSON.stringify(id)}${tenant === '' ? '' : `,tenant=${JSON.stringify(tenant)}`}}`
  for (const [name, read] of figures)
    metrics.series(name, () =>
      [...running].map(([id, { uplink }]) => [labelled(id), read(uplink.status(), clock.now())] as const),
    )
  metrics.series('selvedge_uplink_room_seconds', () =>
    [...running].flatMap(([id, { uplink }]) => {
      const { roomSeconds } = uplink.status().backlog
      return roomSeconds === undefined ? [] : [[labelled(id), roomSeconds] as const]
    }),
  )
  metrics.series('selvedge_uplink_refused_let_go_total', () =>
    [...running.keys()].map((id) => [labelled(id), refusals.dropped(id)] as const),
  )
  metrics.series('selvedge_uplink_refused_waiting', () =>
    running.size === 0
      ? []
      : [[tenant === '' ? '' : `{tenant=${JSON.stringify(tenant)}}`, states.refusalCount()]],
  )
}
