/**
 * One uplink: keeps another broker as this one is, over a way that may be cut for weeks. Two lanes share the way. The
 * live lane follows the log, and after a cut first tells what entities are like now; the backfill lane then tells
 * what happened meanwhile, from the history itself, so a long cut holds nothing in memory. In each lane things go in
 * order, nothing is told as current that is older than what was told before, and what was not taken is not forgotten.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, type YieldIfDue } from '#base/load/yielding.ts'
import { isGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Following } from '#broker/changes/change-feed.ts'
import type { Digests } from '#broker/tenant/digests.ts'
import type { Peer } from '#federation/peer.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { fillSpan } from '#uplink/backfill/backfill.ts'
import type { Outcome } from '#uplink/centre/outcome.ts'
import type { BacklogMeasure } from '#uplink/progress/backlog-size.ts'
import { createCurrentSteps } from '#uplink/progress/current-steps.ts'
import type { Losses } from '#uplink/progress/losses.ts'
import { createMatching } from '#uplink/progress/match-steps.ts'
import { refusedGapSteps } from '#uplink/progress/refused-gaps.ts'
import {
  addPending,
  endUnsentDeletions,
  type GapReport,
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
import { createRetrying } from './retry-refused.ts'
import { createSending, type SendingPorts } from './send-lanes.ts'
import { statusOf, type UplinkStatus } from './uplink-status.ts'
import { createThrottle } from './uplink-throttle.ts'

/** A subscription whose endpoint is a broker. */
export interface UplinkSubscription {
  /** Number of the subscription; undefined where it is one of the settings. */
  readonly i: number | undefined
  readonly subscription: Subscription
  /** The way to its broker, where that is one of its own. */
  readonly peer?: Peer | undefined
}

export interface UplinkPorts extends Omit<SendingPorts, 'state' | 'lookups' | 'checkCentre' | 'onChanged'> {
  readonly following: Following
  readonly digests: Digests
  readonly losses: Losses
  readonly measure: BacklogMeasure
  readonly log: Log
  /** What this gateway calls itself in Via. */
  readonly alias: string
  /** The state is a new one that is not on disk yet. */
  readonly isNew: boolean
  /** Puts the state on disk. */
  readonly save: (state: UplinkState) => Promise<void>
}

export interface Uplink {
  status(): UplinkStatus
  /** Settles when it is on disk. */
  pause(isPaused: boolean): Promise<void>
  /** Compares with the other broker; false where that is under way already. */
  reconcile(isDry: boolean): Promise<boolean>
  /** Ends a comparison where it is; false where none is under way. */
  cancelReconcile(): Promise<boolean>
  /** Does at once what was refused before, as far as it is still to be done. */
  retry(step: Step): Promise<Outcome>
  close(): Promise<void>
}

/** What goes up, how often, and where it stands there. */
export interface UplinkRule {
  readonly selection: UplinkSelection
  readonly throttling: number | undefined
  readonly scopePrefix: ScopePrefix
}

/** Whether a name in Via is that of this gateway, or of the other broker as far as it is known. */
const isCentreOrSelf =
  (alias: string, state: UplinkState) =>
  (name: string): boolean =>
    name === alias || name === state.pseudonym

/** What waited for its turn before a restart is not known any more; what changed lately is told as it is. */
const refreshAfterRestart = ({ n, at }: UplinkState['position'], throttling = 0): UplinkState['refresh'] =>
  throttling === 0
    ? undefined
    : { since: at - throttling * 1000 - limits.batchOneTimeMs.value, graves: n, rid: 0 }

/** What tells all that either would. */
function union(one: UplinkState['refresh'], other: UplinkState['refresh']): UplinkState['refresh'] {
  if (one === undefined || other === undefined) return one ?? other
  return { since: Math.min(one.since, other.since), graves: Math.min(one.graves, other.graves), rid: 0 }
}

