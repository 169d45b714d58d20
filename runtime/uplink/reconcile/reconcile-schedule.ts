/**
 * Starts reconciliations: on request, after a long outage, and after a restore of this gateway. It also
 * starts one when a Selvedge at the centre reports an older position or a restore.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import type { SendOutcome } from '#uplink/centre/outcome.ts'
import { type CollisionAtCentre, collisionsIn } from '#uplink/centre/response-shapes.ts'
import { isNoTenant } from '#uplink/connection/absence.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import type { Losses } from '#uplink/progress/losses.ts'
import type { ReconcileTask } from '#uplink/progress/reconcile-task.ts'
import type { UplinkState } from '#uplink/progress/uplink-state.ts'
import { createReconciler, newTask } from './reconcile.ts'
import type { ReconcilePorts } from './reconcile-history.ts'

export interface ReconcileSchedulePorts
  extends Omit<
    ReconcilePorts,
    'uplink' | 'until' | 'once' | 'ready' | 'isStopped' | 'types' | 'centre' | 'live'
  > {
  readonly centres: Readonly<Record<Lane, CentralBroker>>
  readonly id: string
  readonly state: UplinkState
  readonly connectivity: Connectivity
  readonly losses: Pick<Losses, 'forget'>
  readonly clock: Clock
  readonly log: Log
}

export function createReconcileSchedule(ports: ReconcileSchedulePorts) {
  const { id, state, connectivity, losses, clock, log, centres } = ports
  const path = `/selvedge/v1/digests?position=true&through=${encodeURIComponent(ports.alias)}`
  let checkedAt = Number.NEGATIVE_INFINITY
  let sentBefore = 0
  let troubleSince: number | undefined

  async function until<T>(ask: () => Promise<T | (SendOutcome & { kind: 'later' })>): Promise<T | undefined> {
    while (await connectivity.ready('backfill')) {
      const answer = await once(ask)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  async function once<T>(ask: () => Promise<T | (SendOutcome & { kind: 'later' })>): Promise<T | undefined> {
    const answer = await ask()
    if (!isLater(answer)) {
      connectivity.succeeded('backfill')
      return answer
    }
    if (!connectivity.isClosed()) connectivity.failed('backfill', answer)
    return undefined
  }

  const reconciler = createReconciler({
    ...ports,
    uplink: id,
    centre: centres.backfill,
    live: centres.live,
    until,
    once,
    ready: () => connectivity.ready('backfill'),
    isStopped: (task) => state.reconcile !== task,
    types: ports.lookups.selection.types,
  })

  function begin(reason: ReconcileTask['reason'], isDry = false): void {
    const under = isDue(state) ? state.reconcile : undefined
    // A running one may have passed entities that are missing now, and a dry run sends nothing.
    const isVoid = !isDry && (reason === 'restored' || under?.isDry === true)
    if (under !== undefined && !isVoid) return
    state.reconcile = newTask(clock.now(), { isDry, reason, placedBefore: under?.placedBefore })
  }
  const { prefix } = ports.lookups.scopePrefix
  if (state.scope !== prefix) {
    // A running one may have passed entities whose scope changed.
    const last = isDue(state) ? state.reconcile!.placedBefore : undefined
    state.reconcile = newTask(clock.now(), { reason: 'scope', placedBefore: last ?? state.scope })
    if (prefix === undefined) delete state.scope
    else state.scope = prefix
  }
  if (state.restored !== undefined) {
    delete state.restored
    begin('restored')
  }

  /** The centre may be an older copy. */
  function beginRestored(): void {
    state.mayLackGaps = true
    losses.forget()
    begin('restored')
  }

  function recordCollisions(met: readonly CollisionAtCentre[]): void {
    for (const one of met)
      if (state.collisions?.some(({ origin }) => origin === one.origin) !== true)
        log.warn('uplink.collision', { uplink: id, ...one })
    if (met.length === 0) delete state.collisions
    else state.collisions = met
  }

  /**
   * Requests the centre's log position. "unsupported": the centre has no such operation; "unavailable": it
   * may respond soon.
   */
  async function fetchPosition(): Promise<'reported' | 'unsupported' | 'unavailable'> {
    const { sent, past } = state.counts
    checkedAt = clock.monotonic()
    const isOurs = await centres.live.isSelvedge()
    const answer = isOurs === true ? await centres.live.getSelvedge(path) : undefined
    const reported = positionIn(answer)
    // A centre without the operation is asked again after more was sent; an unavailable one, soon.
    const isUnsupported = isOurs === false || isStatusIn(unsupportedStatuses, answer)
    if (isUnsupported || reported !== undefined) sentBefore = sent + past
    if (reported === undefined) {
      // A tenant created by the first write holds nothing before.
      if (answer !== undefined && isNoTenant(answer)) state.centreAt ??= 0
      const mayRespondSoon =
        answer === undefined || 'failure' in answer || isStatusIn(temporaryStatuses, answer)
      return isUnsupported || !mayRespondSoon ? 'unsupported' : 'unavailable'
    }
    const { position, restoredAt } = reported
    // Compares the restore time too: other clients may have written more since than was lost.
    const isRestored = state.centreAt !== undefined && restoredAt !== state.centreRestoredAt
    if (isRestored || position < (state.centreAt ?? 0)) {
      log.warn('uplink.centre-restored', { uplink: id })
      beginRestored()
    }
    // Data sent before the first reported position may have been lost with an older copy.
    if (state.centreAt === undefined && sent + past > 0) beginRestored()
    state.centreAt = position
    recordCollisions(collisionsIn(reported.collisions, ports.alias))
    state.centreRestoredAt = restoredAt
    return 'reported'
  }

  return Object.freeze({
    /** Starts a reconciliation, unless one is in progress. */
    begin,
    /** Cancels the current one; what it sent stays. False if there is none. */
    cancel(): boolean {
      const task = state.reconcile
      if (task === undefined || !isUnderWay(task)) return false
      state.reconcile = { ...task, phase: 'cancelled', endedAt: clock.now() }
      log.info('uplink.reconcile-cancelled', { uplink: id, compared: task.compared, phase: task.phase })
      return true
    },
    isDue: () => isDue(state),
    /** Does the next portion, if any. Returns whether the state must be stored. */
    async portion(): Promise<boolean> {
      const task = state.reconcile
      if (task === undefined || !isUnderWay(task) || !(await reconciler.portion(task))) return false
      // The task was cancelled or replaced meanwhile.
      if (state.reconcile !== task) return false
      if (isUnderWay(task)) return true
      task.endedAt = clock.now()
      const { missing, different, newer, tooLarge, surplus, days, observations, isDry } = task
      log.info('uplink.reconciled', {
        uplink: id,
        missing,
        different,
        newer,
        tooLarge,
        surplus,
        days,
        observations,
        isDry,
      })
      return true
    },
    /**
     * Asks a Selvedge at intervals and after trouble whether it lost data; with `isFirst`, before the first
     * sending. Returns whether the state must be stored.
     */
    async checkCentre(isFirst: boolean = false): Promise<boolean> {
      const since = connectivity.trouble('live')?.since
      const isBack = troubleSince !== undefined && since === undefined
      troubleSince = since
      const { sent, past } = state.counts
      const hasSent = sent + past !== sentBefore
      const isTime =
        clock.monotonic() - checkedAt > (hasSent ? limits.reconcileNoteMs : limits.reconcileCheckMs).value
      const isDue = since === undefined && (isTime || isBack)
      if (isFirst ? state.centreAt !== undefined : !isDue) return false
      return (await fetchPosition()) === 'reported'
    },
    /** Asks at once; false if the centre cannot confirm now that it lost nothing. */
    isCentreIntact: async () => (await fetchPosition()) !== 'unavailable',
  })
}

