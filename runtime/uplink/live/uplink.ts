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
import type { Measure } from '#uplink/progress/backlog-size.ts'
import { createPresent } from '#uplink/progress/current-steps.ts'
import type { Losses } from '#uplink/progress/losses.ts'
import { createMeetings } from '#uplink/progress/match-steps.ts'
import { forgoneGaps } from '#uplink/progress/refused-gaps.ts'
import { owe, recall, settleGraves, type Telling, type UplinkState } from '#uplink/progress/uplink-state.ts'
import { createComparing } from '#uplink/reconcile/reconcile-schedule.ts'
import { datedAt, readingOf, stepsOfEntity } from '#uplink/steps/change-steps.ts'
import { createGhosts } from '#uplink/steps/resurrections.ts'
import type { Placing } from '#uplink/steps/scope-prefix.ts'
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

export interface UplinkPorts extends Omit<SendingPorts, 'state' | 'reading' | 'look' | 'onChanged'> {
  readonly following: Following
  readonly digests: Digests
  readonly losses: Losses
  readonly measure: Measure
  readonly log: Log
  /** What this gateway calls itself in Via. */
  readonly alias: string
  /** The state is a new one that is not on disk yet. */
  readonly isAnew: boolean
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
  again(step: Step): Promise<Outcome>
  close(): Promise<void>
}

/** What goes up, how often, and where it stands there. */
export interface UplinkRule {
  readonly selection: UplinkSelection
  readonly throttling: number | undefined
  readonly placing: Placing
}

/** Whether a name in Via is that of this gateway, or of the other broker as far as it is known. */
const isThere =
  (alias: string, state: UplinkState) =>
  (name: string): boolean =>
    name === alias || name === state.pseudonym

/** What waited for its turn before a restart is not known any more; what changed lately is told as it is. */
const throttledBefore = ({ n, at }: UplinkState['position'], throttling = 0): UplinkState['refresh'] =>
  throttling === 0
    ? undefined
    : { since: at - throttling * 1000 - limits.batchOneTimeMs.value, graves: n, rid: 0 }

/** What tells all that either would. */
function earlier(one: UplinkState['refresh'], other: UplinkState['refresh']): UplinkState['refresh'] {
  if (one === undefined || other === undefined) return one ?? other
  return { since: Math.min(one.since, other.since), graves: Math.min(one.graves, other.graves), rid: 0 }
}