export function createUplink(id: string, state: UplinkState, rule: UplinkRule, ports: UplinkPorts): Uplink {
  const { selection, throttling, scopePrefix } = rule
  const { following, centres, connectivity, losses, measure, log } = ports
  const { counts, restored } = state
  const throttle = createThrottle(ports.clock.monotonic, throttling)
  state.refresh = union(state.refresh, refreshAfterRestart(state.position, throttling))
  let [savedAt, isClosed] = [Number.NEGATIVE_INFINITY, false]
  let [isFilling, isUnsaved, isOnDisk] = [false, true, !ports.isNew]
  const lookups = createLookups(following, { selection, scopePrefix }, isCentreOrSelf(ports.alias, state))
  const resurrections = createResurrections(lookups)
  const onChanged = (): void => {
    isUnsaved = true
  }
  const { deliver, deliverAll, learnCentreName } = createSending({
    ...ports,
    ...{ state, lookups },
    checkCentre: () => reconciling.checkCentre(true),
    onChanged,
  })
  const fill = (layer: Layer): Promise<boolean> => deliver('backfill', layer)
  const current = createCurrentSteps({ following, lookups, state })
  const matching = createMatching({ following, current, lookups, deliverNow: deliverAll })
  const ways = { deliver: fill, deliverNow: deliverAll, ensureDeleted: resurrections.ensureDeleted }
  const reconciling = createReconcileSchedule({ ...ports, id, state, lookups, current, ...ways })

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
    if (rows.some(({ heard }) => heard !== undefined) && !(await learnCentreName())) return true
    const pass = matching.begin()
    const steps = rows.flatMap((row) => [...current.unsentDeletions(row), ...pass.steps(row, throttled)])
    // Times of rows do not ascend where a batch bears the time of its first item.
    const times = rows.flatMap((row) => [row.at, commitTimeOf(row)])
    const dated = { from: Math.min(...times), to: Math.max(...times) + 1 }
    if (!(await deliverAll(steps, dated))) return true
    pass.onAccepted()
    state.position = { n: last.n, at: last.at }
    current.advance(last.n)
    isUnsaved = true
    return true
  }

  /** What comes too soon after the last of its entity goes up as history. */
  const throttled = (step: Step, at: number): Step =>
    step.kind === 'put' && isObserved(step) && throttle.delays(step.entity.id, at)
      ? { ...step, kind: 'past', attributes: withoutMirror(step) }
      : step

  /** Tells what was held back and is newest now. */
  async function release(): Promise<boolean> {
    if (following.isHeld()) return false
    const { position } = state
    const isBehind = following.position().n > position.n
    const steps = throttle.due().flatMap(([id, since]) => {
      const found = following.entityWithRid(id)
      // What came to meet the selection goes up whole, by the row that says so.
      if (found === undefined || current.fullySynced.get(found.rid) !== true) return []
      // Rows that are still to come would be older behind it.
      return isBehind
        ? current.steps(found.rid, found.view, {
            since: Math.min(since, following.since(position)),
            graves: position.n,
          })
        : stepsOfEntity(found.view, since, lookups)
    })
    return steps.length > 0 && (await deliverAll(steps))
  }

  /** Too far behind to go through it all: what is current goes first, what happened meanwhile is filled in. */
  function catchUp(): void {
    const { n, at } = following.position()
    const here = { n, at: Math.max(at, state.position.at) }
    const since = following.since(state.position)
    addPending(state, since, here.at + 1)
    measure.recheckSoon()
    state.refresh = union(state.refresh, { since, graves: state.position.n, rid: 0 })
    if (here.at - since > limits.reconcileAfterMs.value && since > 0) reconciling.begin('long-cut')
    state.position = here
    isUnsaved = true
    log.info('uplink.catching-up', { uplink: id, since: new Date(since).toISOString() })
  }

  /** Tells some more entities as they are. */
  async function refresh(task: NonNullable<UplinkState['refresh']>): Promise<void> {
    if (!(await learnCentreName()) || following.isHeld()) return
    // Read together: what is told is what was so at one place of the log.
    const entities = following.entities(task.rid, limits.uplinkEntitiesPerRequest.value)
    const steps = entities.flatMap(([rid, view]) => current.steps(rid, view, task))
    const onSent = current.fullySynced.onceSent(entities, task.since)
    if (!(await deliverAll(steps))) return
    onSent()
    // A cut meanwhile began anew.
    if (state.refresh !== task) return
    const last = entities.at(-1)
    if (last !== undefined && entities.length === limits.uplinkEntitiesPerRequest.value) task.rid = last[0]
    else state.refresh = undefined
    isUnsaved = true
  }

  /** Tells what is missing there for good, because it was refused and is not kept any more. */
  async function sendRefusedGaps(): Promise<void> {
    const { steps, onAccepted } = refusedGapSteps(state, { uplink: id, alias: ports.alias, scopePrefix })
    if (steps.length === 0 || !(await deliverAll(steps))) return
    onAccepted()
    isUnsaved = true
  }

  /** Returns whether there was anything to tell. */
  async function liveTurn(): Promise<boolean> {
    // First, so that it is known what was there before anything is told.
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
    // After a crash, deletions are sent since the position on disk: so there is one before anything is sent.
    if (!isOnDisk) await save(true)
    while (!isClosed) {
      // Times by a clock that is not set are not told to anybody.
      const isBusy =
        !following.isHeld() && (await connectivity.ready('live')) && (await current.turn(liveTurn))
      await save()
      if (!isBusy) await connectivity.sleep(limits.uplinkPollMs.value)
    }
  }

  async function backfillLane(): Promise<void> {
    const sizes = { sliceMs: limits.uplinkSliceMs.value }
    const yieldIfDue = createYield(ports.clock.monotonic, limits.uplinkTurnMs.value)
    while (!isClosed) {
      isFilling = false
      const span = state.spans[0]
      const mayFill = state.refresh === undefined && !following.isHeld()
      resendGaps(state, ports.clock.now())
      if (mayFill && state.telling !== undefined) {
        if (!(await sendGaps(state.telling, yieldIfDue))) return
        continue
      }
      if (!mayFill || span === undefined) {
        if (mayFill && (await reconciling.portion())) isUnsaved = true
        await connectivity.sleep(limits.uplinkPollMs.value)
        continue
      }
      if (measure.enforceBudget()) continue
      span.began ??= span.from
      isFilling = true
      const way = {
        deliver: fill,
        ensureDeleted: resurrections.ensureDeleted,
        ensureSynced: matching.ensureSynced,
        yieldIfDue,
      }
      const to = await fillSpan(span, sizes, { following, lookups, losses, ...way })
      if (to === undefined) return
      losses.end(to)
      span.from = to
      isUnsaved = true
      if (span.from < span.to) continue
      state.spans.splice(state.spans.indexOf(span), 1)
      endUnsentDeletions(state, following.position().n)
      state.telling = { began: span.began, to: span.to, unnamed: {} }
    }
  }

  /** Tells what is missing of a span that has gone up, a request's worth at a time. False when the uplink was closed meanwhile. */
  async function sendGaps(telling: GapReport, yieldIfDue: YieldIfDue): Promise<boolean> {
    // By the end of the span gaps are known when they are told again: so it is on disk before the first of them is sent.
    await save(true)
    let gaps = 0
    for (const { steps, onAccepted, isValid } of losses.gaps(telling)) {
      // A gap says what did not go up, of what else is there: not of what went with an older copy that nobody noticed yet.
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

  /** Puts the state on disk: at once when it is the last for now, else where it changed and at most once a second. */
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

  /** A lane that ends for a fault of ours begins again. */
  async function restarting(lane: () => Promise<void>): Promise<void> {
    while (!isClosed) {
      try {
        await lane()
      } catch (error) {
        // A disk without room is told where it is noticed, and what was sent is sent again when there is some.
        if (!isGatewayError(error) || error.entry.fault !== 'resource')
          log.error('gateway.fault', { during: `uplink ${id}`, error })
        await connectivity.sleep(limits.uplinkFaultMs.value)
      }
    }
  }
  // What was sent after the state was kept is not known, and what a backup lacks is to be told: as after a cut.
  if (restored !== undefined || state.position.n < following.position().n) catchUp()
  const bounding = { ...ports, id, state, isFilling: () => isFilling, onBound: () => save(true) }
  const lanes = [liveLane, backfillLane, () => budgetLane(bounding)].map(restarting)

  return Object.freeze({
    status: () => statusOf({ ...ports, state }),
    async pause(isPaused) {
      state.isPaused = isPaused
      await save(true)
    },
    async reconcile(isDry) {
      if (reconciling.isDue()) return false
      reconciling.begin('asked', isDry)
      await save(true)
      return true
    },
    async cancelReconcile() {
      if (!reconciling.cancel()) return false
      await save(true)
      return true
    },
    retry: createRetrying({ ...ports, current, live: centres.live, deliverNow: deliverAll }),
    async close() {
      isClosed = true
      connectivity.close()
      resurrections.close()
      await Promise.all(lanes)
      losses.close()
      await save(true)
    },
  } satisfies Uplink)
}
