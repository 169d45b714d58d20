/**
 * One uplink: keeps another broker as this one is, over a way that may be cut for weeks. Two lanes share the way. The
 * live lane follows the log, and after a cut first tells what entities are like now; the backfill lane then tells
 * what happened meanwhile, from the history itself, so a long cut holds nothing in memory. In each lane things go in
 * order, nothing is told as current that is older than what was told before, and what was not taken is not forgotten.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { FollowedChange, Following } from '#broker/following.ts'
import { fillSpan } from './backfill.ts'
import type { Centre, Refusal } from './centre.ts'
import type { Link } from './link.ts'
import { type Layer, layersOf, type Step } from './plan.ts'
import { stepOfEntity, stepsOf } from './reading.ts'
import type { UplinkSelection } from './selection.ts'
import type { UplinkState } from './state.ts'

export interface UplinkPorts {
  readonly following: Following
  readonly centre: Centre
  readonly link: Link
  readonly clock: Clock
  readonly log: Log
  readonly isFromThere: (change: FollowedChange) => boolean
  /** Attribute instances of an entity that were deleted at a commit time or later. */
  readonly dropped: (id: string, since: number) => readonly (readonly [name: string, dataset: string])[]
  /** Puts the state on disk. */
  readonly save: (state: UplinkState) => Promise<void>
  /** Puts on disk what will not be taken. */
  readonly bury: (refusals: readonly Refusal[]) => Promise<void>
}

export interface UplinkStatus {
  readonly state: 'live' | 'catching-up' | 'offline' | 'paused'
  /** Since when (ms) and why nothing gets through. */
  readonly trouble: { readonly since: number; readonly reason: string } | undefined
  /** Log rows that are not sent yet. */
  readonly behind: number
  /** Commit time (ms) of the oldest thing that is not sent yet. */
  readonly oldest: number | undefined
  readonly counts: UplinkState['counts']
  readonly sentBytes: number
}

export interface Uplink {
  status(): UplinkStatus
  pause(isPaused: boolean): void
  close(): Promise<void>
}