export function createUplink(id: string, state: UplinkState, rule: UplinkRule, ports: UplinkPorts): Uplink {
  const { selection, throttling, placing } = rule
  const { following, centres, link, losses, measure, log } = ports
  const { counts, restored } = state
  const throttle = createThrottle(ports.clock.monotonic, throttling)
  state.refresh = earlier(state.refresh, throttledBefore(state.position, throttling))
  let [savedAt, isClosed] = [Number.NEGATIVE_INFINITY, false]
  let [isFilling, isUnsaved, isOnDisk] = [false, true, !ports.isAnew]
  const reading = readingOf(following, { selection, placing }, isThere(ports.alias, state))
  const ghosts = createGhosts(reading)
  const onChanged = (): void => {
    isUnsaved = true
  }
  const { deliver, deliverAll, knowCentre } = createSending({
    ...ports,
    ...{ state, reading },
    look: () => comparing.look(true),
    onChanged,
  })
  const fill = (layer: Layer): Promise<boolean> => deliver('backfill', layer)
  const present = createPresent({ following, reading, state })
  const meetings = createMeetings({ following, present, reading, deliverNow: deliverAll })
  const ways = { deliver: fill, deliverNow: deliverAll, settle: ghosts.settle }
  const comparing = createComparing({ ...ports, id, state, reading, present, ...ways })

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
    if (rows.some(({ heard }) => heard !== undefined) && !(await knowCentre())) return true
    const meeting = meetings.begin()
    const steps = rows.flatMap((row) => [...present.unsentEnds(row), ...meeting.steps(row, throttled)])
    // Times of rows do not ascend where a batch bears the time of its first item.
    const times = rows.flatMap((row) => [row.at, datedAt(row)])
    const dated = { from: Math.min(...times), to: Math.max(...times) + 1 }
    if (!(await deliverAll(steps, dated))) return true
    meeting.told()
    state.position = { n: last.n, at: last.at }
    present.passed(last.n)
    isUnsaved = true
    return true
  }

  /** What comes too soon after the last of its entity goes up as history. */
  const throttled = (step: Step, at: number): Step =>
    step.kind === 'put' && isObserved(step) && throttle.holds(step.entity.id, at)
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
      if (found === undefined || present.wholes.get(found.rid) !== true) return []
      // Rows that are still to come would be older behind it.
      return isBehind
        ? present.steps(found.rid, found.view, {
            since: Math.min(since, following.since(position)),
            graves: position.n,
          })
        : stepsOfEntity(found.view, since, reading)
    })
    return steps.length > 0 && (await deliverAll(steps))
  }

  /** Too far behind to go through it all: what is current goes first, what happened meanwhile is filled in. */
  function catchUp(): void {
    const { n, at } = following.position()
    const here = { n, at: Math.max(at, state.position.at) }
    const since = following.since(state.position)
    owe(state, since, here.at + 1)
    measure.forget()
    state.refresh = earlier(state.refresh, { since, graves: state.position.n, rid: 0 })
    if (here.at - since > limits.reconcileAfterMs.value && since > 0) comparing.begin('long-cut')
    state.position = here
    isUnsaved = true
    log.info('uplink.catching-up', { uplink: id, since: new Date(since).toISOString() })
  }

  /** Tells some more entities as they are. */
  async function refresh(task: NonNullable<UplinkState['refresh']>): Promise<void> {
    if (!(await knowCentre()) || following.isHeld()) return
    // Read together: what is told is what was so at one place of the log.
    const entities = following.entities(task.rid, limits.uplinkEntitiesPerRequest.value)
    const steps = entities.flatMap(([rid, view]) => present.steps(rid, view, task))
    const told = present.wholes.afterwards(entities, task.since)
    if (!(await deliverAll(steps))) return
    told()
    // A cut meanwhile began anew.
    if (state.refresh !== task) return
    const last = entities.at(-1)
    if (last !== undefined && entities.length === limits.uplinkEntitiesPerRequest.value) task.rid = last[0]
    else state.refresh = undefined
    isUnsaved = true
  }

  /** Tells what is missing there for good, because it was refused and is not kept any more. */
  async function confess(): Promise<void> {
    const { steps, told } = forgoneGaps(state, { uplink: id, alias: ports.alias, placing })
    if (steps.length === 0 || !(await deliverAll(steps))) return
    told()
    isUnsaved = true
  }

  /** Returns whether there was anything to tell. */
  async function liveTurn(): Promise<boolean> {
    // First, so that it is known what was there before anything is told.
    if (await comparing.look()) isUnsaved = true
    let isBusy = await follow()
    if (await release()) isBusy = true
    if (state.refresh !== undefined) {
      await refresh(state.refresh)
      isBusy = true
    }
    await ghosts.lay(deliverAll)
    await confess()
    return isBusy
  }

  async function liveLane(): Promise<void> {
    await present.wholes.learn(createYield(ports.clock.monotonic, limits.uplinkTurnMs.value))
    // After a crash, deletions are sent since the position on disk: so there is one before anything is sent.
    if (!isOnDisk) await keep(true)
    while (!isClosed) {
      // Times by a clock that is not set are not told to anybody.
      const isBusy = !following.isHeld() && (await link.ready('live')) && (await present.turn(liveTurn))
      await keep()
      if (!isBusy) await link.rest(limits.uplinkPollMs.value)
    }
  }

  async function backfillLane(): Promise<void> {
    const sizes = { sliceMs: limits.uplinkSliceMs.value }
    const yieldIfDue = createYield(ports.clock.monotonic, limits.uplinkTurnMs.value)
    while (!isClosed) {
      isFilling = false
      const span = state.spans[0]
      const mayFill = state.refresh === undefined && !following.isHeld()
      recall(state, ports.clock.now())
      if (mayFill && state.telling !== undefined) {
        if (!(await tellGaps(state.telling, yieldIfDue))) return
        continue
      }
      if (!mayFill || span === undefined) {
        if (mayFill && (await comparing.portion())) isUnsaved = true
        await link.rest(limits.uplinkPollMs.value)
        continue
      }
      if (measure.bound()) continue
      span.began ??= span.from
      isFilling = true
      const way = { deliver: fill, settle: ghosts.settle, hold: meetings.hold, yieldIfDue }
      const to = await fillSpan(span, sizes, { following, reading, losses, ...way })
      if (to === undefined) return
      losses.end(to)
      span.from = to
      isUnsaved = true
      if (span.from < span.to) continue
      state.spans.splice(state.spans.indexOf(span), 1)
      settleGraves(state, following.position().n)
      state.telling = { began: span.began, to: span.to, unnamed: {} }
    }
  }

  /** Tells what is missing of a span that has gone up, a request's worth at a time. False when the uplink was closed meanwhile. */
  async function tellGaps(telling: Telling, yieldIfDue: YieldIfDue): Promise<boolean> {
    // By the end of the span gaps are known when they are told again: so it is on disk before the first of them is sent.
    await keep(true)
    let gaps = 0
    for (const { steps, told, isStill } of losses.gaps(telling)) {
      // A gap says what did not go up, of what else is there: not of what went with an older copy that nobody noticed yet.
      const still = isStill && (async () => ((await comparing.isSure()) ? isStill() : undefined))
      for (const layer of layersOf(steps)) if (!(await deliver('backfill', layer, still))) return false
      told()
      isUnsaved = true
      gaps += steps.length
      await yieldIfDue()
    }
    if (gaps > 0) log.warn('uplink.evicted', { uplink: id, gaps, observations: counts.evicted })
    return true
  }

  /** Puts the state on disk: at once when it is the last for now, else where it changed and at most once a second. */
  async function keep(isLast = false): Promise<void> {
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
  async function enduring(lane: () => Promise<void>): Promise<void> {
    while (!isClosed) {
      try {
        await lane()
      } catch (error) {
        // A disk without room is told where it is noticed, and what was sent is sent again when there is some.
        if (!isGatewayError(error) || error.entry.fault !== 'resource')
          log.error('gateway.fault', { during: `uplink ${id}`, error })
        await link.rest(limits.uplinkFaultMs.value)
      }
    }
  }
  // What was sent after the state was kept is not known, and what a backup lacks is to be told: as after a cut.
  if (restored !== undefined || state.position.n < following.position().n) catchUp()
  const bounding = { ...ports, id, state, isFilling: () => isFilling, onBound: () => keep(true) }
  const lanes = [liveLane, backfillLane, () => budgetLane(bounding)].map(enduring)

  return Object.freeze({
    status: () => statusOf({ ...ports, state }),
    async pause(isPaused) {
      state.isPaused = isPaused
      await keep(true)
    },
    async reconcile(isDry) {
      if (comparing.isDue()) return false
      comparing.begin('asked', isDry)
      await keep(true)
      return true
    },
    async cancelReconcile() {
      if (!comparing.cancel()) return false
      await keep(true)
      return true
    },
    again: createRetrying({ ...ports, present, live: centres.live, deliverNow: deliverAll }),
    async close() {
      isClosed = true
      link.close()
      ghosts.close()
      await Promise.all(lanes)
      losses.close()
      await keep(true)
    },
  } satisfies Uplink)
}
