/**
 * Sends layers on the lanes until they are accepted, in order per lane, and counts the outcomes. If the
 * centre fails on past values, the live lane does not wait: they become part of the history for the backfill
 * lane.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { CommitSpan } from '#broker/changes/change-feed.ts'
import { type CentralBroker, partsOf } from '#uplink/centre/central-broker.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import { done, later, type SendOutcome, type StepRefusal } from '#uplink/centre/outcome.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { addPendingInFull, type UplinkState } from '#uplink/progress/uplink-state.ts'
import type { ScopeLookups } from '#uplink/steps/deletion-steps.ts'
import { splitStale } from '#uplink/steps/stale-puts.ts'
import { instanceCount, type Layer, layersOf, type Step } from '#uplink/steps/step-plan.ts'
import type { Gate } from './gate.ts'

export interface SendingPorts {
  readonly state: UplinkState
  /** The client of the centre on each lane. */
  readonly centres: Readonly<Record<Lane, CentralBroker>>
  readonly gate: Gate
  readonly connectivity: Connectivity
  readonly clock: Clock
  /** Called after each success or failure. */
  readonly onOutcome: (what: { isOk: boolean; at: number; reason: string | undefined }) => void
  readonly lookups: ScopeLookups
  /** Stores refusals. */
  readonly saveRefusals: (refusals: readonly StepRefusal[]) => Promise<void>
  /** Requests the centre's log position where it is unknown. */
  readonly checkCentre: () => Promise<unknown>
  /** Called when the state changed. */
  readonly onChanged: () => void
}

/** Current values that were read at a monotonic time (ms). */
interface AgedRead {
  readonly readAt: number
  enqueue(layers: readonly Layer[]): void
}

/** Checks before each try. */
interface SendChecks {
  readonly read?: AgedRead
  readonly isValid?: (() => Promise<boolean | undefined>) | undefined
}