export function createUplink(
  id: string,
  state: UplinkState,
  selection: UplinkSelection,
  ports: UplinkPorts,
): Uplink {
  const { following, centre, link, log } = ports
  const { counts } = state
  /** Log numbers up to which entities were told as they are, by rid; rows before them belong to the past. */
  const told = new Map<number, number>()
  let isClosed = false
  let isUnsaved = true
  let savedAt = Number.NEGATIVE_INFINITY
  const reading = {
    selection,
    streamOf: following.streamOf,
    entity: following.entity,
    isFromThere: ports.isFromThere,
  }

  /** Sends until it was taken. False when the uplink was closed meanwhile. */
  async function deliver(layer: Layer): Promise<boolean> {
    while (await link.ready()) {
      const outcome = await centre.send(layer)
      if (outcome.kind === 'later') {
        link.failed(outcome)
        continue
      }
      link.succeeded()
      counts.skipped += outcome.skipped
      counts.refused += outcome.refused.length
      const taken = layer.steps.length - outcome.refused.length
      if (layer.kind === 'past') counts.past += taken
      else counts.sent += taken
      if (outcome.refused.length > 0) await ports.bury(outcome.refused)
      isUnsaved = true
      return true
    }
    return false
  }

  async function deliverAll(steps: readonly Step[]): Promise<boolean> {
    for (const layer of layersOf(steps)) if (!(await deliver(layer))) return false
    return true
  }

  /** Sends the next part of the log. Returns whether there was any. */
  async function follow(): Promise<boolean> {
    const { position } = state
    const rows = following.after(position.n, limits.uplinkRowsPerTurn.value)
    const here = following.position()
    const isBehind = rows?.[0] !== undefined && here.at - rows[0].at > limits.uplinkBehindMs.value
    if (rows === undefined || isBehind) {
      catchUp()
      return true
    }
    const last = rows.at(-1)
    if (last === undefined) return false
    const steps = rows.flatMap((row) => stepsOf(row, (rid) => row.n <= (told.get(rid) ?? 0), reading))
    if (!(await deliverAll(steps))) return true
    state.position = { n: last.n, at: last.at }
    for (const [rid, n] of told) if (n <= last.n) told.delete(rid)
    isUnsaved = true
    return true
  }

  /** Too far behind to go through it all: what is current goes first, what happened meanwhile is filled in. */
  function catchUp(): void {
    const here = following.position()
    const since = state.position.at
    const last = state.spans.at(-1)
    if (last !== undefined && last.to >= since) last.to = here.at + 1
    else state.spans.push({ from: since, to: here.at + 1 })
    state.refresh = {
      since: Math.min(since, state.refresh?.since ?? since),
      graves: Math.min(state.position.n, state.refresh?.graves ?? state.position.n),
      rid: 0,
    }
    state.position = here
    isUnsaved = true
    log.info('uplink.catching-up', { uplink: id, since: new Date(since).toISOString() })
  }

  /** Tells some more entities as they are. */
  async function refresh(task: NonNullable<UplinkState['refresh']>): Promise<void> {
    const { n } = following.position()
    const entities = following.entities(task.rid, limits.uplinkEntitiesPerRequest.value)
    const steps: Step[] = []
    for (const [rid, view] of entities) {
      const step = stepOfEntity(view, task.since, selection)
      if (step === undefined) continue
      told.set(rid, n)
      const { entity } = step
      if (following.isReborn(view.id, task.graves)) steps.push({ kind: 'remove', entity })
      for (const [name, dataset] of ports.dropped(view.id, task.since))
        if (selection.takesAttribute(name)) steps.push({ kind: 'drop', entity, name, dataset })
      steps.push(step)
    }
    if (!(await deliverAll(steps))) return
    // A cut meanwhile began anew.
    if (state.refresh !== task) return
    const last = entities.at(-1)
    if (last !== undefined && entities.length === limits.uplinkEntitiesPerRequest.value) task.rid = last[0]
    else state.refresh = undefined
    isUnsaved = true
  }

  async function liveLane(): Promise<void> {
    while (!isClosed) {
      let isIdle = true
      if (!state.isPaused && (await link.ready())) {
        isIdle = !(await follow())
        if (state.refresh !== undefined) {
          await refresh(state.refresh)
          isIdle = false
        }
      }
      await keep()
      if (isIdle) await link.rest(limits.uplinkPollMs.value)
    }
  }

  async function backfillLane(): Promise<void> {
    const sizes = { sliceMs: limits.uplinkSliceMs.value }
    while (!isClosed) {
      const span = state.spans[0]
      if (span === undefined || state.refresh !== undefined || state.isPaused) {
        await link.rest(limits.uplinkPollMs.value)
        continue
      }
      const to = await fillSpan(span, sizes, { following, selection, deliver })
      if (to === undefined) return
      span.from = to
      if (span.from >= span.to) state.spans.splice(state.spans.indexOf(span), 1)
      isUnsaved = true
    }
  }

  /** Puts the state on disk where it changed, at most once a second. */
  async function keep(isLast = false): Promise<void> {
    const now = ports.clock.monotonic()
    if (!isUnsaved || (!isLast && now - savedAt < limits.uplinkSaveMs.value)) return
    isUnsaved = false
    savedAt = now
    await ports.save(state)
  }

  /** A lane that ends for a fault of ours begins again. */
  async function enduring(lane: () => Promise<void>): Promise<void> {
    while (!isClosed) {
      try {
        await lane()
      } catch (error) {
        log.error('gateway.fault', { during: `uplink ${id}`, error })
        await link.rest(limits.uplinkFaultMs.value)
      }
    }
  }
  const lanes = [enduring(liveLane), enduring(backfillLane)]

  return Object.freeze({
    status() {
      const trouble = link.trouble()
      const behind = following.position().n - state.position.n
      const isCatchingUp = state.refresh !== undefined || state.spans.length > 0
      const oldest = state.spans[0]?.from ?? (behind > 0 ? state.position.at : undefined)
      const word = state.isPaused ? 'paused' : trouble ? 'offline' : isCatchingUp ? 'catching-up' : 'live'
      return { state: word, trouble, behind, oldest, counts: { ...counts }, sentBytes: centre.sentBytes() }
    },
    pause(isPaused) {
      state.isPaused = isPaused
      isUnsaved = true
    },
    async close() {
      isClosed = true
      link.close()
      await Promise.all(lanes)
      await keep(true)
    },
  } satisfies Uplink)
}