/** Statuses of a centre that is not ready, such as while it restarts. */
const temporaryStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Statuses of a centre without the operation. */
const unsupportedStatuses: ReadonlySet<number> = new Set([401, 403, 404, 405, 501])

const isStatusIn = (statuses: ReadonlySet<number>, answer: PeerAnswer | undefined): boolean =>
  answer !== undefined && 'status' in answer && statuses.has(answer.status)

interface ReportedPosition {
  readonly position: number
  readonly restoredAt?: number
  readonly collisions?: unknown
}

/** The log position that a response reports. */
function positionIn(answer: PeerAnswer | undefined): ReportedPosition | undefined {
  if (answer === undefined || 'failure' in answer || answer.status !== 200) return undefined
  const reported = parsedJson(answer.text)
  if (!isObject(reported) || typeof reported['position'] !== 'number') return undefined
  return reported as unknown as ReportedPosition
}

const isDue = ({ reconcile }: UplinkState): boolean => reconcile !== undefined && isUnderWay(reconcile)

const isUnderWay = ({ phase }: ReconcileTask): boolean => phase !== 'done' && phase !== 'cancelled'

const isLater = (answer: unknown): answer is SendOutcome & { kind: 'later' } =>
  (answer as { kind?: unknown } | null)?.kind === 'later'
