/**
 * An uplink keeps the central broker up to date over a link that may fail for weeks. Two lanes share the
 * link. The live lane follows the log; after an outage it first sends the current state of entities. The
 * backfill lane then sends what happened meanwhile, read from the history, so a long outage holds nothing in
 * memory. Each lane sends in order, no current value is older than one sent before, and unaccepted changes
 * are kept.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, type YieldIfDue } from '#base/load/yielding.ts'
import { isGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { Digests } from '#broker/tenant/digests.ts'
import type { Peer } from '#federation/peer.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { fillSpan } from '#uplink/backfill/backfill.ts'
import type { BacklogMeasure } from '#uplink/progress/backlog-size.ts'
import { createCurrentSteps } from '#uplink/progress/current-steps.ts'
import type { Losses } from '#uplink/progress/losses.ts'
import { createMatching } from '#uplink/progress/match-steps.ts'
import { refusedGapSteps } from '#uplink/progress/refused-gaps.ts'
import {
  addPending,
  endUnsentDeletions,
  type GapReport,
  type PendingSpan,
  resendGaps,
  type UplinkState,
} from '#uplink/progress/uplink-state.ts'
import { createReconcileSchedule } from '#uplink/reconcile/reconcile-schedule.ts'
import { commitTimeOf, createLookups, stepsOfEntity } from '#uplink/steps/change-steps.ts'
import { createResurrections } from '#uplink/steps/resurrections.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import { isObserved, type Layer, layersOf, type Step, withoutMirror } from '#uplink/steps/step-plan.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'
import { budgetLane } from './budget-lane.ts'
import { createRefusedRetry } from './retry-refused.ts'
import { createSending, type SendingPorts } from './send-lanes.ts'
import { statusOf, type UplinkStatus } from './uplink-status.ts'
import { createThrottle } from './uplink-throttle.ts'

/** A subscription whose endpoint is a broker. */
export interface UplinkSubscription {
  /** Number of the subscription; undefined if it comes from the settings. */
  readonly i: number | undefined
  readonly subscription: Subscription
  /** The peer of its broker, if it has one of its own. */
  readonly peer?: Peer | undefined
}

export interface UplinkPorts extends Omit<SendingPorts, 'state' | 'lookups' | 'checkCentre' | 'onChanged'> {
  readonly following: ChangeFeed
  readonly digests: Digests
  readonly losses: Losses
  readonly measure: BacklogMeasure
  readonly log: Log
  /** Calls the listener after each commit; the returned function removes the listener. */
  readonly onCommit: (listener: () => void) => () => void
  /** The name of this gateway in Via. */
  readonly alias: string
  /** Whether the state is new and not on disk yet. */
  readonly isNew: boolean
  /** Stores the state. */
  readonly save: (state: UplinkState) => Promise<void>
}

/** The selection, the throttling period (s) and the scope prefix of an uplink. */
export interface UplinkRule {
  readonly selection: UplinkSelection
  readonly throttling: number | undefined
  readonly scopePrefix: ScopePrefix
}

/** Whether a name in Via is that of this gateway, or the known name of the centre. */
const isCentreOrSelf =
  (alias: string, state: UplinkState) =>
  (name: string): boolean =>
    name === alias || name === state.pseudonym

/**
 * Throttled values are not known after a restart, so recently changed entities are sent in their current
 * state.
 */
const refreshAfterRestart = ({ n, at }: UplinkState['position'], throttling = 0): UplinkState['refresh'] =>
  throttling === 0
    ? undefined
    : { since: at - throttling * 1000 - limits.batchOneTimeMs.value, deletionsAfter: n, rid: 0 }

/** The union of two refreshes. */
function union(one: UplinkState['refresh'], other: UplinkState['refresh']): UplinkState['refresh'] {
  if (one === undefined || other === undefined) return one ?? other
  return {
    since: Math.min(one.since, other.since),
    deletionsAfter: Math.min(one.deletionsAfter, other.deletionsAfter),
    rid: 0,
  }
}

export type Uplink = ReturnType<typeof createUplink>