export function createSending(ports: SendingPorts) {
  const { state, centres, gate, connectivity, clock, onChanged } = ports
  const { counts } = state
  let hasCentreName = false

  function record(what: UplinkState['last']): void {
    state.last = { ...state.last, ...what }
    ports.onOutcome({ isOk: what.success !== undefined, at: clock.now(), reason: what.reason })
    onChanged()
  }

  function recordFailure(lane: Lane, outcome: SendOutcome & { kind: 'later' }): void {
    connectivity.failed(lane, outcome)
    record({ failure: clock.now(), reason: outcome.reason })
  }

  async function recordAccepted(
    lane: Lane,
    layer: Layer,
    outcome: SendOutcome & { kind: 'done' },
  ): Promise<void> {
    record({ success: clock.now() })
    gate.accepted(
      lane,
      layer.steps.reduce((sum, step) => sum + instanceCount(step), 0),
    )
    counts.skipped += outcome.skipped
    counts.refused += outcome.refused.length
    // A long history takes several requests, each of which may have been skipped.
    const count = Math.max(0, layer.steps.length - outcome.refused.length - outcome.skipped)
    if (layer.kind === 'past') counts.past += count
    else counts.sent += count
    if (outcome.refused.length > 0) await ports.saveRefusals(outcome.refused)
    onChanged()
  }

  /** A centre is asked for its log position before anything is sent to it. */
  async function checkBeforeFirst(): Promise<void> {
    if (counts.sent + counts.past === 0) await ports.checkCentre()
  }

  async function deliver(lane: Lane, layer: Layer, checks: SendChecks): Promise<boolean> {
    while (await connectivity.ready(lane)) {
      const outcome = await sendOnce(lane, layer, checks)
      if (outcome.kind === 'done') return true
      if (outcome.isHeldUp === true) continue
      if (connectivity.isClosed()) break
      recordFailure(lane, outcome)
    }
    return false
  }

  /**
   * A layer that is no longer valid is done without a request. `read` receives the layers that replace one
   * that was read long ago.
   */
  async function sendOnce(lane: Lane, layer: Layer, { read, isValid }: SendChecks): Promise<SendOutcome> {
    await checkBeforeFirst()
    const is = isValid === undefined || (await isValid())
    if (is === false) return done()
    if (is === undefined) return later('the centre does not report its log position')
    const others = read && (await replacementFor(layer, read))
    if (others !== undefined) {
      read!.enqueue(others)
      return done()
    }
    const outcome = await centres[lane].send(layer, read && limits.uplinkBehindMs.value)
    if (outcome.kind === 'done') {
      connectivity.succeeded(lane)
      await recordAccepted(lane, layer, outcome)
    }
    return outcome
  }

  /**
   * If the centre does not report who wrote an attribute, a value written long after its deletion here would
   * count as foreign.
   */
  async function replacementFor(layer: Layer, { readAt }: AgedRead): Promise<readonly Layer[] | undefined> {
    if (layer.kind !== 'put' || clock.monotonic() - readAt <= limits.uplinkBehindMs.value) return undefined
    if ((await centres.live.isSelvedge()) === true) return undefined
    return splitStale(layer, ports.lookups)
  }

  /**
   * Sends past values once, if the centre accepts them now. Returns whether it did; false when the uplink was
   * closed.
   */
  async function tryPast(layer: Layer): Promise<boolean> {
    if (connectivity.trouble('backfill') !== undefined || !(await connectivity.ready('live'))) return false
    await checkBeforeFirst()
    const outcome = await centres.live.send(layer)
    if (outcome.kind === 'done') await recordAccepted('live', layer, outcome)
    else if (!connectivity.isClosed()) recordFailure('backfill', outcome)
    return outcome.kind === 'done'
  }

  return Object.freeze({
    /**
     * Sends until accepted; false when the uplink was closed. `isValid` is checked before each try of
     * something that may become untrue: with false nothing is sent; with undefined the check is repeated
     * later.
     */
    deliver: (lane: Lane, layer: Layer, isValid?: () => Promise<boolean | undefined>) =>
      deliver(lane, layer, { isValid }),
    /**
     * Same for steps on the live lane. `commitSpan` spans the commit times of all steps, if they are changes
     * of the log.
     */
    async deliverAll(steps: readonly Step[], commitSpan?: CommitSpan): Promise<boolean> {
      let hasPendingPast = false
      const layers = layersOf(steps).flatMap(requestsOf)
      const readAt = clock.monotonic()
      // Steps of current state are complete without these; their past is sent by the other lane.
      const enqueue = (some: readonly Layer[]): void => {
        layers.unshift(...some.filter(({ kind }) => kind === 'put' || commitSpan !== undefined))
      }
      for (let layer = layers.shift(); layer !== undefined; layer = layers.shift()) {
        const isTaken =
          layer.kind === 'past' && commitSpan !== undefined
            ? await tryPast(layer)
            : await deliver('live', layer, { read: { readAt, enqueue } })
        if (isTaken) continue
        if (commitSpan === undefined || connectivity.isClosed()) return false
        hasPendingPast = true
      }
      // Done last, so that the backfill lane skips nothing that is still to be sent as current.
      if (hasPendingPast) {
        addPendingInFull(state, commitSpan!)
        onChanged()
      }
      return true
    },
    /** Requests the centre's name in Via. False when the uplink was closed. */
    async learnCentreName(): Promise<boolean> {
      while (!hasCentreName && (await connectivity.ready('live'))) {
        const answer = await centres.live.pseudonym()
        if ('kind' in answer) {
          connectivity.failed('live', answer)
          continue
        }
        state.pseudonym = answer.name
        hasCentreName = true
      }
      return hasCentreName
    },
  })
}

/** Splits puts into single requests, because each is checked before it is sent. */
const requestsOf = (layer: Layer): readonly Layer[] =>
  layer.kind === 'put' ? partsOf(layer.steps).map((steps) => ({ ...layer, steps })) : [layer]