export function createUplink(id: string, state: UplinkState, rule: UplinkRule, ports: UplinkPorts) {
  const { selection, throttling, scopePrefix } = rule
  const { following, centres, connectivity, losses, measure, log } = ports
  const { counts, restored } = state
  const throttle = createThrottle(ports.clock.monotonic, throttling)
  state.refresh = union(state.refresh, refreshAfterRestart(state.position, throttling))
  let savedAt = Number.NEGATIVE_INFINITY
  let isClosed = false
  let isFilling = false
  let isUnsaved = true
  let isOnDisk = !ports.isNew
  /** Number of commits seen; shows whether one came while a lane was at work. */
  let commits = 0
  const unwatch = ports.onCommit(() => {
    commits++
    connectivity.wake()
  })
  /** The end of a throttling period is not reported by a commit. */
  const restMs = (throttling === undefined ? limits.uplinkRestMs : limits.uplinkPollMs).value
  const lookups = createLookups(following, { selection, scopePrefix }, isCentreOrSelf(ports.alias, state))
  const resurrections = createResurrections(lookups)
  const sliceSizes = { sliceMs: limits.uplinkSliceMs.value }
  const onChanged = (): void => {
    isUnsaved = true
  }
  const { deliver, deliverAll, learnCentreName } = createSending({
    ...ports,
    state,
    lookups,
    checkCentre: () => reconciling.checkCentre(true),
    onChanged,
  })
  const fill = (layer: Layer): Promise<boolean> => deliver('backfill', layer)
  const current = createCurrentSteps({ following, lookups, state })
  const matching = createMatching({ following, current, lookups, deliverNow: deliverAll })
  const reconciling = createReconcileSchedule({
    ...ports,
    id,
    state,
    lookups,
    current,
    deliver: fill,
    deliverNow: deliverAll,
    ensureDeleted: resurrections.ensureDeleted,
  })

  /** Sends the next part of the log. Returns whether there was any. */
  async function follow(): Promise<boolean> {
    if (following.isHeld()) return false
    const { position } = state
    const rows = following.after(position.n, limits.uplinkRowsPerTurn.value)
    const here = following.position()
    const isBehind = rows?.[0] !== undefined && here.at - rows[0].at > limits.uplinkBehindMs.value
    const isDecided = state.ahead.length > 0
    if (rows === undefined || isBehind || isDecided) {
      catchUp()
      return true
    }
    const last = rows.at(-1)
    if (last === undefined) return false
    if (rows.some(({ via }) => via !== undefined) && !(await learnCentreName())) return true
    const pass = matching.begin()
    const steps = rows.flatMap((row) => [...current.unsentDeletions(row), ...pass.steps(row, throttled)])
    // Row times do not ascend where a batch bears the time of its first item.
    const times = rows.flatMap((row) => [row.at, commitTimeOf(row)])
    const dated = { from: Math.min(...times), to: Math.max(...times) + 1 }
    if (!(await deliverAll(steps, dated))) return true
    pass.onAccepted()
    state.position = { n: last.n, at: last.at }
    current.advance(last.n)
    isUnsaved = true
    return true
  }

  /** Turns a value that follows the last one of its entity too soon into a past value. */
  const throttled = (step: Step, at: number): Step =>
    step.kind === 'put' && isObserved(step) && throttle.delays(step.entity.id, at)
      ? { ...step, kind: 'past', attributes: withoutMirror(step) }
      : step

  /** Sends the newest of the delayed values whose period ended. */
  async function release(): Promise<boolean> {
    if (following.isHeld()) return false
    const { position } = state
    const isBehind = following.position().n > position.n
    const steps = throttle.due().flatMap(([id, since]) => {
      const found = following.entityWithRid(id)
      // An entity that newly matches is sent in full by its own row.
      if (found === undefined || current.fullySynced.get(found.rid) !== true) return []
      // Unsent rows would otherwise arrive later with older values.
      return isBehind
        ? current.steps(found.rid, found.view, {
            since: Math.min(since, following.since(position)),
            deletionsAfter: position.n,
          })
        : stepsOfEntity(found.view, since, lookups)
    })
    return steps.length > 0 && (await deliverAll(steps))
  }

  /** Too far behind to replay the log: sends current state first and leaves the rest to backfill. */
  function catchUp(): void {
    const { n, at } = following.position()
    const here = { n, at: Math.max(at, state.position.at) }
    const since = following.since(state.position)
    addPending(state, since, here.at + 1)
    measure.recheckSoon()
    state.refresh = union(state.refresh, { since, deletionsAfter: state.position.n, rid: 0 })
    if (here.at - since > limits.reconcileAfterMs.value && since > 0) reconciling.begin('long-cut')
    state.position = here
    isUnsaved = true
    log.info('uplink.catching-up', { uplink: id, since: new Date(since).toISOString() })
  }

  /** Sends the current state of the next entities. */
  async function refresh(task: NonNullable<UplinkState['refresh']>): Promise<void> {
    if (!(await learnCentreName()) || following.isHeld()) return
    // Read together, so that all steps reflect one log position.
    const entities = following.entities(task.rid, limits.uplinkEntitiesPerRequest.value)
    const steps = entities.flatMap(([rid, view]) => current.steps(rid, view, task))
    const onSent = current.fullySynced.onceSent(entities, task.since)
    if (!(await deliverAll(steps))) return
    onSent()
    // An outage in between started a new refresh.
    if (state.refresh !== task) return
    const last = entities.at(-1)
    if (last !== undefined) task.rid = last[0]
    else state.refresh = undefined
    isUnsaved = true
  }

  /** Reports the gaps of dropped refusals. */
  async function sendRefusedGaps(): Promise<void> {
    const { steps, onAccepted } = refusedGapSteps(state, { uplink: id, alias: ports.alias, scopePrefix })
    if (steps.length === 0 || !(await deliverAll(steps))) return
    onAccepted()
    isUnsaved = true
  }

  /** Returns whether there was anything to send. */
  async function liveTurn(): Promise<boolean> {
    // First, so that the centre's position before any sending is known.
    if (await reconciling.checkCentre()) isUnsaved = true
    let isBusy = await follow()
    if (await release()) isBusy = true
    if (state.refresh !== undefined) {
      await refresh(state.refresh)
      isBusy = true
    }
    await resurrections.deleteAgain(deliverAll)
    await sendRefusedGaps()
    return isBusy
  }

  async function liveLane(): Promise<void> {
    await current.fullySynced.restore(createYield(ports.clock.monotonic, limits.uplinkTurnMs.value))
    // After a crash, deletions since the stored position are sent; so store one before sending anything.
    if (!isOnDisk) await save(true)
    while (!isClosed) {
      const seen = commits
      // Times of a clock that is not set are not sent.
      const isBusy =
        !following.isHeld() && (await connectivity.ready('live')) && (await current.turn(liveTurn))
      await save()
      if (isBusy) continue
      if (commits === seen) await connectivity.rest(restMs)
      // Changes committed within this time are sent together.
      await connectivity.sleep(limits.uplinkPollMs.value)
    }
  }

  async function backfillLane(): Promise<void> {
    const yieldIfDue = createYield(ports.clock.monotonic, limits.uplinkTurnMs.value)
    for (let isOpen = true; isOpen && !isClosed; ) {
      isFilling = false
      const mayFill = state.refresh === undefined && !following.isHeld()
      resendGaps(state, ports.clock.now())
      if (mayFill) isOpen = await backfillNext(yieldIfDue)
      else await connectivity.sleep(limits.uplinkPollMs.value)
    }
  }

  /** Sends gaps, else past values, else a portion of a reconciliation. False when the uplink was closed. */
  async function backfillNext(yieldIfDue: YieldIfDue): Promise<boolean> {
    if (state.telling !== undefined) return sendGaps(state.telling, yieldIfDue)
    const span = state.spans[0]
    if (span !== undefined) return measure.enforceBudget() || sendSlice(span, yieldIfDue)
    if (await reconciling.portion()) isUnsaved = true
    if (!reconciling.isDue()) await connectivity.rest(limits.uplinkRestMs.value)
    await connectivity.sleep(limits.uplinkPollMs.value)
    return true
  }

  /** Sends the next slice of a span. False when the uplink was closed. */
  async function sendSlice(span: PendingSpan, yieldIfDue: YieldIfDue): Promise<boolean> {
    span.began ??= span.from
    isFilling = true
    const way = {
      deliver: fill,
      ensureDeleted: resurrections.ensureDeleted,
      ensureSynced: matching.ensureSynced,
      yieldIfDue,
    }
    const to = await fillSpan(span, sliceSizes, { following, lookups, losses, ...way })
    if (to === undefined) return false
    losses.end(to)
    span.from = to
    isUnsaved = true
    if (span.from < span.to) return true
    state.spans.splice(state.spans.indexOf(span), 1)
    endUnsentDeletions(state, following.position().n)
    state.telling = { began: span.began, to: span.to, unnamed: {} }
    return true
  }

  /** Reports the gaps of a sent span in several requests. False when the uplink was closed. */
  async function sendGaps(report: GapReport, yieldIfDue: YieldIfDue): Promise<boolean> {
    // The end of the span identifies repeated gaps, so it is stored before the first of them is sent.
    await save(true)
    let gaps = 0
    for (const { steps, onAccepted, isValid } of losses.gaps(report)) {
      // A gap asserts that everything else is at the centre; this must not be said after an unnoticed restore
      // of an older copy.
      const isStillValid =
        isValid && (async () => ((await reconciling.isCentreIntact()) ? isValid() : undefined))
      for (const layer of layersOf(steps)) if (!(await deliver('backfill', layer, isStillValid))) return false
      onAccepted()
      isUnsaved = true
      gaps += steps.length
      await yieldIfDue()
    }
    if (gaps > 0) log.warn('uplink.evicted', { uplink: id, gaps, observations: counts.evicted })
    return true
  }

  /** Stores the state: at once if `isLast`, else if it changed and at most once a second. */
  async function save(isLast = false): Promise<void> {
    const now = ports.clock.monotonic()
    if (!isLast && (!isUnsaved || now - savedAt < limits.uplinkSaveMs.value)) return
    isUnsaved = false
    savedAt = now
    try {
      await ports.save(state)
      isOnDisk = true
    } catch (error) {
      isUnsaved = true
      throw error
    }
  }

  /** Restarts a lane that failed because of an internal error. */
  async function restarting(lane: () => Promise<void>): Promise<void> {
    while (!isClosed) {
      try {
        await lane()
      } catch (error) {
        // A full disk is reported where it is detected; unsaved sends are repeated once there is room.
        if (!isGatewayError(error) || error.entry.fault !== 'resource')
          log.error('gateway.fault', { during: `uplink ${id}`, error })
        await connectivity.sleep(limits.uplinkFaultMs.value)
      }
    }
  }
  // A crash or a restore leaves the state behind the log, like an outage.
  if (restored !== undefined || state.position.n < following.position().n) catchUp()
  const bounding = { ...ports, id, state, isFilling: () => isFilling, onBound: () => save(true) }
  const lanes = [liveLane, backfillLane, () => budgetLane(bounding)].map(restarting)

  return Object.freeze({
    status: (): UplinkStatus =>
      statusOf({ following, centres, gate: ports.gate, connectivity, measure, state }),
    /** Resolves once it is on disk. */
    async pause(isPaused: boolean): Promise<void> {
      state.isPaused = isPaused
      await save(true)
    },
    /** Starts a reconciliation; false if one is in progress. */
    async reconcile(isDry: boolean): Promise<boolean> {
      if (reconciling.isDue()) return false
      reconciling.begin('asked', isDry)
      await save(true)
      return true
    },
    /** Cancels the reconciliation; false if none is in progress. */
    async cancelReconcile(): Promise<boolean> {
      if (!reconciling.cancel()) return false
      await save(true)
      return true
    },
    /** Retries a refused step now, as far as it still applies. */
    retry: createRefusedRetry({
      following,
      current,
      live: centres.live,
      gate: ports.gate,
      connectivity,
      deliverNow: deliverAll,
    }),
    async close(): Promise<void> {
      isClosed = true
      unwatch()
      connectivity.close()
      resurrections.close()
      await Promise.all(lanes)
      losses.close()
      await save(true)
    },
  })
}
